# SPDX-License-Identifier: GPL-2.0
"""`ferry bench compaction`: how much work it is to make blocks of pages on a node whose free memory is fragmented."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from ferry import boards
from ferry.bench import compactbench, compaction_plan, compaction_rows, experiment, guest_samples, move_pages, plan
from ferry.bench.compaction_plan import Group, Plan
from ferry.bench.plan import Choice
from ferry.boards import Board
from ferry.errors import UsageError
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.results import stats
from ferry.results.document import Document
from ferry.vm import guest_programs

NAME = "compaction"
#: Threads of mtcopy, where the board has so many CPUs.
THREADS = 2
#: Far more than any sample took, so that only a guest that hangs reaches it.
SLOWEST_SAMPLE_S = 120
SILENCE_S = 300


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The options of this bench."""
    parser = sub.add_parser(NAME, help="make blocks of pages on a node whose free memory is fragmented")
    add = parser.add_argument
    add("--board", default="x86-numa", choices=compaction_plan.BOARDS, help="default: x86-numa")
    add("--quick", action="store_true",
        help="a smaller node, and all samples of a kernel from two boots; without it, each from a boot of its own")
    add("--baseline", default="stock", choices=("off", "stock"),
        help="the unpatched kernel (stock, the default), or ours without a migrator (off)")
    add("--workload", type=plan.listed(plan.one_of(compaction_plan.WORKLOADS)), metavar="LIST",
        help="idle: allocations on a CPU without other work; busy: a thread shares that CPU; proactive: kcompactd "
             "(default: idle,busy, or idle where instructions are counted)")
    add("--order", type=plan.listed(plan.bounded(1, 9)), metavar="LIST", help="of the blocks, 1 to 9 (default: 9)")
    add("--migrator", type=plan.listed(plan.one_of(plan.MIGRATORS)), metavar="LIST",
        help="off, kernel, mtcopy, dcbm, auto (default: all that the board has; off is always measured)")
    add("--runs", type=plan.listed(plan.one_of(plan.RUNS)), metavar="LIST",
        help="each row with base pages moved in runs: off, on (default: one row with runs beside the others)")
    add("--samples", type=int, metavar="N", help=f"of each row (default: {stats.MIN_SAMPLES})")
    return parser


def plan_for(args: argparse.Namespace, board: Board) -> Plan:
    """The plan for the options. Raises UsageError if it could not support a comparison."""
    samples = stats.MIN_SAMPLES if args.samples is None else args.samples
    if samples < stats.MIN_SAMPLES:
        raise UsageError(f"{samples} samples are too few: a comparison needs {stats.MIN_SAMPLES}",
                         hint=f"--samples {stats.MIN_SAMPLES}")
    names = workloads(args.workload, board)
    configs = plan.configs(Choice(move_pages.migrators(args.migrator, board), [min(THREADS, board.cpus)],
                                  channels=[board.channels], runs=args.runs))
    return Plan(compaction_plan.works(names, args.order or [compaction_plan.DEFAULT_ORDER], board), configs, samples,
                shared=args.quick, vs_stock=args.baseline == "stock")


def workloads(asked: list[str] | None, board: Board) -> list[str]:
    """Those asked for, or the board's default. Raises UsageError for one that has no figure there."""
    if not move_pages.counts(board):
        return asked or list(compaction_plan.DEFAULT)
    if other := [name for name in asked or [] if name != compaction_plan.IDLE]:
        raise UsageError(f"the clock of {board.name} counts the instructions of all tasks, so {other[0]} has no figure",
                         hint="--workload idle")
    return [compaction_plan.IDLE]


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build the kernels and measure."""
    board = compaction_plan.machine(boards.load(args.board), args.quick)
    chosen = plan_for(args, board)
    kernels = {name: build.build(board, name) for name in dict.fromkeys(config.kernel for config in chosen.chosen)}
    document = experiment.document(NAME, board, args.baseline, kernels, asdict(chosen))
    document["meta"]["nodes"] = [asdict(node) for node in board.nodes]
    groups = list(chosen.groups())
    boots = [one_boot(chosen, board, kernels[group.kernel], group) for group in groups]
    document["warnings"] += experiment.run(boots, run_dir, f"compaction on {board.name}", sum(
        samples(chosen, group) for group in groups))
    outcomes = {(group, work): compactbench.outcome(experiment.share_of(run_dir, group.name), work)
                for group in groups for work in group.works}
    compaction_rows.fill(document, chosen, outcomes)
    return document


def samples(chosen: Plan, group: Group) -> int:
    """How many a boot makes, warm-ups included."""
    return (chosen.samples_per_boot + compaction_plan.WARMUP) * len(group.works) * len(group.configs)


def one_boot(chosen: Plan, board: Board, kernel: Kernel, group: Group) -> experiment.Boot:
    """The boot of a group."""
    program = guest_programs.programs(board.arch)[compaction_plan.PROGRAM]
    script = compactbench.script(program, chosen, group, move_pages.insmods(kernel, modules_of(board, kernel, group)))
    return experiment.Boot(group.name, board, kernel, script, guest_samples.SAMPLE, silence_s=SILENCE_S,
                           timeout_s=board.boot_timeout_s + SLOWEST_SAMPLE_S * samples(chosen, group))


def modules_of(board: Board, kernel: Kernel, group: Group) -> list[str]:
    """The modules to load, with their parameters, in order; what is built into the kernel needs none."""
    wanted = move_pages.modules_of(board, group.configs)
    return [*(module for module in wanted if module.split()[0] in kernel.modules), compaction_plan.MODULE]
