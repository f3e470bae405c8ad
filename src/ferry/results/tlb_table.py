# SPDX-License-Identifier: GPL-2.0
"""The table of `ferry bench tlb`: workloads down, in each the sides one above the other; events and pages across."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import cast

from ferry.results.document import (
    EVENTS,
    KIND_NOTES,
    UNIT_NAMES,
    Document,
    Row,
    TlbRow,
    label,
    rows_of,
    stock_note,
)
from ferry.results.formats import Grid, Record, figure, ratio_text

NAME = "tlb"
#: Key of a figure in a row, and the heading of its column.
COLUMNS = {"ipis": "TLB shootdown\nIPIs", "flushes": "remote TLB\nflushes", "migrated_pages": "migrated\npages",
           "kept_kb": "kB less free\nafterwards"}
#: Columns that a table has if one of its rows has the figure.
OPTIONAL = {"calls": "mm calls", "calls_per_second": "of a process\nin a second"}


def grid(document: Document) -> Grid:
    """The table for people."""
    rows = rows_of(document)
    columns = COLUMNS | {key: text for key, text in OPTIONAL.items() if any(key in row for row in rows)}
    timed = any(row["unit"] != EVENTS for row in rows)
    body = [[[sides[0]["device"]], [label(side) for side in sides],
             *([number(figures(side).get(key)) for side in sides] for key in columns),
             *([ratio(side, key) for side in sides] for key in ("ipis", "flushes")),
             *([[speed(side) for side in sides]] if timed else [])] for sides in groups(rows)]
    base = document["baseline"]
    headings = ["", "", *columns.values(), f"IPIs: ratio\nto {base}", f"flushes: ratio\nto {base}",
                *(["speed"] if timed else [])]
    title = f"tlb on {document['board']} ({KIND_NOTES[document['kind']]}; counts hold everywhere)"
    return Grid(title, headings, body, notes(document))


def groups(rows: Iterable[TlbRow]) -> list[list[TlbRow]]:
    """The rows of each workload, which follow each other."""
    return [list(sides) for _, sides in groupby(rows, key=lambda row: row["device"])]


def figures(row: TlbRow) -> Mapping[str, float | None]:
    """The row's figures by the keys of COLUMNS and OPTIONAL."""
    return cast(Mapping[str, float | None], row)


def number(value: float | None) -> str:
    return "-" if value is None else figure(value) if value % 1 else f"{value:,.0f}"


def ratio(row: TlbRow, events: str) -> str:
    """The ratio to the baseline with its interval, or the share that is gone; "" for the baseline itself."""
    if "ratios" not in row:
        return ""
    found, share = row["ratios"][events], row["ipi_reduction" if events == "ipis" else "flush_reduction"]
    return ratio_text(found) if found else "-" if share is None else f"{share:.1%} gone"


def speed(row: TlbRow) -> str:
    """Moves or lookups a second, and the ratio; "" for a row of events only."""
    if row["unit"] == EVENTS:
        return ""
    ratio = row["ratio_to_baseline"]
    return f"{number(row['median'])} {UNIT_NAMES[row['unit']]}" + (f" · {ratio_text(ratio)}" if ratio else "")


def notes(document: Document) -> list[str]:
    """How to read the cells, and everything that did not go as asked."""
    rows = rows_of(document)
    found = ["medians of one sample's counts, until no flush was deferred any more; ratios and shares are of the "
             "events per 1,000 migrated pages",
             "a ratio above 1 is better: fewer events than the baseline's; [95 % interval]"]
    limits, ages = {row.get("max_bytes") for row in rows}, {row.get("max_age_ms") for row in rows}
    found += [f"quarantine of at most {limit:,} bytes" for limit in sorted(filter(None, limits))]
    found += [f"a flush is deferred by at most {age:,} ms" for age in sorted(filter(None, ages))]
    found += [f"{skip['workload']} skipped: {skip['reason']}" for skip in document.get("skipped", [])]
    found += [*stock_note(document), *document.get("warnings", [])]
    return found + [f"{row['device']}, {label(row)}, boot {failure['boot']} round {failure['round']} failed: "
                    f"{failure['reason']}" for row in document["rows"] for failure in row["failures"]]


def extra(row: Row) -> Record:
    """The columns of a CSV line that only this bench has."""
    return {key: value for key, value in row.items() if key in FIGURES}


#: Keys of this bench's rows that hold one figure each, and those that name a row.
FIGURES = TlbRow.__annotations__.keys() - Row.__annotations__.keys() - {"nodes", "events", "migrc"}
