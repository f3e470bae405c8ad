# SPDX-License-Identifier: GPL-2.0
"""The table of `ferry bench compaction`, in the form of the mailing list's: modes down; time, pages and CPU across."""

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
#: Key of a figure in a row, and the heading of its column.
COLUMNS = {"wall_ms": "wall time\nms", "migrated": "migrated\npages", "copied_by_migrator": "copied by\na migrator",
           "hog_iterations": "hog\niterations", "user_percent": "user %", "sys_percent": "sys %",
           "idle_percent": "idle %", "thread_ms": "CPU time of\nthe thread, ms", "allocated": "blocks\nin all"}


def grid(document: Document) -> Grid:
    """The table for people."""
    rows = [[[row.get("device", ""), _name(document, row)], *(_cell(cast(CompactionRow, row), key) for key in COLUMNS),
             _figure(row)] for row in document["rows"]]
    unit = UNIT_NAMES[document["rows"][0]["unit"]] if document["rows"] else ""
    title = f"compaction on {document['board']} ({KIND_NOTES[document['kind']]})"
    return Grid(title, ["", *COLUMNS.values(), unit], rows, notes(document))


def _name(document: Document, row: Row) -> str:
    return f"{label(row)} (baseline)" if is_baseline(document, row) else label(row)


def _cell(row: CompactionRow, key: str) -> list[str]:
    value = cast(Mapping[str, float | None], row)[key]
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
    return {key: figures[key] for key in (*COLUMNS, "sys_ms")}
