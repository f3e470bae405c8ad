# SPDX-License-Identifier: GPL-2.0
"""The tables of `ferry bench tiering`: configurations down; users and moves, each tenant, pages by reason across."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ferry.results.document import KIND_NOTES, Document, Row, TieringRow, is_baseline, label, stock_note
from ferry.results.formats import Grid, Record, figure, ratio_text

NAME = "tiering"
#: Key of a figure in a row, and the heading of its column. The rate of a workload comes first.
COLUMNS = {"slowest_touches_per_second": "slowest tenant", "p50_us": "p50 µs", "p99_us": "p99 µs",
           "p999_us": "p99.9 µs", "max_us": "longest µs", "promotions": "promoted\npages",
           "demotions": "demoted\npages", "promotions_per_second": "promotions/s", "shootdowns": "TLB\nshootdowns",
           "shootdowns_per_1000_pages": "shootdowns per\n1,000 pages"}


def grids(document: Document) -> list[Grid]:
    """The tables for people; that of the tenants if there are any, and of the reasons if a kernel counted by reason."""
    rows = [cast(TieringRow, row) for row in document["rows"]]
    title = f"tiering on {document['board']}: users of memory that changes tiers ({KIND_NOTES[document['kind']]})"
    body = [[_name(document, row), _rate(row), *(_cell(row, key) for key in COLUMNS)] for row in rows]
    main = Grid(title, ["", "touches/s or\nrequests/s", *COLUMNS.values()], body, notes(document))
    return [main, *([_tenants(document, rows)] if any(row["tenants"] for row in rows) else []),
            *([_reasons(document, rows)] if any(row["by_reason"] for row in rows) else [])]


def _tenants(document: Document, rows: list[TieringRow]) -> Grid:
    places = {row.get("device"): range(len(row["tenants"])) for row in rows if row["tenants"]}
    body = [[_name(document, row), *(_with_ratio(row, f"tenant_{number}", dict(enumerate(row["tenants"])).get(number))
                                     for number in places[row.get("device")])]
            for row in rows if row.get("device") in places]
    return Grid(f"touches/s of each tenant, tiering on {document['board']} ({KIND_NOTES[document['kind']]})",
                ["", *(f"tenant {number}" for number in max(places.values(), key=len))], body)


def _reasons(document: Document, rows: list[TieringRow]) -> Grid:
    names = sorted({name for row in rows for name in row["by_reason"]})
    body = [[_name(document, row), *([f"{row['by_reason'].get(name, 0):,}"] for name in names),
             [f"{sum(row['by_reason'].values()):,}"]] for row in rows if row["kernel"] != "stock"]
    return Grid(f"pages that moved for each reason, tiering on {document['board']}", ["", *names, "sum"], body,
                ["of all good samples together; in each sample the sum is the growth of pgmigrate_success"])


def _name(document: Document, row: TieringRow) -> list[str]:
    name = f"{label(row)} (baseline)" if is_baseline(document, row) else label(row)
    return [f"{row.get('workload', '')}, {row['policy']}", name]


def _rate(row: TieringRow) -> list[str]:
    return _with_ratio(row, row["unit"], row["median"])


def _cell(row: TieringRow, key: str) -> list[str]:
    values = cast(Mapping[str, float | None], row)
    return _with_ratio(row, key, values[key]) if key in values else ["-"]


def _with_ratio(row: TieringRow, key: str, value: float | None) -> list[str]:
    if value is None:
        return ["no sample"]
    ratio = row["ratios"].get(key)
    return [figure(value), *([ratio_text(ratio)] if ratio else [])]


def notes(document: Document) -> list[str]:
    """How to read the cells, and everything that did not go as asked."""
    found = ["medians over the samples; pages and shootdowns are those of one sample, a percentile is that of its "
             "touches or requests",
             f"below: ratio to {document['baseline']} [95 % interval], above 1 is better"]
    found += [f"{skip.get('workload')} skipped: {skip['reason']}" for skip in document.get("skipped", [])]
    found += [*stock_note(document), *document.get("warnings", [])]
    return found + [f"{row.get('device')}, {label(row)}, boot {failure['boot']} round {failure['round']} failed: "
                    f"{failure['reason']}" for row in document["rows"] for failure in row["failures"]]


def extra(row: Row) -> Record:
    """The further columns of a line of CSV."""
    values, one = cast(Mapping[str, float | None], row), cast(TieringRow, row)
    return {"policy": one["policy"], **{key: values.get(key) for key in COLUMNS},
            **{f"tenant_{number}": touches for number, touches in enumerate(one["tenants"])},
            **{f"moved_for_{name}": pages for name, pages in one["by_reason"].items()}}
