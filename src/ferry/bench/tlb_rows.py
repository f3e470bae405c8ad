# SPDX-License-Identifier: GPL-2.0
"""The rows of `ferry bench tlb`, from the runs in its guests: for each workload one for each side, the baseline first.

Events are counted from before the work until no flush is deferred any more, so that deferred flushes count, and all
figures are net. Some work cannot be made exactly equal, so events per 1,000 pages that the kernel migrated say more,
and ratios and reductions are of those. A reduction is the share that is gone: 0.9 is a tenth of the baseline's events.

The samples of a row are its IPIs per 1,000 pages. Only under KVM, where the guest's time is real, are they the speed of
those workloads that have one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from ferry.bench.guest_samples import MISSING
from ferry.bench.tlb_plan import PAGE, RATES, Config, Plan, Work
from ferry.bench.tlbbench import Outcome
from ferry.results import stats, tlb_events
from ferry.results.document import EVENTS, Document, Event, Failure, Row, Skip, TlbRow, label, rows_of
from ferry.results.tlb_events import PER_1000, counted


@dataclass(frozen=True)
class Side:
    """The good samples of one configuration of one work, and the failed ones."""

    samples: list[tuple[int, Event]]
    failures: list[Failure]

    def values(self, of: Callable[[Event], float | None]) -> list[float]:
        """A figure of every sample that has it."""
        return [value for _, event in self.samples if (value := of(event)) is not None]

    def middle(self, of: Callable[[Event], float | None]) -> float | None:
        """Its median over the samples."""
        values = self.values(of)
        return stats.median(values) if values else None


def fill(document: Document, plan: Plan, outcomes: Sequence[Outcome]) -> None:
    """Add rows, skipped workloads and warnings to a document that has none."""
    document["skipped"] = []
    timed = document["meta"]["accelerator"] == "KVM"
    for work in plan.works:
        runs = [outcome for outcome in outcomes if outcome.work == work.key]
        if reason := skip_reason(runs, plan):
            document["skipped"].append(Skip(folio_bytes=PAGE, workload=work.name, reason=reason))
        else:
            document["rows"] += rows_of_work(plan, work, runs, timed)
    document["warnings"] = [*document.get("warnings", []), *warnings(document)]


def skip_reason(outcomes: Sequence[Outcome], plan: Plan) -> str | None:
    """Why a work could not be done: in every run of one side, the guest lacked something."""
    for config in plan.configs:
        runs = [outcome for outcome in outcomes if outcome.config == config.label]
        if runs and all(outcome.status == MISSING for outcome in runs):
            return f"{config.label}: {runs[0].reason}"
    return None


def side(outcomes: Iterable[Outcome], config: Config, hashes: dict[int, str]) -> Side:
    """Sort out one configuration's samples; `hashes` are the results that the lookups of each round must have."""
    found = Side([], [])
    for run in (outcome for outcome in outcomes if outcome.config == config.label):
        fault = _fault(run, hashes.get(run.turn))
        if fault or run.sample is None:
            found.failures.append(Failure(boot=run.boot, round=run.turn, reason=fault))
        else:
            found.samples.append((run.boot, run.sample))
    return found


def _fault(run: Outcome, expected_hash: str | None) -> str:
    """Why the sample of a run does not count, or "". The programs check what they read, and fail if it is wrong."""
    if run.status != 0:
        return run.reason
    if run.sample is None:
        return "no sample was printed"
    if PER_1000["ipis"](run.sample) is None:
        return "no page was migrated, or no interrupt counted"
    if not run.sample.get("elapsed_ns"):
        return "it took no time"
    if expected_hash is not None and run.sample.get("hash") != expected_hash:
        return f"its lookups gave {run.sample.get('hash')}, others {expected_hash}"
    return ""


def hashes_of(outcomes: Iterable[Outcome]) -> dict[int, str]:
    """The result of the first run of each round, which all runs of the round must have."""
    found: dict[int, str] = {}
    for outcome in outcomes:
        if outcome.sample and "hash" in outcome.sample:
            found.setdefault(outcome.turn, outcome.sample["hash"])
    return found


def rate(event: Event) -> float | None:
    """Page moves or lookups a second."""
    done = event.get("lookups", event.get("moved_pages"))
    return None if done is None else float(done * 1e9 / event["elapsed_ns"])


def moved(event: Event) -> float | None:
    """Pages that the work itself moved; lookups move none, the kernel does."""
    found: float | None = event.get("moved_pages", event.get("pgmigrate_success"))
    return found


