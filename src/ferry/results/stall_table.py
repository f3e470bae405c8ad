# SPDX-License-Identifier: GPL-2.0
"""The table of `ferry bench stall`: configurations down; requests, waiting and round trips across.

Also the column of stalls that stands beside the speed in the table of `ferry bench move_pages`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ferry.results.document import KIND_NOTES, Document, Row, StallRow, is_baseline, label, stock_note
from ferry.results.formats import Grid, Record, figure, ratio_text

NAME = "stall"
#: Key of a figure in a row, and the heading of its column.
COLUMNS = {"requests_per_second": "requests/s", "p50_us": "p50 µs", "p99_us": "p99 µs", "p999_us": "p99.9 µs",
           "max_us": "longest µs", "round_trips_per_second": "round trips/s", "failed_folios": "failed folios"}
#: Columns that a table has if one of its rows has the figure.
OPTIONAL = {"waits": "waits", "locked_p99_us": "locked p99 µs"}
#: Of a row of another bench: key, and the line of the heading.
BESIDE = {"stall_p50_us": "p50", "stall_p99_us": "p99", "stall_p999_us": "p99.9", "stall_max_us": "longest"}
BESIDE_HEADING = "\n".join(["stall µs", *BESIDE.values()])


def grid(document: Document) -> Grid:
    """The table for people."""
    columns = COLUMNS | {key: text for key, text in OPTIONAL.items() if any(key in row for row in document["rows"])}
    rows = [[[row.get("workload", ""), _name(document, row)], *(_cell(cast(StallRow, row), key) for key in columns)]
            for row in document["rows"]]
    title = f"stall on {document['board']}: users of memory that moves all the time ({KIND_NOTES[document['kind']]})"
    return Grid(title, ["", *columns.values()], rows, notes(document))


def _name(document: Document, row: Row) -> str:
    return f"{label(row)} (baseline)" if is_baseline(document, row) else label(row)


def _cell(row: StallRow, key: str) -> list[str]:
    if key == "locked_p99_us":
        return [_locked(row)]
    if key == "waits":
        return [f"{row['waits']:,.0f}" if row.get("waits") is not None else "-"]
    value = cast(Mapping[str, float | None], row)[key]
    if value is None:
        return ["no sample"]
    ratio = row["ratios"].get(key)
    return [figure(value), *([ratio_text(ratio)] if ratio else [])]


def _locked(row: StallRow) -> str:
    """The bound, as far as the kernel's histogram tells."""
    if "locked_p99_us" not in row:
        return "-"
    bound = row["locked_p99_us"]
    return "above all bounds" if bound is None else f"<= {bound:,.0f}"


def notes(document: Document) -> list[str]:
    """How to read the cells, and everything that did not go as asked."""
    found = ["medians over the samples; a percentile is that of the requests of one sample",
             f"below: ratio to {document['baseline']} [95 % interval], above 1 is better"]
    if any("waits" in row for row in document["rows"]):
        found.append("waits: the requests of one sample in which the thread slept; p99.9 of fewer than 1,000 is the "
                     "longest, and so is p99 of fewer than 100")
    if any("locked_p99_us" in row for row in document["rows"]):
        found.append("locked p99: 99 % of the batches of all samples kept their folios locked for no longer than this")
    found += [f"{skip.get('workload')} skipped: {skip['reason']}" for skip in document.get("skipped", [])]
    found += [*stock_note(document), *document.get("warnings", [])]
    return found + [f"{row.get('workload')}, {label(row)}, boot {failure['boot']} round {failure['round']} failed: "
                    f"{failure['reason']}" for row in document["rows"] for failure in row["failures"]]


def has_stalls(row: Row) -> bool:
    """Whether a row of another bench has the keys of BESIDE."""
    return "stall_samples" in row


def beside(row: Row | None) -> list[str]:
    """The cell under BESIDE_HEADING."""
    if row is None or not has_stalls(row):
        return ["-"]
    values = [cast(Mapping[str, float | None], row)[key] for key in BESIDE]
    none = "no wait" if row["stall_samples"] else "no sample"
    return [figure(value) for value in values if value is not None] or [none]


def beside_notes(document: Document) -> list[str]:
    """How to read the column, or why there is none."""
    if reason := document.get("no_stalls"):
        return [f"no stalls: {reason}"]
    counts = sorted({sum("p50_us" in sample for sample in row["stall_samples"])
                     for row in document["rows"] if has_stalls(row)})
    if not counts:
        return []
    samples = "-".join(str(count) for count in dict.fromkeys([counts[0], counts[-1]]))
    return [f"stall: how long a thread takes to touch memory that moves, medians of {samples} short samples: 64 random "
            "pages of 4 KiB; one page of a 2 MiB folio, if the thread slept. `ferry bench stall` compares more samples"]


def extra_beside(row: Row) -> Record:
    """The further columns of a line of CSV of another bench."""
    return {key: value for key, value in row.items() if key in BESIDE}


def extra(row: Row) -> Record:
    """The further columns of a line of CSV."""
    figures = cast(Mapping[str, float | None], row)
    return {key: figures[key] for key in COLUMNS} | {key: figures[key] for key in OPTIONAL if key in figures}
