# SPDX-License-Identifier: GPL-2.0
"""`ferry report`: a run as one HTML file that needs nothing else, to keep, to mail, or to put on a server."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ferry import runs
from ferry.bench import table
from ferry.bench.document import Document, Row, baseline_of

REPORT = "report.html"


def write(run_dir: Path) -> Path:
    """Write report.html beside a run's result.json, in one step; returns its path."""
    page = html(runs.load(str(run_dir)), run_dir.resolve().name)
    draft = run_dir / f".{REPORT}.draft"
    draft.write_text(page)
    return draft.replace(run_dir / REPORT)


def html(documents: list[Document], name: str) -> str:
    """The whole page."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("ferry.report", "."), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True)
    sections = [section(document) for document in documents]
    return environment.get_template("report.html.j2").render(name=name, sections=sections)


def section(document: Document) -> dict[str, Any]:
    """What the template shows of one document."""
    from ferry.report import plots

    return {
        "grid": table.grid(document),
        "plots": plots.all_of(document),
        "rows": [named for row in document["rows"] for named in _sides(document, row)],
        "counters": document.get("counters", {}),
        "meta": {key: value if isinstance(value, str) else json.dumps(value, indent=2)
                 for key, value in document["meta"].items()},
    }


def _sides(document: Document, row: Row) -> list[tuple[str, Row]]:
    """A row by its name; of one that holds the baseline's samples too, both sides."""
    other = baseline_of(document, row) if "baseline_samples" in row else None
    return [(table.row_name(document, row), row), *([(f"{document['baseline']} (baseline)", other)] if other else [])]


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry report [RUN]`."""
    parser = sub.add_parser("report", help="write a run as one HTML file")
    parser.add_argument("name", nargs="?", default=runs.LATEST, metavar="RUN",
                        help="a run's name or directory (default: latest)")


def run(args: argparse.Namespace) -> int:
    """Entry of the verb: prints where the report is."""
    print(write(runs.directory(args.name)))
    return 0