def kept_kb(event: Event) -> float | None:
    """How much less memory is free (kB, per-CPU lists included) after the last deferred flush than before the work."""
    before, settled = event.get("before_free_kb"), event.get("settled_free_kb")
    return None if before is None or settled is None else float(before - settled)


FIGURES: dict[str, Callable[[Event], float | None]] = {
    "ipis": counted("ipis"),
    "flushes": counted("nr_tlb_remote_flush"),
    "ipis_per_1000_moves": PER_1000["ipis"],
    "flushes_per_1000_moves": PER_1000["flushes"],
    "moved_pages": moved,
    "migrated_pages": counted("pgmigrate_success"),
    "kept_kb": kept_kb,
}
#: Of workloads whose readers make calls.
CALL_FIGURES = ("calls", "calls_per_second")


def rows_of_work(plan: Plan, work: Work, outcomes: Sequence[Outcome], timed: bool) -> list[TlbRow]:
    """The row of the baseline and those of the others, with their ratios to it."""
    hashes = hashes_of(outcomes)
    sides = [side(outcomes, config, hashes) for config in plan.configs]
    base, *others = (row(work, config, one, timed) for config, one in zip(plan.configs, sides, strict=True))
    for ours in others:
        found = {key: tlb_events.ratios(ours, base, key) for key in PER_1000}
        ours["ratios"] = {key: stats.ratio_of(groups) if groups else None for key, groups in found.items()}
        ours["ratio_to_baseline"] = ours["ratios"]["ipis"] if ours["unit"] == EVENTS else stats.ratio(ours, base)
        ours["ipi_reduction"] = reduction(ours["ipis_per_1000_moves"], base["ipis_per_1000_moves"])
        ours["flush_reduction"] = reduction(ours["flushes_per_1000_moves"], base["flushes_per_1000_moves"])
    return [base, *others[:-1], cast(TlbRow, {**others[-1], **quarantine(sides[-1])})]


def row(work: Work, config: Config, one: Side, timed: bool) -> TlbRow:
    """One side of one workload, without ratios."""
    unit = RATES.get(work.workload) if timed else None
    values = one.values(rate if unit else PER_1000["ipis"])
    made = Row(
        kernel=config.kernel, migrator="off", threads=work.board.cpus, channels=0, folio_bytes=PAGE,
        total_bytes=work.total_bytes, unit=unit or EVENTS, samples=values,
        sample_ids=[[boot, event["round"]] for boot, event in one.samples],
        median=stats.median(values) if values else None, mad=stats.mad(values) if values else None,
        ratio_to_baseline=None, failures=one.failures, path=config.label, device=work.name, workload=work.identity,
    )
    names = {"ratio": work.ratio, "processes": work.processes, "compaction_order": work.compaction_order}
    calls = {} if work.processes is None else {name: one.middle(counted(name)) for name in CALL_FIGURES}
    return cast(TlbRow, {**made, **{key: name for key, name in names.items() if name is not None},
                         "nodes": [asdict(node) for node in work.board.nodes],
                         **{name: one.middle(of) for name, of in FIGURES.items()}, **calls,
                         "events": [{"boot": boot, **event} for boot, event in one.samples]})


def reduction(ours: float | None, base: float | None) -> float | None:
    """None if the baseline has nothing to reduce."""
    return 1 - ours / base if ours is not None and base else None


#: Settings and levels, which are no counts.
LEVELS = ("migrc_enabled", "migrc_max_bytes", "migrc_max_age_ms", "migrc_peak_bytes", "migrc_quarantined_bytes")


def quarantine(ours: Side) -> dict[str, Any]:
    """migrc's counters, summed over all samples; the limits of its quarantine; its peak."""
    total: dict[str, int] = {}
    for _, event in ours.samples:
        for key in event:
            if key.startswith("migrc_") and key not in LEVELS:
                name = key.removeprefix("migrc_")
                total[name] = total.get(name, 0) + int(counted(key)(event) or 0)
    highest = {level: max((event[f"migrc_{level}"] for _, event in ours.samples if f"migrc_{level}" in event),
                          default=None) for level in ("max_bytes", "max_age_ms", "peak_bytes")}
    return {"migrc": total, **highest}


def warnings(document: Document) -> list[str]:
    """Rows that may not show what their name says."""
    found = []
    for one in rows_of(document):
        name = f"{one['device']}, {label(one)}"
        if one["samples"] and "migrc" in one and not one["migrc"].get("folios"):
            found.append(f"{name}: nothing was deferred, so this row shows the baseline once more")
        lost = [event for event in one["events"] if event.get("asked_pages", 0) > event.get("moved_pages", 0)]
        if lost:
            found.append(f"{name}: {len(lost)} samples moved fewer pages than they were to")
    return found
