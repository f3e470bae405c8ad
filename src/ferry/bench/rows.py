# SPDX-License-Identifier: GPL-2.0
"""The rows of `ferry bench move_pages`, made from the outcomes of its boots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ferry.bench.guest_samples import MISSING
from ferry.bench.movebench import Outcome, Sample, sort_out
from ferry.bench.plan import STOCK, Config, Plan
from ferry.results import stats
from ferry.results.document import Document, Failure, Ratio, Row, Skip, baseline_of, is_baseline
from ferry.results.formats import size_name


@dataclass(frozen=True)
class BootResult:
    """The outcomes of one boot by folio size. Boots of the same number stood side by side."""

    number: int
    kernel: str
    outcomes: dict[int, Outcome]


def fill(document: Document, plan: Plan, boots: Sequence[BootResult], unit: str) -> None:
    """Add rows, ratios, skipped sizes, counters and warnings to a document that has none."""
    skipped = skips(plan, boots)
    document["skipped"] = skipped
    sizes = [size for size in plan.totals if size not in {skip["folio_bytes"] for skip in skipped}]
    chosen = [STOCK] * plan.vs_stock + list(plan.configs)
    document["rows"] = [row(plan, config, size, boots, unit) for config in chosen for size in sizes]
    for one in document["rows"]:
        add_ratios(document, one, plan.vs_stock)
    document["counters"] = {str(size): counters(plan, boots, size) for size in sizes}
    document["warnings"] = [*document.get("warnings", []), *warnings(document)]


def skips(plan: Plan, boots: Sequence[BootResult]) -> list[Skip]:
    """The sizes that no boot could measure: it lacked the feature."""
    found = []
    for size in plan.totals:
        outcomes = [boot.outcomes[size] for boot in boots]
        if all(outcome.status == MISSING for outcome in outcomes):
            found.append(Skip(folio_bytes=size, reason=outcomes[0].reason))
    return found


def row(plan: Plan, config: Config, size: int, boots: Sequence[BootResult], unit: str) -> Row:
    """One configuration at one size, over all boots of its kernel."""
    samples: list[tuple[int, Sample]] = []
    failures: list[Failure] = []
    for boot in (boot for boot in boots if boot.kernel == config.kernel):
        good, bad = sort_out(boot.outcomes[size], config, plan, boot.number)
        samples += [(boot.number, sample) for sample in good]
        failures += bad
    values = [sample.value(unit) for _, sample in samples]
    made = Row(
        kernel=config.kernel, migrator=config.migrator, threads=config.threads, channels=config.channels,
        folio_bytes=size, total_bytes=plan.totals[size], unit=unit, samples=values,
        sample_ids=[[number, sample.round] for number, sample in samples],
        median=stats.median(values) if values else None, mad=stats.mad(values) if values else None,
        ratio_to_baseline=None, failures=failures, workload=plan.workload,
    )
    if config.store is not None:
        made["store"] = config.store
    if config.verify is not None:
        made["verify"] = config.verify
    if config.migrc is not None:
        made["deferring"] = config.migrc
    return made


def add_ratios(document: Document, one: Row, vs_stock: bool) -> None:
    """The ratio to the baseline, and beside a stock baseline also the tighter one to `off` of the same boot."""
    one["ratio_to_baseline"] = _ratio(document, one)
    if vs_stock and one["kernel"] == "ferry" and (one["migrator"] != "off" or one.get("deferring")):
        off: Document = {**document, "baseline": "off"}
        one["ratio_to_off"] = _ratio(off, one)


def _ratio(document: Document, one: Row) -> Ratio | None:
    baseline = baseline_of(document, one)
    if baseline is None or is_baseline(document, one):
        return None
    return stats.ratio(one, baseline)


def counters(plan: Plan, boots: Sequence[BootResult], size: int) -> dict[str, int]:
    """The counters of the migrators for this size, summed over all boots of our kernel, warm-ups included."""
    sizes = list(plan.totals)
    total: Counter[str] = Counter()
    for boot in boots:
        before = boot.outcomes[sizes[sizes.index(size) - 1]].counters if size != sizes[0] else {}
        total.update({key: value - before.get(key, 0) for key, value in boot.outcomes[size].counters.items()})
    return dict(total)


def warnings(document: Document) -> list[str]:
    """Rows that may not show what their name says."""
    found = []
    for size, counted in document.get("counters", {}).items():
        idle = {one["migrator"] for one in document["rows"]
                if one["migrator"] != "off" and str(one["folio_bytes"]) == size
                and counted.get(f"{one['migrator']}/folios") == 0}
        found += [f"{name} copied no folio of {size_name(int(size))}: its rows show the fallback"
                  for name in sorted(idle)]
        if counted.get("migrc/folios") == 0 and any(one.get("deferring") for one in document["rows"]):
            found.append(f"migrc deferred nothing of {size_name(int(size))}: its row is off once more")
    return found
