# SPDX-License-Identifier: GPL-2.0
"""Two runs side by side: how much better B is than A, row by row, and whether the difference is more than noise.

Of emulated and native figures the two runs' ratios to their baselines are compared: the first mean nothing by
themselves, and the second differ from boot to boot, and on a busy host from hour to hour, by more than the interval of
one boot says. Instruction counts are compared as they are.
"""

from __future__ import annotations

from typing import Any, Literal, cast

from ferry.errors import UsageError
from ferry.results import figures, formats, stats, table, tlb_events
from ferry.results.document import (
    EVENTS,
    LOCAL,
    SCHEMA,
    TOTAL,
    Document,
    Ratio,
    Row,
    TlbRow,
    baseline_of,
    column,
    identity,
    is_baseline,
    is_cost,
    label,
)

Verdict = Literal["better", "same", "worse", "regression", "unknown", "failed", "missing", "new"]

#: The verdicts that make `ferry compare` exit 1: no measurement of A may be missing in B.
BAD = frozenset({"regression", "failed", "missing"})


def compare(before: Document, after: Document, threshold: float) -> dict[str, Any]:
    """Every row of both documents with the ratio of B to A (above 1 is better) and a verdict."""
    old = {identity(row): row for row in before["rows"] if _comparable(before, row)}
    new = {identity(row): row for row in after["rows"] if _comparable(after, row)}
    entries = [entry for key in {**old, **new}
               if (entry := _entry(before, after, old.get(key), new.get(key), threshold))]
    entries += [entry for row in after["rows"] if (was := old.get(identity(row)))
                for entry in _events(before, after, cast(TlbRow, was), cast(TlbRow, row), threshold)]
    entries += [entry for key, row in new.items() if (was := old.get(key))
                for entry in _further(before, after, was, row, threshold)]
    nothing = ["nothing was compared: neither run has a row beside its baseline"] * (not entries)
    warnings = [*_warnings(before, after), *nothing, *_reported("A", before), *_reported("B", after)]
    return {"bench": after["bench"], "board": after["board"], "kind": after["kind"], "threshold": threshold,
            "basis": _basis(before), "warnings": warnings, "rows": entries}


def _comparable(document: Document, row: Row) -> bool:
    """A ratio of the baseline is 1 by definition; of a breakdown, the total says whether something got worse."""
    return row.get("phase", TOTAL) == TOTAL and not (_by_ratio(document) and is_baseline(document, row))


def _by_ratio(document: Document) -> bool:
    """Whether rows are compared by their ratios to the baseline, not by their own figures."""
    return document["kind"] != "instructions"


def _basis(document: Document) -> str:
    return f"ratio to {document['baseline']}" if _by_ratio(document) else "samples"


def _warnings(before: Document, after: Document) -> list[str]:
    """Reasons why the two runs are less comparable than they look."""
    found = []
    cpus = [document["meta"].get("host", {}).get("cpu") for document in (before, after)]
    if after["kind"] == "native" and cpus[0] != cpus[1]:
        found.append(f"measured on different CPUs: {cpus[0]}; {cpus[1]}")
    ways = [document["meta"].get("accelerator") for document in (before, after)]
    if None not in ways and ways[0] != ways[1]:
        found.append(f"not measured in the same way: {ways[0]}; {ways[1]}")
    if before["board"] != after["board"]:
        found.append(f"measured on {before['board']} and on {after['board']}, which may be different machines")
    return found


def _reported(side: str, document: Document) -> list[str]:
    """The warnings of one of the runs, and its failed samples."""
    found = [*document.get("warnings", [])]
    for row in document["rows"]:
        if row["failures"]:
            reasons = "; ".join(sorted({failure["reason"] for failure in row["failures"]}))
            found.append(f"{label(row)}, {_place(row)['column']}: {len(row['failures'])} samples failed: {reasons}")
    # Of a breakdown, each phase of a case has the same.
    return [f"{side}: {text}" for text in dict.fromkeys(found)]


