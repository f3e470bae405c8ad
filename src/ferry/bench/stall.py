# SPDX-License-Identifier: GPL-2.0
"""`ferry bench stall`: how long the users of memory wait while it moves between two nodes all the time."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from ferry import boards
from ferry.bench import experiment, guest_samples, move_pages, plan, stallbench
from ferry.bench.guest_samples import MISSING
from ferry.bench.plan import STOCK, Choice, Config
from ferry.bench.stallbench import FIGURES, FOLIO_BYTES, Load, Outcome, Sample
from ferry.boards import LOCAL, Board
from ferry.errors import UsageError
from ferry.kernel.build import Kernel
from ferry.results import figures, stats
from ferry.results.document import Document, Failure, Row, Skip, StallRow, is_baseline
from ferry.vm import qemu

NAME = "stall"
SAMPLES = 15
LOAD, QUICK_LOAD = Load(3000, 6000), Load(1500, 3000)
#: Far more than any sample took, so that only a guest that hangs reaches it.
SLOWEST_SAMPLE_S = 60
SILENCE_S = 180


@dataclass(frozen=True)
class Plan:
    """The sweep: `samples` of each configuration and workload, over all boots of its kernel."""

    workloads: tuple[str, ...]
    configs: tuple[Config, ...]
    load: Load
    samples: int
    boots: int
    vs_stock: bool
    batch_max_us: int | None = None
    """The kernel's limit during the samples of ours; None: as the kernel has it."""
    ends: tuple[int, ...] = (0, 1)
    """The nodes between which memory moves."""

    def workload(self, name: str) -> str:
        """Its name, and the limit if it is set; results of different workloads do not compare."""
        return name if self.batch_max_us is None else f"{name}, batch_max_us {self.batch_max_us}"

    @property
    def samples_per_boot(self) -> int:
        return -(-self.samples // self.boots)

    @property
    def chosen(self) -> list[Config]:
        """The configurations of all kernels, the baseline first."""
        return [STOCK] * self.vs_stock + list(self.configs)


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The options of this bench."""
    parser = sub.add_parser(NAME, help="measure how long users of memory wait while it moves all the time")
    add = parser.add_argument
    x86 = [name for name in move_pages.with_two_nodes() if name.startswith("x86")]
    add("--board", default="x86-numa", choices=[*x86, LOCAL],
        help="default: x86-numa; local is this machine, which runs the kernel already")
    add("--quick", action="store_true", help="less load a sample, and no more samples and boots than needed")
    add("--baseline", default="off", choices=("off", "stock"),
        help="no migrator in the same boot (off, the default), or the unpatched kernel in boots between (stock)")
    add("--workload", type=plan.listed(plan.one_of(stallbench.WORKLOADS)), metavar="LIST",
        help="touch: a thread reads and writes random pages; huge: the same in huge pages; redis: redis-benchmark; "
             "full: huge pages move to a node that is full; tmpfs: a thread reads a file of huge pages; "
             "hugetlb: a page of 1 GiB moves while a thread faults other memory (default: touch,redis)")
    add("--migrator", type=plan.listed(plan.one_of(plan.MIGRATORS)), metavar="LIST",
        help="off, kernel, mtcopy, dcbm, auto (default: off; it is always measured)")
    add("--threads", type=plan.listed(plan.bounded(1, plan.MAX_THREADS)), metavar="LIST", help="of mtcopy (default: 2)")
    add("--runs", type=plan.listed(plan.one_of(plan.RUNS)), metavar="LIST",
        help="each row with base pages moved in runs: off, on (default: one row with runs beside the others)")
    add("--samples", type=int, metavar="N", help="of each row (default: 15, or 10 if quick)")
    add("--batch-max-us", type=plan.bounded(1, plan.MAX_BATCH_US), metavar="N",
        help="batch_max_us of our kernel while the samples are taken (default: leave it as it is)")
    return parser


def plan_for(args: argparse.Namespace, board: Board) -> Plan:
    """The plan for the options. Raises UsageError if it could not support a comparison."""
    samples = args.samples if args.samples is not None else stats.MIN_SAMPLES if args.quick else SAMPLES
    if samples < stats.MIN_SAMPLES:
        raise UsageError(f"{samples} samples are too few: a comparison needs {stats.MIN_SAMPLES}",
                         hint=f"--samples {stats.MIN_SAMPLES}")
    if board.runner == LOCAL and stallbench.FULL in (args.workload or ()):
        raise UsageError("--workload full fills a node, which is no load for a live machine", hint="--workload touch")
    vs_stock = args.baseline == "stock"
    configs = plan.configs(Choice(move_pages.migrators(args.migrator or ["off"], board), args.threads or [2],
                                  channels=[board.channels], runs=args.runs, batch_max_us=args.batch_max_us))
    return Plan(tuple(args.workload or stallbench.DEFAULT), configs, QUICK_LOAD if args.quick else LOAD, samples,
                boots=(2 if args.quick else 3) if vs_stock else 1, vs_stock=vs_stock, batch_max_us=args.batch_max_us,
                ends=board.ends)


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build the kernels and measure."""
    board = boards.load(args.board)
    chosen = plan_for(args, board)
    board = qemu.with_gigantic(board, int(stallbench.HUGETLB in chosen.workloads))
    kernels = experiment.kernels(board, chosen.vs_stock)
    document = experiment.document(NAME, board, "stock" if chosen.vs_stock else "off", kernels, asdict(chosen))
    order = {f"{number}-{name}": (number, name) for number in range(chosen.boots) for name in kernels}
    boots = [one_boot(chosen, board, kernels[kernel], name, kernel) for name, (_, kernel) in order.items()]
    expected = chosen.boots * (chosen.samples_per_boot + 1) * len(chosen.workloads) * len(chosen.chosen)
    if move_pages.counts(board):
        document["warnings"].append("this board's clock counts the instructions of one thread after the other: only "
                                    "locked p99 means something")
    document["warnings"] += experiment.run(boots, run_dir, f"stall on {board.name}", expected)
    outcomes = {(number, kernel, workload): stallbench.outcome(experiment.share_of(run_dir, name), workload)
                for name, (number, kernel) in order.items() for workload in chosen.workloads}
    fill(document, chosen, outcomes)
    return document


def one_boot(chosen: Plan, board: Board, kernel: Kernel, name: str, kernel_name: str) -> experiment.Boot:
    """A boot that measures each workload."""
    configs = [config for config in chosen.chosen if config.kernel == kernel_name]
    modules = move_pages.insmods(kernel, move_pages.modules_of(board, configs))
    script = stallbench.script(chosen.workloads, configs, chosen.load, chosen.samples_per_boot, modules,
                               chosen.ends)
    runs = len(chosen.workloads) * len(configs) * (1 + chosen.samples_per_boot)
    return experiment.Boot(name, board, kernel, script, guest_samples.SAMPLE, silence_s=SILENCE_S,
                           timeout_s=board.boot_timeout_s + SLOWEST_SAMPLE_S * runs)


Outcomes = Mapping[tuple[int, str, str], Outcome]


def fill(document: Document, chosen: Plan, outcomes: Outcomes) -> None:
    """Add rows and skipped workloads to a document that has none; `outcomes` are by boot, kernel and workload."""
    document["skipped"] = []
    for workload in chosen.workloads:
        of_all = [outcome for (_, _, name), outcome in outcomes.items() if name == workload]
        if all(outcome.status == MISSING for outcome in of_all):
            document["skipped"].append(Skip(folio_bytes=FOLIO_BYTES[workload], workload=workload,
                                            reason=of_all[0].reason))
            continue
        rows = [row(chosen, config, workload, outcomes) for config in chosen.chosen]
        baseline = next(one for one in rows if is_baseline(document, one))
        for one in rows:
            if one is not baseline:
                one["ratios"] = {key: figures.ratio(one, baseline, key) for key in FIGURES}
                one["ratio_to_baseline"] = one["ratios"]["requests_per_second"]
        document["rows"] += rows


def row(chosen: Plan, config: Config, workload: str, outcomes: Outcomes) -> StallRow:
    """One configuration of one workload, over all boots of its kernel."""
    samples: list[tuple[int, Sample]] = []
    failures: list[Failure] = []
    for (boot, kernel, name), outcome in outcomes.items():
        if kernel == config.kernel and name == workload:
            good, bad = stallbench.sort_out(outcome, config, chosen.samples_per_boot, boot)
            samples += [(boot, sample) for sample in good]
            failures += bad
    rates = [sample.figures["requests_per_second"] for _, sample in samples]
    made = Row(
        kernel=config.kernel, migrator=config.migrator, threads=config.threads, channels=config.channels,
        folio_bytes=FOLIO_BYTES[workload], total_bytes=stallbench.TOTAL_BYTES[workload],
        unit="requests_per_second", samples=rates,
        sample_ids=[[boot, sample.round] for boot, sample in samples],
        median=stats.median(rates) if rates else None, mad=stats.mad(rates) if rates else None,
        ratio_to_baseline=None, failures=failures,
        workload=chosen.workload(workload), runs=config.runs, device=workload,
    )
    good = [sample for _, sample in samples]
    keys = (*FIGURES, "failed_folios", *([stallbench.WAITS] if good and stallbench.WAITS in good[0].figures else []))
    locked = stallbench.locked_figures(good)
    each = {key: [stallbench.locked_figures([sample]).get(key) for sample in good] for key in locked}
    return cast(StallRow, {**made, **{key: stallbench.median(good, key) for key in keys}, **locked, "ratios": {},
                           "figures": {key: [sample.figures[key] for sample in good] for key in keys} | each})
