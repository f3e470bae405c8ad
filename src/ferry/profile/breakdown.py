# SPDX-License-Identifier: GPL-2.0
"""`ferry bench breakdown`: where the time of move_pages(2) goes, by phase, and how much of it the copy is.

It repeats the table of an RFC (docs/benchmarks/breakdown.md) and goes on with each folio size and kind of memory. On
x86-icount the phases are the instructions that `ferry profile` counts; elsewhere a tracepoint tells the copy from the
rest. A case has a boot of each kernel, in which its configurations are measured in turn.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from ferry import boards, progress
from ferry.bench import experiment, move_pages, movebench, plan
from ferry.bench.plan import STOCK, Case, Choice, Plan
from ferry.boards import Board
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.profile import breakdown_events, breakdown_plugin, breakdown_rows
from ferry.profile.breakdown_method import Method
from ferry.profile.breakdown_rows import Side
from ferry.profile.move_pages import supported
from ferry.results import stats
from ferry.results.document import Document, Skip
from ferry.results.formats import size_name
from ferry.vm import guest_programs

NAME = "breakdown"
FOLIOS = (4 << 10, 64 << 10, 2 << 20)
#: The moves of the RFC's table, all of anonymous base pages.
RFC_BYTES = (4 << 10, 2 << 20, 256 << 20, 1 << 30)
#: Enough for the last sample's line to reach the console: on one CPU its way would count as part of the next move.
SETTLE_MS = 5
#: One move of every other case.
BYTES = 2 << 20
QUICK_KINDS = ("anon", "shmem")


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The options of this bench."""
    parser = sub.add_parser(NAME, help="divide the cost of a move into phases: the copy's share of it, and the rest")
    add = parser.add_argument
    add("--board", default="x86-icount", choices=move_pages.with_two_nodes(), help="default: x86-icount")
    add("--quick", action="store_true", help="no move of more than 2 MiB, and only anonymous and shared memory")
    add("--baseline", default="stock", choices=("off", "stock"),
        help="the unpatched kernel in boots between (stock, the default), or only ours with no migrator (off)")
    add("--migrator", type=plan.listed(plan.one_of(plan.MIGRATORS)), metavar="LIST",
        help="off, kernel, mtcopy, dcbm, auto (default: all that the board has; off is always measured)")
    add("--runs", type=plan.listed(plan.one_of(plan.RUNS)), metavar="LIST",
        help="each row with base pages moved in runs: off, on (default: one row with runs beside the others)")
    add("--folio", type=plan.listed(plan.folio_size), metavar="LIST", help="folio sizes (default: 4k,64k,2m)")
    add("--kind", type=plan.listed(plan.one_of(plan.BATCHED_KINDS)), metavar="LIST",
        help="kind of memory to move: anon, shmem, file, swapcache (default: all, or anon,shmem if quick)")
    return parser


def plan_for(args: argparse.Namespace, board: Board) -> tuple[Plan, list[Skip]]:
    """The sweep that the options ask for on this board, and the cases that it leaves out."""
    chosen = plan.configs(Choice(move_pages.migrators(args.migrator, board), [board.cpus], channels=[board.channels],
                                 runs=args.runs))
    found = {case: why_not(case, board, args.quick) for case in cases(args)}
    sweep = plan.checked(Plan(configs=chosen, cases=tuple(case for case, reason in found.items() if not reason),
                              samples=stats.MIN_SAMPLES, warmup=1, boots=1, vs_stock=args.baseline == "stock",
                              settle_ms=SETTLE_MS))
    return sweep, [Skip(folio_bytes=case.folio_bytes, reason=reason,
                        workload=f"{case.kind}, {size_name(case.total_bytes)}")
                   for case, reason in found.items() if reason]


def cases(args: argparse.Namespace) -> Iterator[Case]:
    """The moves of the RFC's table, then each kind and folio size that was asked for or, by default, that there is."""
    for kind in args.kind or (QUICK_KINDS if args.quick else plan.BATCHED_KINDS):
        default = [size for size in FOLIOS if size in plan.sizes_of(kind, read_only=False)]
        for size in args.folio or default:
            for total in RFC_BYTES if (kind, size) == ("anon", 4 << 10) else (BYTES,):
                yield Case(size, total, kind)


def why_not(case: Case, board: Board, quick: bool) -> str:
    """Why a case is left out, or ""."""
    smallest = min(node.memory_mib for node in board.nodes)
    if case.memory_bytes >= smallest << 20:
        return f"a node of {board.name} has {smallest} MiB"
    return f"--quick moves at most {BYTES >> 20} MiB" if quick and case.total_bytes > BYTES else ""


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build the kernels and measure."""
    board = boards.load(args.board)
    sweep, skipped = plan_for(args, board)
    kernels = {name: build.build(board, name) for name in ["stock"] * sweep.vs_stock + ["ferry"]}
    document = experiment.document(NAME, board, sweep.baseline, kernels, asdict(sweep))
    document["skipped"] = skipped
    for case in sweep.cases:
        # One sample of tens of thousands of pages takes minutes, and their counts hardly differ.
        large = move_pages.counts(board) and case.total_bytes > BYTES
        one = replace(sweep, cases=(case,), samples=1 if large else sweep.samples, warmup=0 if large else sweep.warmup)
        measure(document, one, board, kernels, run_dir)
    return document


def method_of(board: Board) -> Method:
    """By the plugin where it can record."""
    return breakdown_plugin if board.name in supported() else breakdown_events


def measure(document: Document, sweep: Plan, board: Board, kernels: Mapping[str, Kernel], run_dir: Path) -> None:
    """Add the rows of the sweep's one case to a document."""
    (case,) = sweep.cases
    method = method_of(board)
    programs = guest_programs.programs(board.arch)
    names = {kernel: f"{case.name}-{case.total_bytes >> 10}k-{kernel}" for kernel in kernels}
    shares = {kernel: experiment.share_of(run_dir, name) for kernel, name in names.items()}
    boots = [move_pages.one_boot(sweep, method.recorded(board, shares[kernel]), built, programs, names[kernel], kernel,
                                 *method.commands(kernel)) for kernel, built in kernels.items()]
    what = f"{case.name}, {size_name(case.total_bytes)} on {board.name}"
    document["warnings"] += experiment.run(boots, run_dir, f"record {what}", move_pages.rounds(sweep))
    with progress.stage(f"count {what}"):
        sides = {kernel: read(method, share, sweep, kernel) for kernel, share in shares.items()}
    breakdown_rows.add(document, sweep, method, sides)


def read(method: Method, share: Path, sweep: Plan, kernel: str) -> Side:
    """What a boot left in its share, of which only the small files stay."""
    outcome = movebench.outcome(share, sweep.cases[0])
    configs = (STOCK,) if kernel == "stock" else sweep.configs
    found = method.samples(share, sweep, configs, outcome) if outcome.status == 0 else {}
    method.remove(share)
    return Side(outcome, found)
