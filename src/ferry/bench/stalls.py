# SPDX-License-Identifier: GPL-2.0
"""How long a thread waits for memory that moves, beside the speed of `ferry bench move_pages`.

In the same boot, after the samples of movebench, stallbench takes a few short samples of each configuration, with
memory of base pages and of 2 MiB folios. It has no workload with folios of other sizes, so the rows of those have no
figures.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from ferry.bench import plan, stallbench
from ferry.bench.plan import Case, Config, Plan
from ferry.bench.stallbench import BASE_BYTES, HUGE, HUGE_BYTES, TOUCH, Outcome, Sample
from ferry.boards import Board
from ferry.results.document import Failure, Row

WORKLOADS = {BASE_BYTES: TOUCH, HUGE_BYTES: HUGE}
#: What moves: as much as can be one batch, by the kernel's default batch_max_bytes.
BYTES = 32 << 20
#: Of each configuration in a boot, and how long one takes at least: together 1.5 s.
SAMPLES, LOAD_MS = 3, 500
FIGURES = ("p50_us", "p99_us", "p999_us", "max_us")


def cases(sweep: Plan, board: Board) -> tuple[Case, ...]:
    """The cases to measure: stallbench moves anonymous memory, all of it in one call, in sequential order."""
    if _unable(sweep, board):
        return ()
    return tuple(case for case in sweep.cases
                 if case.folio_bytes in WORKLOADS and case == Case(case.folio_bytes, case.total_bytes))


def why_none(sweep: Plan, board: Board) -> str:
    """Why no row of a sweep has figures; "" if some have."""
    if sweep.stalls:
        return ""
    sizes = " or ".join(map(plan.size_argument, WORKLOADS))
    return _unable(sweep, board) or f"stallbench moves anonymous memory in folios of {sizes}, in order, by one call"


def _unable(sweep: Plan, board: Board) -> str:
    """What makes the figures of a whole sweep meaningless, or ""."""
    if board.kind == "instructions":
        return "this board's clock counts instructions of one thread after the other: a wait would have those of all"
    if board.cpus == 1:
        return "one CPU cannot move memory while a thread touches it"
    if any(case.engine_rate for case in sweep.cases):
        return "the engines have the speed of the last samples, not of each column"
    if sweep.hogs:
        return "stallbench keeps no CPU busy but that of the thread that waits"
    return "stallbench writes to the memory" if sweep.read_only else ""


def lines(programs: Mapping[str, Path], sweep: Plan, configs: Sequence[Config]) -> list[str]:
    """The shell lines that measure each case by one of the guest's programs."""
    found = []
    for case in sweep.stalls:
        words = [*stallbench.repeated(programs[stallbench.PROGRAM], configs, SAMPLES, sweep.ends),
                 "--warmup", "0",
                 *stallbench.options(WORKLOADS[case.folio_bytes], BYTES, LOAD_MS)]
        found.append(stallbench.line(shlex.join(words), _name(case)))
    return found


def outcomes(share: Path, sweep: Plan) -> dict[Case, Outcome]:
    """The outcomes of a boot by case."""
    return {case: stallbench.outcome(share, _name(case)) for case in sweep.stalls}


def _name(case: Case) -> str:
    return f"{case.name}-stall"


def attach(row: Row, config: Config, found: Mapping[int, Outcome]) -> None:
    """Add to a row its configuration's figures, medians over the samples of all boots; `found` is by boot.

    A sample that is wrong or did not come is a failure of the row. In one so short a thread may never have waited: the
    row keeps it without percentiles, and it is in no median.
    """
    samples: list[tuple[int, Sample]] = []
    for boot, outcome in found.items():
        good, bad = stallbench.sort_out(outcome, config, SAMPLES, boot, must_wait=False)
        samples += [(boot, sample) for sample in good]
        row["failures"] += [Failure({**failure, "reason": f"stall: {failure['reason']}"}) for failure in bad]
    waited = [sample for _, sample in samples if sample.figures["max_us"]]
    row.update(cast(Row, {f"stall_{key}": stallbench.median(waited, key) for key in FIGURES}))
    row["stall_samples"] = [kept(boot, sample) for boot, sample in samples]


def kept(boot: int, sample: Sample) -> dict[str, float | None]:
    """A sample as its row keeps it."""
    none = () if sample.figures["max_us"] else FIGURES
    figures = {key: value for key, value in sample.figures.items() if key not in none}
    return {"boot": boot, "round": sample.round, **figures, **stallbench.locked_figures([sample])}
