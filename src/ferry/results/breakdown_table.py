# SPDX-License-Identifier: GPL-2.0
"""The tables of `ferry bench breakdown`: the copy's share with its bound, then the phases of each case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ferry.results.document import (
    KIND_NOTES,
    TOTAL,
    UNIT_NAMES,
    BreakdownRow,
    Column,
    Document,
    Row,
    column,
    is_baseline,
    label,
    stock_note,
)
from ferry.results.formats import Grid, Record, column_name, figure, ratio_text, size_name

NAME = "breakdown"
COPY = "copy"
#: Keys of the copy's row, and their words in the table.
FIGURES = {"share": "copy", "migrate_pages_share": "of migrate_pages()", "amdahl_bound": "bound", "reached": "reached"}
#: Phases of fewer instructions a page in every configuration are in the document only.
LEAST = 0.5

Case = Mapping[str, Mapping[str, BreakdownRow]]
"""The rows of a case by configuration and phase."""


def cases(document: Document) -> dict[Column, Case]:
    """The rows of a document, in its order."""
    found: dict[Column, dict[str, dict[str, BreakdownRow]]] = {}
    for row in document["rows"]:
        sides = found.setdefault(column(row), {})
        sides.setdefault(label(row), {})[row.get("phase", TOTAL)] = cast(BreakdownRow, row)
    return cast(dict[Column, Case], found)


def grids(document: Document) -> list[Grid]:
    """The tables for people."""
    return [_shares(document), _phases(document)]


def _shares(document: Document) -> Grid:
    """Configurations down, cases across."""
    found = cases(document)
    names = dict.fromkeys(label(row) for row in document["rows"])
    rows = [[[_name(document, name, found)], *(_share(case.get(name, {})) for case in found.values())]
            for name in names]
    return Grid(_title(document, "the share of the copy"), ["", *map(column_name, found)], rows, _notes(document))


def _phases(document: Document) -> Grid:
    """Cases down, in each its phases; configurations across."""
    names = list(dict.fromkeys(label(row) for row in document["rows"]))
    rows = []
    for place, case in cases(document).items():
        phases = dict.fromkeys(phase for side in case.values() for phase in side if phase != TOTAL)
        shown = [[[phase], *([_median(case.get(name, {}).get(phase))] for name in names)] for phase in [*phases, TOTAL]
                 if phase == TOTAL or any((side[phase]["median"] or 0.0) >= LEAST for side in case.values()
                                          if phase in side)]
        head = [column_name(place).replace("\n", ", "), *[""] * (len(shown) - 1)]
        rows += [[[first], *line] for first, line in zip(head, shown, strict=True)]
    counted = any(cast(BreakdownRow, row).get("migrate_pages_share") for row in document["rows"])
    note = "a function belongs to the phase of its nearest caller; the total is the guest's own clock" if counted else \
        "a tracepoint tells a migrator's copy from the rest; without a migrator only the total is known"
    return Grid(_title(document, "phases"), ["", "", *names], rows, [f"medians; {note}"], keys=2)


def _title(document: Document, what: str) -> str:
    unit = UNIT_NAMES[document["rows"][0]["unit"]]
    return f"breakdown on {document['board']}: {what}, {unit} ({KIND_NOTES[document['kind']]})"


def _name(document: Document, name: str, found: Mapping[Column, Case]) -> str:
    row = next(case[name][TOTAL] for case in found.values() if name in case)
    return f"{name} (baseline)" if is_baseline(document, row) else name


def _share(side: Mapping[str, BreakdownRow]) -> list[str]:
    """The total, its ratio to the baseline, and the figures of the copy."""
    if TOTAL not in side:
        return ["-"]
    total, copy = side[TOTAL], cast(Mapping[str, float | None], side.get(COPY, {}))
    lines = [_median(total)]
    if total["ratio_to_baseline"]:
        lines.append(ratio_text(total["ratio_to_baseline"]))
    lines += [f"{words} {_percent_or_factor(key, value)}" for key, words in FIGURES.items()
              if (value := copy.get(key)) is not None]
    return lines + [f"{len(total['failures'])} failed"] * bool(total["failures"])


def _percent_or_factor(key: str, value: float) -> str:
    return f"{value:.3f}" if key == "amdahl_bound" else f"{value:.1%}"


def _median(row: Row | None) -> str:
    if row is None:
        return "-"
    return "no sample" if row["median"] is None else figure(row["median"]) if row["median"] else "0"


def _notes(document: Document) -> list[str]:
    """How to read the cells, and everything that did not go as asked."""
    counts = sorted({len(row["samples"]) for row in document["rows"]}) or [0]
    found = [f"medians of {' to '.join(str(count) for count in dict.fromkeys([counts[0], counts[-1]]))} samples; "
             f"ratio to {document['baseline']} [95 % interval], above 1 is better",
             "copy: its share of the call, and of migrate_pages() in it; bound: times as fast if the copy took no time "
             "(Amdahl); reached: the part of that gain that a migrator has over off"]
    found += [f"{size_name(skip['folio_bytes'])}{', ' * ('workload' in skip)}{skip.get('workload', '')} skipped: "
              f"{skip['reason']}" for skip in document.get("skipped", [])]
    found += [*stock_note(document), *document.get("warnings", [])]
    return found + [f"{label(row)}, {column_name(column(row))}".replace("\n", ", ") + f", round {failure['round']} "
                    f"failed: {failure['reason']}" for row in document["rows"] for failure in row["failures"]]


def extra(row: Row) -> Record:
    """The further columns of a line of CSV."""
    figures = cast(Mapping[str, float | None], row)
    return {"phase": row.get("phase"), **{key: figures.get(key) for key in FIGURES}}
