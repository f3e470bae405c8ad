# SPDX-License-Identifier: GPL-2.0
"""The rows of `ferry bench breakdown`: of each configuration in a case one for each phase, and one for the total.

The total is by the guest's own clock. A sample in which the phases add up to something else is a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ferry.bench import rows
from ferry.bench.guest_samples import MISSING
from ferry.bench.movebench import Outcome
from ferry.bench.plan import STOCK, Config, Plan
from ferry.bench.rows import BootResult
from ferry.profile.breakdown_method import Method, Sample, Turn
from ferry.results import stats
from ferry.results.breakdown_table import COPY
from ferry.results.document import TOTAL, BreakdownRow, Document, Failure, Row, Skip, label
from ferry.results.formats import column_name

#: How much the sum of the phases may differ from the total, besides what follows.
TOLERANCE = 0.01
#: Instructions of a move that only the clock counts: the ends of the two calls that read it. By hand, 72 to 78.
CLOCK_READ = 100
#: A warning. Within a boot times scatter little: the interval would be narrow, however much boots differ.
ONE_BOOT = "ratios to stock have no interval: one boot of each kernel does not tell how much times differ between boots"


@dataclass(frozen=True)
class Side:
    """One kernel's boot: movebench's outcome, and its samples by phase."""

    outcome: Outcome
    samples: Mapping[Turn, Sample]


def add(document: Document, sweep: Plan, method: Method, boots: Mapping[str, Side]) -> None:
    """Add the rows of a case to a document, or the reason why no guest could measure it."""
    (case,) = sweep.cases
    outcomes = [boot.outcome for boot in boots.values()]
    if all(outcome.status == MISSING for outcome in outcomes):
        document["skipped"].append(Skip(folio_bytes=case.folio_bytes, workload=sweep.workload(case.kind),
                                        reason=outcomes[0].reason))
        return
    name = column_name(case.column).replace("\n", ", ")
    counted = document["kind"] == "instructions"
    unit = "instructions_per_page" if counted else "ns_per_page"
    sides = {config: side(sweep, config, method.phases(config), boots[config.kernel], unit)
             for config in [STOCK] * sweep.vs_stock + list(sweep.configs)}
    document["rows"] += [row for one in sides.values() for row in one.values()]
    if sweep.vs_stock and not counted and ONE_BOOT not in document["warnings"]:
        document["warnings"].append(ONE_BOOT)
    for config, one in sides.items():
        rows.add_ratios(document, one[TOTAL], sweep.vs_stock)
        ratio = one[TOTAL]["ratio_to_baseline"]
        if ratio and sweep.vs_stock and not counted:
            ratio["ci95"] = None
        if config.migrator != "off" and COPY in one:
            one[COPY]["reached"] = reached(one, [sides[other] for other in sweep.configs if other.runs == config.runs
                                                 and other.migrator in ("off", "kernel")])
        elif config.migrator != "off":
            document["warnings"].append(f"{label(one[TOTAL])} copied nothing of {name}: only the total is known")


def side(sweep: Plan, config: Config, phases: Sequence[str], boot: Side, unit: str) -> dict[str, BreakdownRow]:
    """The rows of one configuration by phase, the total last; without ratios. A copy that did not happen has none."""
    (case,) = sweep.cases
    total = rows.row(sweep, config, case, [BootResult(0, config.kernel, {case: boot.outcome})], unit)
    clocks = {turn: value for (_, turn), value in zip(total["sample_ids"], total["samples"], strict=True)}
    found = {turn: boot.samples[config.label, turn] for turn in clocks}
    pages = case.total_bytes // 4096
    faults = {turn: fault for turn, sample in found.items() if (fault := differs(sample, clocks[turn], pages))}
    good = {turn: sample for turn, sample in found.items() if turn not in faults}
    known = not good or any(sample.phases.get(COPY) for sample in good.values())
    made = {phase: part(total, phase, {turn: sample.phases[phase] for turn, sample in good.items()})
            for phase in phases if known}
    made[TOTAL] = part(total, TOTAL, {turn: clocks[turn] for turn in good})
    made[TOTAL]["failures"] = total["failures"] + [Failure(boot=0, round=turn, reason=fault)
                                                   for turn, fault in faults.items()]
    if good:
        add_shares(made, list(good.values()))
    return made


def differs(sample: Sample, clock: float, pages: int) -> str:
    """Why the phases of moves of `pages`, if there are any, do not add up to the total, or ""."""
    counted = sum(sample.phases.values())
    wrong = bool(sample.phases) and abs(counted - clock) > TOLERANCE * clock + CLOCK_READ / pages
    return f"the phases have {counted:.0f} a page, the clock {clock:.0f}" * wrong


def part(total: Row, phase: str, samples: Mapping[int, float]) -> BreakdownRow:
    """A row like that of the total, with other samples (by round) and no failure: those are the total's."""
    values = list(samples.values())
    return cast(BreakdownRow, {
        **total, "phase": phase, "samples": values, "sample_ids": [[0, turn] for turn in samples], "failures": [],
        "median": stats.median(values) if values else None, "mad": stats.mad(values) if values else None,
        "share": None})


def add_shares(one: Mapping[str, BreakdownRow], samples: Sequence[Sample]) -> None:
    """The share of each phase; of the copy also that of migrate_pages(), and the bound."""
    for row in one.values():
        row["share"] = (row["median"] or 0.0) / (one[TOTAL]["median"] or 1.0)
    if COPY in one:
        shares = [sample.phases[COPY] / sample.migrate_pages for sample in samples if sample.migrate_pages]
        one[COPY]["migrate_pages_share"] = stats.median(shares) if shares else None
        one[COPY]["amdahl_bound"] = 1 / (1 - (one[COPY]["share"] or 0.0))


def reached(one: Mapping[str, BreakdownRow], others: Sequence[Mapping[str, BreakdownRow]]) -> float | None:
    """The part of the bound's gain that a migrator has over `off`; None without a sample, or without a copy to save.

    `others` are `off` and, if measured, `kernel`. That copies on one CPU, too, so its bound serves where the copy of
    `off` is unknown.
    """
    bound = next((bound for other in others if COPY in other and (bound := other[COPY].get("amdahl_bound"))), None)
    ours, theirs = one[TOTAL]["median"], others[0][TOTAL]["median"]
    if not ours or not theirs or not bound or bound <= 1:
        return None
    return (theirs / ours - 1) / (bound - 1)
