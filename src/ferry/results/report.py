# SPDX-License-Identifier: GPL-2.0
"""`ferry report`: a run as one HTML file that needs nothing else, to keep, to mail, or to put on a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

from ferry.results import plots, runs, table
from ferry.results.document import Document

REPORT = "report.html"


def write(run_dir: Path) -> Path:
    """Write report.html beside a run's result.json, in one step; returns its path."""
    page = html(runs.load(str(run_dir)), run_dir.resolve().name)
    draft = run_dir / f".{REPORT}.draft"
    draft.write_text(page)
    return draft.replace(run_dir / REPORT)


def html(documents: list[Document], name: str) -> str:
    """The whole page."""
    environment = Environment(loader=PackageLoader("ferry.results", "."), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True)
    sections = [section(document) for document in documents]
    return environment.get_template("report.html.j2").render(name=name, sections=sections)


def section(document: Document) -> dict[str, Any]:
    """The variables of the template for one document."""
    return {
        "grids": table.grids(document),
        "plots": plots.all_of(document),
        "rows": [(table.row_name(document, row), row) for row in document["rows"]],
        "counters": document.get("counters", {}),
        "meta": {key: value if isinstance(value, str) else json.dumps(value, indent=2)
                 for key, value in document["meta"].items()},
    }
