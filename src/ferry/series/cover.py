# SPDX-License-Identifier: GPL-2.0
"""What the sender of a series says in its mails: figures of runs, changes between versions, prerequisites.

No cover letter has a figure of its own: its figures are those of runs that this tool made. kernel/series/NAME/changelog
has the changes, newest first, under headings such as "Changes in v2:".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ferry.errors import UsageError
from ferry.results import table
from ferry.results.document import Document
from ferry.results.formats import as_markdown
from ferry.series import patches
from ferry.series.patches import Patch, Series

_NUMBER = r"(\d[\d,]*(?:\.\d+)?)"
_FIGURE = re.compile(rf"(?<![\w.,]){_NUMBER}\s*(%|percent\b|x\b|times\b|[kKMGT]i?B/s\b|[mun\u00b5]?s\b|seconds\b|"
                     r"instructions\b|cycles\b|faults\b|interrupts\b|IPIs\b)")
"""A number with a unit in which benchmarks measure; sizes and counts of folios are none."""
_IN_CELLS = {"%": rf"{_NUMBER}\s?%", "percent": rf"{_NUMBER}\s?%", "x": rf"{_NUMBER} \[", "times": rf"{_NUMBER} \["}
"""How tables print a figure with this unit: a percentage with its sign, a ratio before its interval."""


def letter(series: Series, documents: Sequence[Document], changes: str) -> tuple[str, str]:
    """Subject and text of the cover letter with the tables of the documents; ("", "") if the series has none.

    Raises UsageError if the text has a figure that the documents lack.
    """
    subject, text = series.cover
    if not subject:
        return "", ""
    if wrong := unsupported(f"{subject}\n{text}", documents):
        raise UsageError(f'the cover letter of {series.name} says "{wrong[0]}", which no run behind it has',
                         hint="--run RUN of a run with that figure (ferry runs), or leave it to the run's table")
    parts = [text, *map(figures, documents), prerequisites(series), changes and f"---\n{changes}"]
    return subject, "\n\n".join(filter(None, parts))


def unsupported(text: str, documents: Sequence[Document]) -> list[str]:
    """The figures in a text that no cell of the documents' tables has."""
    cells = "\n".join(line for document in documents for grid in table.grids(document) for row in grid.rows
                      for cell in row[1:] for line in cell)
    return [" ".join(match[0].split()) for match in _FIGURE.finditer(text)
            if _value(match[1]) not in map(_value, re.findall(_IN_CELLS.get(match[2], _NUMBER), cells))]


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def figures(document: Document) -> str:
    """The tables of a run, after the command that made them, the commit and the base kernel."""
    surroundings = [f"{name} {value}" for name in ("commit", "base") if (value := document["meta"].get(name))]
    made = ", ".join([f"Measured by `{document['meta'].get('command')}`", *surroundings])
    return "\n\n".join([f"{made}:", *map(as_markdown, table.grids(document))])


def prerequisites(series: Series, before: Sequence[Patch] = ()) -> str:
    """What must be applied first: the series that this one stands on, and of the series itself the patches `before`."""
    subjects: list[str] = []
    for other in map(patches.find, series.requires):
        subjects += [other.cover[0]] if other.cover[0] else [patch.subject for patch in other.patches]
    subjects += [patch.subject for patch in before]
    return "\n  ".join(["Prerequisites, in this order:", *subjects]) if subjects else ""


def newest(series: Series) -> tuple[int, str]:
    """The version of the series by its changelog, and the changelog; (1, "") if it has none."""
    path = patches.series_dir() / series.name / "changelog"
    text = path.read_text().strip() if path.is_file() else ""
    heading = re.match(r"Changes in v(\d+):\n", text)
    return int(heading[1]) if heading else 1, text


def changelog(series: Series, version: int) -> str:
    """The changes up to this version; "" for the first. Raises UsageError if the changelog is of another version."""
    found, text = newest(series)
    if version != found:
        raise UsageError(f"{series.name} is at version {found} by kernel/series/{series.name}/changelog, not {version}",
                         hint=f'begin that file with "Changes in v{version}:" and the changes, or -v {found}')
    return text
