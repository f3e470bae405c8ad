# SPDX-License-Identifier: GPL-2.0
"""The rows of `ferry bench move_pages`, made from the outcomes of its boots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ferry.bench import engines, stallbench, stalls
from ferry.bench.guest_samples import MISSING
from ferry.bench.movebench import Outcome, Sample, sort_out
from ferry.bench.plan import STOCK, Case, Config, Plan
from ferry.results import stats
from ferry.results.document import Document, Failure, Ratio, Row, Skip, baseline_of, is_baseline
from ferry.results.formats import column_name

#: Runs are of base pages.
BASE_PAGE = 4 << 10


@dataclass(frozen=True)
class BootResult:
    """The outcomes of one boot by case. Boots of the same number stood side by side."""

    number: int
    kernel: str
    outcomes: dict[Case, Outcome]
    stalls: Mapping[Case, stallbench.Outcome] = field(default_factory=dict)


def fill(document: Document, plan: Plan, boots: Sequence[BootResult], unit: str) -> None:
    """Add rows, ratios, skipped cases, counters and warnings to a document that has none."""
    skipped = skips(plan, boots)
    document["skipped"] = list(skipped.values())
    cases = [case for case in plan.cases if case not in skipped]
    chosen = [STOCK] * plan.vs_stock + list(plan.configs)
    document["rows"] = [row(plan, config, case, boots, unit) for config in chosen for case in cases]
    for one in document["rows"]:
        add_ratios(document, one, plan.vs_stock)
    document["counters"] = {case.name: counters(plan, boots, case) for case in cases}
    document["warnings"] = [*document.get("warnings", []), *idle(plan, cases, boots), *warnings(document, cases)]


def skips(plan: Plan, boots: Sequence[BootResult]) -> dict[Case, Skip]:
    """The cases that no boot could measure: it lacked the feature."""
    found = {}
    for case in plan.cases:
        outcomes = [boot.outcomes[case] for boot in boots]
        if all(outcome.status == MISSING for outcome in outcomes):
            found[case] = Skip(folio_bytes=case.folio_bytes, reason=outcomes[0].reason,
                               workload=plan.workload(case.kind))
    return found


def row(plan: Plan, config: Config, case: Case, boots: Sequence[BootResult], unit: str) -> Row:
    """One configuration in one case, over all boots of its kernel."""
    samples: list[tuple[int, Sample]] = []
    failures: list[Failure] = []
    for boot in (boot for boot in boots if boot.kernel == config.kernel):
        good, bad = sort_out(boot.outcomes[case], config, plan, boot.number)
        samples += [(boot.number, sample) for sample in good]
        failures += bad
    values = [sample.value(unit) for _, sample in samples]
    made = Row(
        kernel=config.kernel, migrator=config.migrator, threads=config.threads, channels=config.channels,
        folio_bytes=case.folio_bytes, total_bytes=case.total_bytes, unit=unit, samples=values,
        sample_ids=[[number, sample.round] for number, sample in samples],
        median=stats.median(values) if values else None, mad=stats.mad(values) if values else None,
        ratio_to_baseline=None, failures=failures,
        workload=plan.workload(case.kind), kind=case.kind, order=case.order, runs=config.runs,
        pages_per_call=case.column[4],
    )
    if config.store is not None:
        made["store"] = config.store
    if config.verify is not None:
        made["verify"] = config.verify
    if config.migrc is not None:
        made["deferring"] = config.migrc
    if case.engine_rate:
        engines.attach(made, config, case, samples, {boot.number: boot.outcomes[case] for boot in boots
                                                     if boot.kernel == config.kernel})
    if case in plan.stalls:
        stalls.attach(made, config, {boot.number: boot.stalls[case] for boot in boots if boot.kernel == config.kernel})
    return made


def add_ratios(document: Document, one: Row, vs_stock: bool) -> None:
    """The ratio to the baseline, and beside a stock baseline also the tighter one to `off` of the same boot."""
    one["ratio_to_baseline"] = _ratio(document, one)
    if vs_stock and one["kernel"] == "ferry" and not is_baseline({**document, "baseline": "off"}, one):
        off: Document = {**document, "baseline": "off"}
        one["ratio_to_off"] = _ratio(off, one)


def _ratio(document: Document, one: Row) -> Ratio | None:
    baseline = baseline_of(document, one)
    if baseline is None or is_baseline(document, one):
        return None
    return stats.ratio(one, baseline)


def counters(plan: Plan, boots: Sequence[BootResult], case: Case) -> dict[str, int]:
    """The counters of the kernel for this case, summed over all boots of ours, warm-ups included."""
    number = plan.cases.index(case)
    total: Counter[str] = Counter()
    for boot in boots:
        before = boot.outcomes[plan.cases[number - 1]].counters if number else {}
        total.update({key: value - before.get(key, 0) for key, value in boot.outcomes[case].counters.items()})
    return dict(total)


def idle(plan: Plan, cases: Sequence[Case], boots: Sequence[BootResult]) -> list[str]:
    """The rows whose migrator copied nothing. mtcopy on one CPU, for example, leaves every batch to the move phase."""
    found = []
    for config, case in ((config, case) for config in plan.configs for case in cases if config.migrator != "off"):
        copied = [sample.copied_bytes for boot in boots if boot.kernel == config.kernel
                  for sample in boot.outcomes[case].samples if sample.config == config.label]
        if copied and not any(copied):
            where = column_name(case.column).replace("\n", ", ")
            found.append(f"{config.label} copied no folio of {where}: its row shows the fallback")
    return found


def warnings(document: Document, cases: Sequence[Case]) -> list[str]:
    """Rows with a feature that did nothing."""
    found = []
    for case in cases:
        counted, what = document["counters"][case.name], column_name(case.column).replace("\n", ", ")
        if counted.get("migrc/folios") == 0 and any(one.get("deferring") for one in document["rows"]):
            found.append(f"migrc deferred nothing of {what}: its row is off once more")
        if (case.folio_bytes == BASE_PAGE and counted.get("runs/moved") == 0
                and any(one["runs"] for one in document["rows"])):
            found.append(f"no page of {what} was moved in a run: the row of runs is off once more")
    return found
