# SPDX-License-Identifier: GPL-2.0
"""The rows of `ferry bench compaction`, from the runs in its guests: for each work one a configuration.

The samples of a row are the time of the work for each block that was made, or, where the guest's clock counts
instructions, their number for each page that moved. The total time alone would favour a kernel that makes fewer blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from ferry.bench import features
from ferry.bench.compactbench import Outcome
from ferry.bench.compaction_plan import BUSY, PAGE, Group, Plan, Work
from ferry.bench.guest_samples import MISSING
from ferry.bench.plan import Config
from ferry.results import figures, stats
from ferry.results.document import (
    CompactionRow,
    Document,
    Event,
    Failure,
    Row,
    Skip,
    baseline_of,
    is_baseline,
    label,
)

Outcomes = Mapping[tuple[Group, Work], Outcome]


def percent(key: str) -> Callable[[Event], float | None]:
    """A part of the CPU's time; None if the sample is shorter than the kernel's tick."""

    def of(event: Event) -> float | None:
        total = event["user_ms"] + event["system_ms"] + event["idle_ms"]
        return 100 * event[key] / total if total else None

    return of


def quotient(key: str, whole: str, scale: float) -> Callable[[Event], float | None]:
    """A count by another one, times `scale`; None if the workload lacks one of them."""

    def of(event: Event) -> float | None:
        return scale * event[key] / event[whole] if key in event and event.get(whole) else None

    return of


FIGURES: dict[str, Callable[[Event], float | None]] = {
    "wall_ms": lambda event: event["wall_ns"] / 1e6,
    "migrated": lambda event: event["pgmigrate_success"],
    "copied_by_migrator": features.copied,
    "moved_in_runs": features.moved_in_runs,
    "hog_iterations": lambda event: event.get("hog_iterations"),
    "user_percent": percent("user_ms"),
    "sys_percent": percent("system_ms"),
    "idle_percent": percent("idle_ms"),
    "hog_iterations_per_second": quotient("hog_iterations", "wall_ns", 1e9),
    "sys_ms": lambda event: event["system_ms"],
    "thread_ms": lambda event: event["thread_ns"] / 1e6,
    "success_percent": quotient("blocks_got", "blocks_wanted", 100),
    "allocated": lambda event: event["blocks_got"] + event.get("blocks_more", 0),
}
#: Those with a ratio to the baseline.
COMPARED = ("wall_ms", "hog_iterations", "hog_iterations_per_second", "sys_ms", "thread_ms", "success_percent",
            "allocated")


def fill(document: Document, plan: Plan, outcomes: Outcomes) -> None:
    """Add rows, ratios, skipped works and warnings to a document that has none."""
    document["skipped"] = []
    unit = "instructions_per_page" if document["kind"] == "instructions" else "ns_per_block"
    for work in plan.works:
        of_all = [outcome for (_, one), outcome in outcomes.items() if one == work]
        if all(outcome.status == MISSING for outcome in of_all):
            document["skipped"].append(Skip(folio_bytes=PAGE, workload=work.name, reason=of_all[0].reason))
        else:
            document["rows"] += [row(plan, config, work, outcomes, unit) for config in plan.chosen]
    for one in rows_of(document):
        add_ratios(document, one)
    document["warnings"] = [*document.get("warnings", []), *warnings(document)]


def rows_of(document: Document) -> list[CompactionRow]:
    """The rows of a document of this bench."""
    return cast(list[CompactionRow], document["rows"])


def row(plan: Plan, config: Config, work: Work, outcomes: Outcomes, unit: str) -> CompactionRow:
    """One configuration of one work, over all boots of its kernel."""
    events: list[tuple[int, Event]] = []
    failures: list[Failure] = []
    for (group, one), outcome in outcomes.items():
        if one == work and config in group.configs:
            good, bad = sort_out(outcome, config, plan, group.number)
            events += [(group.number, event) for event in good]
            failures += bad
    values = [value_of(event, unit) for _, event in events]
    made = Row(
        kernel=config.kernel, migrator=config.migrator, threads=config.threads, channels=config.channels,
        folio_bytes=PAGE, total_bytes=work.total_bytes, unit=unit, samples=values,
        sample_ids=[[boot, event["round"]] for boot, event in events],
        median=stats.median(values) if values else None, mad=stats.mad(values) if values else None,
        ratio_to_baseline=None, failures=failures, workload=work.workload, order=work.order, runs=config.runs,
        device=work.name,
    )
    each = {key: [of(event) for _, event in events] for key, of in FIGURES.items()}
    return cast(CompactionRow, {**made, **{key: middle(samples) for key, samples in each.items()}, "figures": each,
                                "events": [{"boot": boot, **event} for boot, event in events]})


def value_of(event: Event, unit: str) -> float:
    """A sample's figure."""
    return float(event["wall_ns"] / event["pgmigrate_success" if unit == "instructions_per_page" else "blocks_got"])


def middle(samples: list[float | None]) -> float | None:
    """The median of a figure over the samples; None if one lacks it."""
    known = [sample for sample in samples if sample is not None]
    return stats.median(known) if known and len(known) == len(samples) else None


def sort_out(outcome: Outcome, config: Config, plan: Plan, boot: int) -> tuple[list[Event], list[Failure]]:
    """One configuration's good samples, and a failure for each one that is wrong or did not come."""
    got = [event for event in outcome.samples if event["config"] == config.label]
    faults = {event["round"]: fault(event, outcome) for event in got}
    failures = [Failure(boot=boot, round=turn, reason=said) for turn, said in faults.items() if said]
    failures += [Failure(boot=boot, round=turn, reason=outcome.reason)
                 for turn in range(len(got), plan.samples_per_boot)]
    return [event for event in got if not faults[event["round"]]], failures


def fault(event: Event, outcome: Outcome) -> str:
    """Why a sample does not count, or ""."""
    if outcome.status != 0:
        return outcome.reason
    if not event["pgmigrate_success"]:
        return "no page moved"
    if not event["blocks_got"] or not event["wall_ns"]:
        return "no block was made"
    return "the hog did not run" if event["workload"] == BUSY and not event["hog_iterations"] else ""


def add_ratios(document: Document, one: CompactionRow) -> None:
    """The ratios to the baseline's row of the same work."""
    baseline = cast(CompactionRow | None, baseline_of(document, one))
    if baseline is None or is_baseline(document, one):
        return
    one["ratio_to_baseline"] = stats.ratio(one, baseline)
    one["ratios"] = {key: figures.ratio(one, baseline, key) for key in COMPARED}


def warnings(document: Document) -> list[str]:
    """Rows that may not show what their name says."""
    found = []
    for one in rows_of(document):
        found += features.warnings(one)
        if short := [event for event in one["events"] if event["blocks_got"] < event.get("blocks_wanted", 0)]:
            found.append(f"{one.get('device')}, {label(one)}: in {len(short)} samples some allocations failed")
    return found
