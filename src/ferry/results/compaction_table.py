# SPDX-License-Identifier: GPL-2.0
"""The tables of `ferry bench compaction`: modes down; across, the columns of the mailing list's table, then ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ferry.results.document import (
    KIND_NOTES,
    UNIT_NAMES,
    CompactionRow,
    Document,
    Row,
    is_baseline,
    label,
    stock_note,
)
from ferry.results.formats import Grid, Record, figure, ratio_text

NAME = "compaction"
#: Key of a figure in a row, and the heading of its column. The parts of the CPU's time add up to all of it.
CPU = {"user_percent": "user %", "sys_percent": "sys %", "idle_percent": "idle %"}
#: All columns of the mailing list's table.
LISTED = {"wall_ms": "wall time\nms", "migrated": "migrated\npages", "copied_by_migrator": "copied by\na migrator",
          "hog_iterations": "hog\niterations", **CPU}
OURS = {"hog_iterations_per_second": "hog\niterations/s", "sys_ms": "sys time\nms",
        "thread_ms": "CPU time of\nthe thread, ms", "success_percent": "succeeded\n% of allocations",
        "allocated": "blocks\nin all"}
COLUMNS = LISTED | OURS


def grids(document: Document) -> list[Grid]:
    """The tables for people."""
    rows = [cast(CompactionRow, row) for row in document["rows"]]
    unit = UNIT_NAMES[rows[0]["unit"]] if rows else ""
    on = f"{document['board']} ({KIND_NOTES[document['kind']]})"
    listed = [[_name(document, row), *(_cell(row, key) for key in LISTED), _figure(row)] for row in rows]
    ours = [[_name(document, row), *(_cell(row, key) for key in OURS)] for row in rows]
    return [Grid(f"compaction on {on}", ["", *LISTED.values(), unit], listed, notes(document)),
            Grid(f"CPU time and success of compaction on {on}", ["", *OURS.values()], ours)]


def _name(document: Document, row: Row) -> list[str]:
    name = f"{label(row)} (baseline)" if is_baseline(document, row) else label(row)
    return [row.get("device", ""), name]


def _cell(row: CompactionRow, key: str) -> list[str]:
    value = cast(Mapping[str, float | None], row).get(key)
    if value is None:
        return ["-"]
    ratio = row.get("ratios", {}).get(key)
    return [f"{value:,.0f}" if value == round(value) else figure(value), *([ratio_text(ratio)] if ratio else [])]


def _figure(row: Row) -> list[str]:
    if row["median"] is None:
        return ["no sample"]
    ratio = row["ratio_to_baseline"]
    return [figure(row["median"]), *([ratio_text(ratio)] if ratio else [])]


def notes(document: Document) -> list[str]:
    """How to read the cells, and everything that did not go as asked."""
    shared = document["meta"]["config"]["shared"]
    found = ["medians over the samples; user, sys and idle are of the CPU that allocates",
             f"below: ratio to {document['baseline']} [95 % interval], above 1 is better",
             "samples share boots; the node is filled and fragmented again for each" if shared else
             "each sample is from a boot of its own"]
    found += [f"{skip.get('workload')} skipped: {skip['reason']}" for skip in document.get("skipped", [])]
    found += [*stock_note(document), *document.get("warnings", [])]
    return found + [f"{row.get('device')}, {label(row)}, boot {failure['boot']} round {failure['round']} failed: "
                    f"{failure['reason']}" for row in document["rows"] for failure in row["failures"]]


def extra(row: Row) -> Record:
    """The further columns of a line of CSV."""
    figures = cast(Mapping[str, float | None], row)
    return {key: figures.get(key) for key in COLUMNS}
