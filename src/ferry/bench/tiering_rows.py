# SPDX-License-Identifier: GPL-2.0
"""The rows of `ferry bench tiering`: for each workload and policy one for each configuration, the baseline first.

A sample counts only if the pages that moved for each reason add up to all pages that the kernel migrated.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ferry.bench import features
from ferry.bench.guest_samples import MISSING
from ferry.bench.plan import Config
from ferry.bench.tierbench import RATES, TENANTS, WAITS, Outcome, Sample, total_bytes
from ferry.results import figures, stats
from ferry.results.document import Document, Failure, Row, Skip, TieringRow, is_baseline

FOLIO_BYTES = 4 << 10
#: Figures of every workload, by their keys in a row. The last one is missing in a sample without migrated pages.
MOVES = ("promotions", "demotions", "migrated_pages", "copied_by_migrator", "moved_in_runs",
         "promotions_per_second", "shootdowns", "shootdowns_per_1000_pages")
#: Those with a ratio to the baseline, beside the rates; the others depend on how long a sample lasted.
COMPARED = (*WAITS, "promotions_per_second", "shootdowns_per_1000_pages")

#: A workload and a policy.
Case = tuple[str, str]


@dataclass(frozen=True)
class Run:
    """The outcome of one case in one boot. Boots of the same number stood side by side."""

    boot: int
    kernel: str
    case: Case
    outcome: Outcome


def fill(document: Document, configs: Sequence[Config], cases: Sequence[Case], samples: int,
         runs: Sequence[Run]) -> None:
    """Add rows, skipped cases and warnings to a document that has none; `samples` are those of a boot."""
    document["skipped"] = []
    for case in cases:
        of_case = [run for run in runs if run.case == case]
        if all(run.outcome.status == MISSING for run in of_case):
            document["skipped"].append(Skip(folio_bytes=FOLIO_BYTES, workload=" ".join(case),
                                            reason=of_case[0].outcome.reason))
            continue
        rows = [row(config, case, samples, of_case) for config in configs]
        baseline = next(one for one in rows if is_baseline(document, one))
        for one in rows:
            if one is not baseline:
                add_ratios(one, baseline)
        document["rows"] += rows
    document["warnings"] = [*document.get("warnings", []), *itertools.chain(*map(features.warnings, document["rows"]))]


def keys_of(workload: str) -> tuple[str, ...]:
    """The figures of a workload."""
    slowest = ("slowest_touches_per_second",) if workload == TENANTS else ()
    return (RATES[workload], *slowest, *WAITS, *MOVES)


def row(config: Config, case: Case, samples: int, runs: Sequence[Run]) -> TieringRow:
    """One configuration of one case, over all boots of its kernel."""
    workload, policy = case
    good: list[tuple[int, Sample]] = []
    failures: list[Failure] = []
    for run in (run for run in runs if run.kernel == config.kernel):
        right, wrong = sort_out(run, config, samples)
        good += [(run.boot, sample) for sample in right]
        failures += wrong
    rates = [sample.figures[RATES[workload]] for _, sample in good]
    made = Row(
        kernel=config.kernel, migrator=config.migrator, threads=config.threads, channels=config.channels,
        folio_bytes=FOLIO_BYTES, total_bytes=total_bytes(workload, policy), unit=RATES[workload], samples=rates,
        sample_ids=[[boot, sample.round] for boot, sample in good],
        median=stats.median(rates) if rates else None, mad=stats.mad(rates) if rates else None,
        ratio_to_baseline=None, failures=failures, workload=workload, runs=config.runs, device=" ".join(case),
    )
    each = {key: [sample.figures.get(key) for _, sample in good] for key in keys_of(workload)}
    tenants = [list(column) for column in zip(*(sample.tenants for _, sample in good), strict=True)]
    return cast(TieringRow, {
        **made, "policy": policy, **{key: middle(values) for key, values in each.items()},
        "tenants": [stats.median(column) for column in tenants], "by_reason": by_reason([one for _, one in good]),
        "figures": each | {f"tenant_{number}": column for number, column in enumerate(tenants)}, "ratios": {},
    })


def middle(values: Sequence[float | None]) -> float | None:
    """The median of those samples that have the figure."""
    found = [value for value in values if value is not None]
    return stats.median(found) if found else None


def by_reason(samples: Sequence[Sample]) -> dict[str, int]:
    """The pages that moved for each reason in all good samples together, as far as there were any."""
    names = sorted({name for sample in samples for name, pages in sample.by_reason.items() if pages})
    return {name: sum(sample.by_reason.get(name, 0) for sample in samples) for name in names}


def sort_out(run: Run, config: Config, samples: int) -> tuple[list[Sample], list[Failure]]:
    """One configuration's good samples of a boot, and a failure for each one that is wrong or did not come."""
    got = [sample for sample in run.outcome.samples if sample.config == config.label]
    faults = {sample.round: fault(sample, run) for sample in got}
    failures = [Failure(boot=run.boot, round=turn, reason=said) for turn, said in faults.items() if said]
    failures += [Failure(boot=run.boot, round=turn, reason=run.outcome.reason) for turn in range(len(got), samples)]
    return [sample for sample in got if not faults[sample.round]], failures


def fault(sample: Sample, run: Run) -> str:
    """Why a sample does not count, or ""."""
    if run.outcome.status != 0:
        return run.outcome.reason
    if missing := [key for key in keys_of(run.case[0])[:-1] if key not in sample.figures]:
        return f"it has no {', '.join(missing)}"
    if not sample.figures["migrated_pages"]:
        return "no memory moved"
    if run.kernel == "stock":
        return ""
    moved, total = sum(sample.by_reason.values()), sample.figures["migrated_pages"]
    return "" if moved == total else f"{moved} pages moved by reason, and {total} in all"


def add_ratios(one: TieringRow, baseline: TieringRow) -> None:
    """The ratios of the figures and of each tenant to the baseline's."""
    rates = [key for key in one["figures"] if key.endswith(("touches_per_second", "requests_per_second"))]
    tenants = [key for key in one["figures"] if key.startswith("tenant_")]
    one["ratios"] = {key: figures.ratio(one, baseline, key) for key in (*rates, *COMPARED, *tenants)}
    one["ratio_to_baseline"] = one["ratios"][one["unit"]]
