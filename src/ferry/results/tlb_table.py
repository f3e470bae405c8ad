# SPDX-License-Identifier: GPL-2.0
"""The table of `ferry bench tlb`: workloads down; what moving pages cost with the baseline and with migrc across."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ferry.results.document import KIND_NOTES, UNIT_NAMES, Document, Row, TlbRow, rows_of
from ferry.results.formats import Grid, Record, figure

NAME = "tlb"
#: Key of a row's counts and heading: the baseline's and ours stand one above the other.
COLUMNS = {"ipis": "TLB shootdown IPIs", "ipis_per_1000_moves": "IPIs per\n1,000 migrated pages",
           "flushes": "remote TLB flushes", "moved_pages": "pages moved",
           "kept_kb": "kB less free\nafterwards"}


def grid(document: Document) -> Grid:
    """The table for people."""
    rows = [[[row["device"]], *(pair(row, key) for key in COLUMNS), gone(row), speed(row)] for row in rows_of(document)]
    headings = ["", *COLUMNS.values(), "IPIs gone\nflushes gone", "speed"]
    title = f"tlb on {document['board']}: {document['baseline']} above, migrc below"
    return Grid(f"{title} ({KIND_NOTES[document['kind']]}; counts hold everywhere)", headings, rows,
                [*notes(document), f"speed: ratio to {document['baseline']} [95 % interval], above 1 is better"])


def figures(row: TlbRow) -> Mapping[str, float | None]:
    """The row's figures by keys that are put together."""
    return cast(Mapping[str, float | None], row)


def pair(row: TlbRow, key: str) -> list[str]:
    """The baseline's figure and ours."""
    return [number(figures(row)[f"baseline_{key}"]), number(figures(row)[key])]


def number(value: float | None) -> str:
    return "-" if value is None else figure(value) if value % 1 else f"{value:,.0f}"


def gone(row: TlbRow) -> list[str]:
    """The shares of the baseline's events that did not happen."""
    return [percent(row["ipi_reduction"]), percent(row["flush_reduction"])]


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def speed(row: TlbRow) -> list[str]:
    """Moves or lookups a second, and the ratio."""
    unit, ratio = row["unit"], row["ratio_to_baseline"]
    lines = [f"{number(figures(row)[key])} {UNIT_NAMES[unit]}" for key in (f"baseline_{unit}", unit)]
    if ratio:
        interval = "too few samples" if ratio["ci95"] is None else "{:.3f}, {:.3f}".format(*ratio["ci95"])
        lines.append(f"{ratio['median']:.3f} [{interval}]")
    return lines + [f"{len(row['failures'])} failed"] * bool(row["failures"])


def notes(document: Document) -> list[str]:
    """How to read the cells, and everything that did not go as asked."""
    limits = {row["max_bytes"] for row in rows_of(document)}
    found = ["medians of one sample's counts, until nothing was deferred any more; "
             "shares gone are per 1,000 migrated pages"]
    found += [f"quarantine of at most {limit:,} bytes" for limit in sorted(filter(None, limits))]
    ages = {row.get("max_age_ms") for row in rows_of(document)}
    found += [f"what waits for its flush waits {age:,} ms at most" for age in sorted(filter(None, ages))]
    found += [f"{skip['workload']} skipped: {skip['reason']}" for skip in document.get("skipped", [])]
    found += document.get("warnings", [])
    return found + [f"{row['device']}, boot {failure['boot']} round {failure['round']} failed: {failure['reason']}"
                    for row in document["rows"] for failure in row["failures"]]


def extra(row: Row) -> Record:
    """What a line of CSV has beside the columns of every bench."""
    return {key: value for key, value in row.items() if key in FIGURES}


#: Keys of this bench's rows that hold one figure each, and the ratio that names a row.
FIGURES = TlbRow.__annotations__.keys() - Row.__annotations__.keys() - {"nodes", "runs", "migrc"}
