# SPDX-License-Identifier: GPL-2.0
"""The rows of `ferry bench breakdown`: of each configuration in a case one for each phase, and one for the total.

The phases are counted by QEMU's plugin, the total by the guest's own clock. A sample in which the two differ by more
than a hundredth is a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ferry.bench import movebench, rows
from ferry.bench.guest_samples import MISSING
from ferry.bench.movebench import Outcome
from ferry.bench.plan import STOCK, Config, Plan
from ferry.bench.rows import BootResult
from ferry.errors import InfraError
from ferry.profile import calltree, phases, recording
from ferry.results import stats
from ferry.results.breakdown_table import COPY
from ferry.results.document import TOTAL, BreakdownRow, Document, Failure, Row, Skip

UNIT = "instructions_per_page"
#: How much the sum of the phases may differ from the total.
TOLERANCE = 0.01
MOVE = "migrate_pages"


@dataclass(frozen=True)
class Sample:
    """Instructions a page of one sample, both ways: of each phase, and of migrate_pages() as a part of all."""

    phases: Mapping[str, float]
    migrate_pages: float


@dataclass(frozen=True)
class Counted:
    """One boot: movebench's outcome, and what the plugin counted in the samples, by configuration and round."""

    outcome: Outcome
    samples: Mapping[tuple[str, int], Sample]


def counted(share: Path, sweep: Plan, configs: Sequence[Config]) -> Counted:
    """What a boot of the sweep's one case left in its share."""
    (case,) = sweep.cases
    outcome = movebench.outcome(share, case)
    if outcome.status != 0:
        return Counted(outcome, {})
    windows, blocks = recording.load(share)
    # The first window puts the memory where it starts; then each round of each configuration has two, there and back.
    turns = [(config.label, turn - sweep.warmup) for turn in range(sweep.warmup + sweep.samples) for config in configs]
    if len(windows) != 1 + 2 * len(turns):
        raise InfraError(f"the guest marked {len(windows)} moves, not {1 + 2 * len(turns)}", log=share)
    pages = {(sample.config, sample.round): sample.moved for sample in outcome.samples}
    found = {}
    for number, turn in enumerate(turns):
        if moved := pages.get(turn):
            tree = calltree.build(windows[1 + 2 * number:3 + 2 * number], blocks)
            by_phase = {phase: count / moved for phase, count in phases.split(tree).items()}
            found[turn] = Sample(by_phase, tree.total_of(MOVE) / moved)
    return Counted(outcome, found)


def add(document: Document, sweep: Plan, boots: Mapping[str, Counted]) -> None:
    """Add the rows of a case to a document, or the reason why no guest could measure it."""
    (case,) = sweep.cases
    outcomes = [boot.outcome for boot in boots.values()]
    if all(outcome.status == MISSING for outcome in outcomes):
        document["skipped"].append(Skip(folio_bytes=case.folio_bytes, workload=sweep.workload(case.kind),
                                        reason=outcomes[0].reason))
        return
    sides = {config: side(sweep, config, boots[config.kernel])
             for config in [STOCK] * sweep.vs_stock + list(sweep.configs)}
    document["rows"] += [row for one in sides.values() for row in one.values()]
    for config, one in sides.items():
        rows.add_ratios(document, one[TOTAL], sweep.vs_stock)
        if config.migrator != "off":
            (off,) = (other for other in sweep.configs if other.migrator == "off" and other.runs == config.runs)
            one[COPY]["reached"] = reached(one, sides[off])


def side(sweep: Plan, config: Config, boot: Counted) -> dict[str, BreakdownRow]:
    """The rows of one configuration by phase, the total last; without ratios."""
    (case,) = sweep.cases
    total = rows.row(sweep, config, case, [BootResult(0, config.kernel, {case: boot.outcome})], UNIT)
    clocks = {turn: value for (_, turn), value in zip(total["sample_ids"], total["samples"], strict=True)}
    found = {turn: boot.samples[config.label, turn] for turn in clocks}
    faults = {turn: fault for turn, sample in found.items() if (fault := differs(sample, clocks[turn]))}
    good = [turn for turn in found if turn not in faults]
    values = {phase: [found[turn].phases[phase] for turn in good] for phase in phases.names()}
    made = {phase: part(total, phase, good, of_phase) for phase, of_phase in values.items()}
    made[TOTAL] = part(total, TOTAL, good, [clocks[turn] for turn in good])
    made[TOTAL]["failures"] = total["failures"] + [Failure(boot=0, round=turn, reason=fault)
                                                   for turn, fault in faults.items()]
    if good:
        add_shares(made, [found[turn].phases[COPY] / found[turn].migrate_pages for turn in good])
    return made


def differs(sample: Sample, clock: float) -> str:
    """Why the phases do not add up to the total, or ""."""
    counted = sum(sample.phases.values())
    return f"the phases have {counted:.0f} instructions a page, the clock {clock:.0f}" * (
        abs(counted - clock) > TOLERANCE * clock)


def part(total: Row, phase: str, turns: Sequence[int], values: list[float]) -> BreakdownRow:
    """A row like that of the total, with other samples and no failure: those are the total's."""
    return cast(BreakdownRow, {
        **total, "phase": phase, "samples": values, "sample_ids": [[0, turn] for turn in turns], "failures": [],
        "median": stats.median(values) if values else None, "mad": stats.mad(values) if values else None,
        "share": None})


def add_shares(one: Mapping[str, BreakdownRow], of_migrate_pages: list[float]) -> None:
    """The share of each phase; of the copy also that of migrate_pages(), and the bound."""
    for row in one.values():
        row["share"] = (row["median"] or 0.0) / (one[TOTAL]["median"] or 1.0)
    one[COPY]["migrate_pages_share"] = stats.median(of_migrate_pages)
    one[COPY]["amdahl_bound"] = 1 / (1 - (one[COPY]["share"] or 0.0))


def reached(one: Mapping[str, BreakdownRow], off: Mapping[str, BreakdownRow]) -> float | None:
    """The part of the gain that the bound of `off` promises; None without a sample, or without a copy to save."""
    ours, theirs, bound = one[TOTAL]["median"], off[TOTAL]["median"], off[COPY].get("amdahl_bound")
    if not ours or not theirs or not bound or bound <= 1:
        return None
    return (theirs / ours - 1) / (bound - 1)
