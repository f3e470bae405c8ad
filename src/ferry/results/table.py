# SPDX-License-Identifier: GPL-2.0
"""A document in the shape such results have on the mailing list: configurations down, folio sizes across."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.results import breakdown_table, compaction_table, figures, stall_table, tiering_table, tlb_table
from ferry.results.document import (
    KIND_NOTES,
    UNIT_NAMES,
    Document,
    Ratio,
    Row,
    column,
    failure_count,
    is_baseline,
    label,
    stock_note,
)
from ferry.results.formats import Grid, Output, Record, column_name, figure, ratio_record, ratio_text, size_name

#: The keys of a row that are one line of CSV as they are.
PLAIN = ("kernel", "migrator", "threads", "channels", "folio_bytes", "total_bytes", "unit", "median", "mad")
#: Of each bench with further figures, the headings of their columns by key.
HEADINGS = {stall_table.NAME: stall_table.COLUMNS, tiering_table.NAME: tiering_table.COLUMNS,
            compaction_table.NAME: compaction_table.COLUMNS}


def output(documents: Sequence[Document]) -> Output:
    """One document is printed as itself, several as the list that result.json is."""
    return Output(
        grids=[grid for document in documents for grid in grids(document)],
        data=documents[0] if len(documents) == 1 else list(documents),
        records=[record(document, row) for document in documents for row in document["rows"]],
    )


def grids(document: Document) -> list[Grid]:
    """The tables for people."""
    if document["bench"] == breakdown_table.NAME:
        return breakdown_table.grids(document)
    if document["bench"] == tiering_table.NAME:
        return tiering_table.grids(document)
    if document["bench"] == compaction_table.NAME:
        return compaction_table.grids(document)
    return [grid(document)]


def grid(document: Document) -> Grid:
    """The one table of most benches."""
    if document["bench"] == tlb_table.NAME:
        return tlb_table.grid(document)
    if document["bench"] == stall_table.NAME:
        return stall_table.grid(document)
    columns = sorted({column(row) for row in document["rows"]})
    cells = {(row_name(document, row), column(row)): row for row in document["rows"]}
    stalled = {column(row) for row in document["rows"] if stall_table.has_stalls(row)}
    headings = [text for place in columns
                for text in (column_name(place), *([stall_table.BESIDE_HEADING] if place in stalled else []))]
    rows = [[[name], *(text for place in columns for text in cells_of(cells.get((name, place)), place in stalled))]
            for name in dict.fromkeys(name for name, _ in cells)]
    return Grid(title(document), ["", *headings], rows, notes(document))


def cells_of(row: Row | None, stalled: bool) -> list[list[str]]:
    """The cell of a row in one column, and the one beside it if the column has stalls."""
    return [cell(row), *([stall_table.beside(row)] if stalled else [])]


def heading(document: Document, key: str) -> str:
    """The name of a further figure: the heading of its column, or its key in words, such as `tenant 0`."""
    return HEADINGS[document["bench"]].get(key, key.replace("_", " "))


def row_name(document: Document, row: Row) -> str:
    """The row's label, marked if it is the baseline."""
    return f"{label(row)} (baseline)" if is_baseline(document, row) else label(row)


def title(document: Document) -> str:
    """The bench, its workloads, the board, the units and the kind of figure."""
    units = "/".join(sorted({UNIT_NAMES[row["unit"]] for row in document["rows"]}))
    workloads = "; ".join(sorted({row["workload"] for row in document["rows"] if "workload" in row}))
    what = " of ".join(filter(None, [document["bench"], workloads]))
    return f"{what} on {document['board']}, {units} ({KIND_NOTES[document['kind']]})"


def cell(row: Row | None) -> list[str]:
    """The median and its spread, the ratio and its interval, and the number of failed samples."""
    if row is None:
        return ["-"]
    lines = []
    if row["median"] is not None:
        lines.append(f"{figure(row['median'])} ±{spread(row['mad'] or 0.0)}")
    if row["ratio_to_baseline"] is not None:
        lines.append(ratio_text(row["ratio_to_baseline"]))
    lines += [f"{name}: {ratio_text(ratio)}" for name, ratio in other_ratios(row)]
    if ratio := row.get("ratio_to_sum"):
        lines.append(f"of the sum: {ratio_text(ratio)}")
    if row["failures"]:
        lines.append(f"{len(row['failures'])} failed")
    return lines or ["no sample"]