def _entry(before: Document, after: Document, old: Row | None, new: Row | None,
           threshold: float) -> dict[str, Any] | None:
    """The entry of a row; None where _events() says all of it."""
    row = new or old
    assert row is not None
    entry: dict[str, Any] = {"config": _name(row), **_place(row), "unit": row["unit"], "ratio": None}
    if old is None or new is None:
        return entry | {"verdict": "new" if old is None else "missing"}
    groups = _groups(before, old, old["unit"]), _groups(after, new, new["unit"])
    if not groups[1] or len(new["failures"]) > len(new["samples"]):
        return entry | {"verdict": "failed"}
    if not groups[0]:
        return entry | {"verdict": "new"}
    if row["unit"] == EVENTS:
        return None
    found = _judged(*groups, not _by_ratio(before) and is_cost(row["unit"]), threshold)
    return entry | found | ({"verdict": "failed"} if _lost(*groups, new) else {})


def _name(row: Row) -> str:
    """The row's label, and of auto the threads, which all rows of one run share and two runs may not."""
    return f"{label(row)}, threads {row['threads']}" if row["migrator"] == "auto" else label(row)


def _place(row: Row) -> dict[str, Any]:
    return {"column": formats.column_name(column(row)).replace("\n", ", "), "folio_bytes": row["folio_bytes"],
            "total_bytes": row["total_bytes"]}


def _events(before: Document, after: Document, old: TlbRow, new: TlbRow, threshold: float) -> list[dict[str, Any]]:
    """Of `ferry bench tlb` the IPIs and the flushes beside the baseline's, as far as that has any."""
    entries = []
    both = [(row.get("ipi_reduction"), row.get("flush_reduction")) for row in (old, new)]
    bases = [cast(TlbRow, baseline_of(document, row)) for document, row in ((before, old), (after, new))]
    for key, name, was, now in zip(tlb_events.PER_1000, ("IPIs", "flushes"), *both, strict=True):
        if was is not None:
            entry = {"config": f"{_name(new)}: {name}", **_place(new), "unit": f"{key}_per_1000_pages", "ratio": None}
            entries.append(entry | ({"verdict": "failed"} if now is None else
                                    _events_judged([old, new], bases, key, threshold)))
    return entries


def _events_judged(rows: list[TlbRow], bases: list[TlbRow], key: str, threshold: float) -> dict[str, Any]:
    """By the ratios to the baseline, or, where a sample has no event, by the shares of the baseline's that are left."""
    old, new = (tlb_events.ratios(row, base, key) for row, base in zip(rows, bases, strict=True))
    if old and new:
        found = _judged(old, new, False, threshold)
    else:
        old, new = (tlb_events.left(row, base, key) for row, base in zip(rows, bases, strict=True))
        was, now = (stats.median(stats.flat(groups)) for groups in (old, new))
        found = {"verdict": _left_verdict(stats.differ(old, new), was, now, threshold), "share_a": 1 - was,
                 "share_b": 1 - now}
    return found | ({"verdict": "failed"} if _lost(old, new, rows[1]) else {})


def _left_verdict(differ: bool | None, was: float, now: float, threshold: float) -> Verdict:
    """From 99 % to 96 % gone is four times as many events: what is left is compared, not what is gone."""
    if not differ:
        return "unknown" if differ is None else "same"
    if now < was:
        return "better"
    return "regression" if was < (1 - threshold) * now else "worse"


def _further(before: Document, after: Document, old: Row, new: Row, threshold: float) -> list[dict[str, Any]]:
    """The entries of a row's further figures, as far as both runs have samples of them."""
    entries = []
    for key in dict.fromkeys([*figures.compared(before), *figures.compared(after)]):
        was, now = figures.of(old, key), figures.of(new, key)
        if was["samples"] and now["samples"] and key != new["unit"]:
            name = table.heading(after, key).replace("\n", " ")
            costs = not _by_ratio(before) and is_cost(key)
            entries.append({"config": f"{_name(new)}: {name}", **_place(new), "unit": key} | _judged(
                _groups(before, old, key), _groups(after, new, key), costs, threshold))
    return entries


def _lost(old: list[list[float]], new: list[list[float]], row: Row) -> bool:
    """Whether the new row has no interval because samples of it, or of its baseline, failed or did not come."""
    few = len(stats.flat(new)) < stats.MIN_SAMPLES
    return few and (bool(row["failures"]) or len(stats.flat(old)) >= stats.MIN_SAMPLES)


