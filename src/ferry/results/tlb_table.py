# SPDX-License-Identifier: GPL-2.0
"""The table of `ferry bench tlb`: workloads down; events, pages and speed across, the baseline's above migrc's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ferry.results.document import KIND_NOTES, UNIT_NAMES, Document, Row, TlbRow, baseline_of, label, rows_of
from ferry.results.formats import Grid, Record, figure, ratio_text

NAME = "tlb"
#: Key of a figure in a row, and the heading of its column.
COLUMNS = {"ipis": "TLB shootdown IPIs", "ipis_per_1000_moves": "IPIs per\n1,000 migrated pages",
           "flushes": "remote TLB flushes", "moved_pages": "pages moved",
           "kept_kb": "kB less free\nafterwards"}


def grid(document: Document) -> Grid:
    """The table for people."""
    rows = [[[row["device"]], *([number(figures(side)[key]) for side in (base, row)] for key in COLUMNS),
             [percent(row["ipi_reduction"]), percent(row["flush_reduction"])], speed(base, row)]
            for base, row in pairs(document)]
    headings = ["", *COLUMNS.values(), "IPIs gone\nflushes gone", "speed"]
    title = f"tlb on {document['board']}: {document['baseline']} above, migrc below"
    return Grid(f"{title} ({KIND_NOTES[document['kind']]}; counts hold everywhere)", headings, rows,
                [*notes(document), f"speed: ratio to {document['baseline']} [95 % interval], above 1 is better"])


def pairs(document: Document) -> list[tuple[TlbRow, TlbRow]]:
    """The baseline's row and migrc's, of each workload."""
    return [(cast(TlbRow, base), row) for row in rows_of(document)
            if "migrc" in row and (base := baseline_of(document, row))]


def figures(row: TlbRow) -> Mapping[str, float | None]:
    """The row's figures by the keys of COLUMNS."""
    return cast(Mapping[str, float | None], row)


def number(value: float | None) -> str:
    return "-" if value is None else figure(value) if value % 1 else f"{value:,.0f}"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def speed(base: TlbRow, row: TlbRow) -> list[str]:
    """Moves or lookups a second, and the ratio."""
    ratio = row["ratio_to_baseline"]
    lines = [f"{number(side['median'])} {UNIT_NAMES[row['unit']]}" for side in (base, row)]
    if ratio:
        lines.append(ratio_text(ratio))
    failed = len(base["failures"]) + len(row["failures"])
    return lines + [f"{failed} failed"] * bool(failed)


def notes(document: Document) -> list[str]:
    """How to read the cells, and everything that did not go as asked."""
    limits = {row.get("max_bytes") for row in rows_of(document)}
    found = ["medians of one sample's counts, until no flush was deferred any more; "
             "shares gone are per 1,000 migrated pages"]
    found += [f"quarantine of at most {limit:,} bytes" for limit in sorted(filter(None, limits))]
    ages = {row.get("max_age_ms") for row in rows_of(document)}
    found += [f"a flush is deferred by at most {age:,} ms" for age in sorted(filter(None, ages))]
    found += [f"{skip['workload']} skipped: {skip['reason']}" for skip in document.get("skipped", [])]
    found += document.get("warnings", [])
    return found + [f"{row['device']}, {label(row)}, boot {failure['boot']} round {failure['round']} failed: "
                    f"{failure['reason']}" for row in document["rows"] for failure in row["failures"]]


def extra(row: Row) -> Record:
    """The columns of a CSV line that only this bench has."""
    return {key: value for key, value in row.items() if key in FIGURES}


#: Keys of this bench's rows that hold one figure each, and the ratio that names a row.
FIGURES = TlbRow.__annotations__.keys() - Row.__annotations__.keys() - {"nodes", "events", "migrc"}