def other_ratios(row: Row) -> list[tuple[str, Ratio]]:
    """Ratios to other rows than the baseline, by that row's name."""
    found = (("off", row.get("ratio_to_off")), ("threads", row.get("ratio_to_threads")),
             ("limit", row.get("ratio_to_limit")))
    return [(name, ratio) for name, ratio in found if ratio]


def spread(value: float) -> str:
    """A spread with two significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.2g}".rstrip(".")


def notes(document: Document) -> list[str]:
    """How to read the cells, and everything that did not go as asked."""
    counts = sorted({len(row["samples"]) for row in document["rows"]}) or [0]
    samples = "-".join(str(count) for count in dict.fromkeys([counts[0], counts[-1]]))
    found = [f"median ±median absolute deviation of {samples} samples",
             f"ratio to {document['baseline']} [95 % interval], above 1 is better"]
    others = dict.fromkeys(name for row in document["rows"] for name, _ in other_ratios(row))
    found += [f"{name}: the ratio to that row instead" for name in others]
    if any("ratio_to_sum" in row for row in document["rows"]):
        found += ["engine: speed of a channel, in multiples of a CPU's copy rate",
                  "of the sum: the copies' rate to that of the row's channels and one CPU together"]
    found += stall_table.beside_notes(document)
    found += [f"{size_name(skip['folio_bytes'])} skipped: {skip['reason']}" for skip in document.get("skipped", [])]
    found += [*stock_note(document), *document.get("warnings", [])]
    found += [f"{label(row)} at {size_name(row['folio_bytes'])}, boot {failure['boot']} round {failure['round']} "
              f"failed: {failure['reason']}" for row in document["rows"] for failure in row["failures"]]
    return found + ["failed samples are in no median"] * bool(failure_count(document))


def engine_figures(row: Row) -> Record:
    """The further columns of a line of CSV, of rows with engines of a given speed."""
    if "engine_rate" not in row:
        return {}
    return {"engine_rate": row["engine_rate"], **ratio_record("ratio_to_sum", row.get("ratio_to_sum"))}


def record(document: Document, row: Row) -> Record:
    """One line of CSV; samples and their [boot, round] are separated by blanks."""
    ratio = row["ratio_to_baseline"]
    low, high = ratio["ci95"] if ratio and ratio["ci95"] else (None, None)
    return {
        "bench": document["bench"], "board": document["board"], "kind": document["kind"],
        "baseline": document["baseline"], "config": label(row),
        **{key: value for key, value in row.items() if key in PLAIN},
        "runs": row.get("runs"), "pages_per_call": row.get("pages_per_call"), "order": row.get("order"),
        "store": row.get("store"), "workload": row.get("workload"), "device": row.get("device"),
        "ratio_to_baseline": ratio and ratio["median"], "ratio_ci95_low": low, "ratio_ci95_high": high,
        "samples": " ".join(repr(sample) for sample in row["samples"]),
        "sample_ids": " ".join(f"{boot}:{turn}" for boot, turn in row["sample_ids"]),
        "failures": len(row["failures"]),
        **{key: value for name, other in other_ratios(row)
           for key, value in ratio_record(f"ratio_to_{name}", other).items()},
        **engine_figures(row),
        **stall_table.extra_beside(row),
        **(tlb_table.extra(row) if document["bench"] == tlb_table.NAME else {}),
        **(stall_table.extra(row) if document["bench"] == stall_table.NAME else {}),
        **(tiering_table.extra(row) if document["bench"] == tiering_table.NAME else {}),
        **(compaction_table.extra(row) if document["bench"] == compaction_table.NAME else {}),
        **(breakdown_table.extra(row) if document["bench"] == breakdown_table.NAME else {}),
        **figures.records(row),
    }