def _groups(document: Document, row: Row, key: str) -> list[list[float]]:
    """The samples of a figure to compare, one group per boot: ratios to the baseline where those are compared."""
    if not _by_ratio(document) or row["unit"] == EVENTS:
        return stats.groups_of(stats.by_boot(figures.of(row, key)))
    baseline = baseline_of(document, row)
    return stats.paired_ratios(figures.of(row, key), figures.of(baseline, key)) if baseline else []


def _judged(old: list[list[float]], new: list[list[float]], costs: bool, threshold: float) -> dict[str, Any]:
    """The ratio, above 1 if the new samples are better, or None if a sample of 0 makes it no number; the verdict."""
    above, below = (old, new) if costs else (new, old)
    ratio = stats.ratio_between(above, below) if above and below and all(stats.flat(below)) else None
    return {"ratio": ratio, "verdict": verdict(ratio, threshold)}


def verdict(ratio: Ratio | None, threshold: float) -> Verdict:
    """Worse or better only where the interval excludes 1; a regression where it is worse by more than the threshold."""
    if ratio is None or ratio["ci95"] is None:
        return "unknown"
    low, high = ratio["ci95"]
    if low <= 1 <= high:
        return "same"
    if low > 1:
        return "better"
    return "regression" if ratio["median"] < 1 - threshold else "worse"


def pair(before: list[Document], after: list[Document]) -> list[tuple[Document, Document]]:
    """The documents of both runs that measured the same thing; UsageError when there are none.

    A run of the board `local` may have been made in the guest of another board, so it is comparable with any. The rates
    of `ferry bench stall` and `tiering` depend on the load of a sample, which --quick makes smaller.
    """
    found = [(old, new) for new in after for old in before if _measures(old) == _measures(new)
             and (old["board"] == new["board"] or LOCAL in (old["board"], new["board"]))]
    if not found:
        raise UsageError("the two runs have no benchmark, board, baseline and settings in common",
                         hint="ferry runs list")
    return found


def _measures(document: Document) -> tuple[Any, ...]:
    """What two runs must have in common. Of the settings, those that no row tells; None where a bench has none such.

    `load` depends on --quick where a sample's size does; so does `shared`, whether samples share a boot.
    """
    config = document["meta"].get("config", {})
    return (document["bench"], document["kind"], document["baseline"],
            *(config.get(name) for name in ("load", "max_bytes", "cpus", "shared")))


def output(comparisons: list[dict[str, Any]], before: str, after: str) -> formats.Output:
    """The output of `ferry compare`."""
    records = [{key: comparison[key] for key in ("bench", "board", "basis")} | _flat(entry)
               for comparison in comparisons for entry in comparison["rows"]]
    data = {"schema": SCHEMA, "a": before, "b": after, "comparisons": comparisons}
    return formats.Output([_grid(comparison, before, after) for comparison in comparisons], data, records)


def _grid(comparison: dict[str, Any], before: str, after: str) -> formats.Grid:
    title = (f"{comparison['bench']} on {comparison['board']}: B, {after}, against A, {before} "
             f"({comparison['basis']})")
    rows = [[[entry["config"]], [entry["column"]],
             [_figure(entry)], [entry["verdict"]]]
            for entry in comparison["rows"]]
    note = f"above 1, B is better; a regression is worse by more than {comparison['threshold']:.0%}"
    return formats.Grid(title, ["", "column", "ratio [95 %]", "verdict"], rows, [note, *comparison["warnings"]])


def _figure(entry: dict[str, Any]) -> str:
    if "share_a" in entry:
        return f"{entry['share_a']:.2%} gone, then {entry['share_b']:.2%}"
    return formats.ratio_text(entry["ratio"]) if entry["ratio"] else "-"


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    ratio = entry["ratio"]
    low, high = ratio["ci95"] if ratio and ratio["ci95"] else (None, None)
    return entry | {"ratio": ratio and ratio["median"], "ratio_ci95_low": low, "ratio_ci95_high": high}
