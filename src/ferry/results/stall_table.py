# SPDX-License-Identifier: GPL-2.0
"""The table of `ferry bench stall`: configurations down; requests, waiting and round trips across."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ferry.results.document import KIND_NOTES, Document, Row, StallRow, is_baseline, label, stock_note
from ferry.results.formats import Grid, Record, figure, ratio_text

NAME = "stall"
#: Key of a figure in a row, and the heading of its column.
COLUMNS = {"requests_per_second": "requests/s", "p50_us": "p50 µs", "p99_us": "p99 µs", "p999_us": "p99.9 µs",
           "max_us": "longest µs", "round_trips_per_second": "round trips/s", "failed_folios": "failed folios"}


def grid(document: Document) -> Grid:
    """The table for people."""
    rows = [[[row.get("workload", ""), _name(document, row)], *(_cell(cast(StallRow, row), key) for key in COLUMNS)]
            for row in document["rows"]]
    title = f"stall on {document['board']}: users of memory that moves all the time ({KIND_NOTES[document['kind']]})"
    return Grid(title, ["", *COLUMNS.values()], rows, notes(document))


def _name(document: Document, row: Row) -> str:
    return f"{label(row)} (baseline)" if is_baseline(document, row) else label(row)


def _cell(row: StallRow, key: str) -> list[str]:
    value = cast(Mapping[str, float | None], row)[key]
    if value is None:
        return ["no sample"]
    ratio = row["ratios"].get(key)
    return [figure(value), *([ratio_text(ratio)] if ratio else [])]


def notes(document: Document) -> list[str]:
    """How to read the cells, and everything that did not go as asked."""
    found = ["medians over the samples; a percentile is that of the requests of one sample",
             f"below: ratio to {document['baseline']} [95 % interval], above 1 is better"]
    found += [f"{skip.get('workload')} skipped: {skip['reason']}" for skip in document.get("skipped", [])]
    found += [*stock_note(document), *document.get("warnings", [])]
    return found + [f"{row.get('workload')}, {label(row)}, boot {failure['boot']} round {failure['round']} failed: "
                    f"{failure['reason']}" for row in document["rows"] for failure in row["failures"]]


def extra(row: Row) -> Record:
    """The further columns of a line of CSV."""
    figures = cast(Mapping[str, float | None], row)
    return {key: figures[key] for key in COLUMNS}
