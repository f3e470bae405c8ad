# SPDX-License-Identifier: GPL-2.0
"""`ferry profile`: where the instructions of a kernel path go, by phase and by function."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from ferry import boards
from ferry.bench import plan
from ferry.bench.plan import Case, Choice
from ferry.commands.cli import add_global_options
from ferry.errors import UsageError
from ferry.profile import move_pages, output
from ferry.results import formats

_KERNELS = ("stock", "ferry")
#: Enough that what happens once a call does not show.
_BYTES = 4 << 20


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry profile PATH`."""
    parser = sub.add_parser("profile", help="count a kernel path's instructions by phase and function")
    paths = parser.add_subparsers(dest="path", required=True, metavar="PATH")
    options = paths.add_parser(move_pages.NAME, help="move_pages(2) of memory between two nodes")
    add = options.add_argument
    add("--board", default="x86-icount", choices=move_pages.supported(), help="default: x86-icount")
    add("--kernel", type=plan.listed(plan.one_of(_KERNELS)), default=list(_KERNELS), metavar="LIST",
        help="stock, ferry (default: both)")
    add("--migrator", type=plan.listed(plan.one_of(plan.MIGRATORS)), default=["off"], metavar="LIST",
        help="off, kernel, mtcopy: a column each; off is always there (default: off)")
    add("--runs", type=plan.listed(plan.one_of(plan.RUNS)), metavar="LIST",
        help="each column with base pages moved in runs: off, on (default: one column with runs beside the others)")
    add("--folio", type=plan.folio_size, default=4 << 10, metavar="SIZE", help="default: 4k")
    add("--bytes", type=plan.byte_count, default=_BYTES, metavar="N", help="how much one move moves (default: 4m)")
    add("--pages-per-call", type=plan.bounded(1, plan.MAX_PAGES_PER_CALL), default=0, metavar="N",
        help="addresses in one call (default: all)")
    add("--order", default="sequential", choices=plan.ORDERS, help="of the addresses (default: sequential)")
    add("--kind", default="anon", choices=plan.BATCHED_KINDS, help="of memory (default: anon)")
    add("--tree", action="store_true", help="print the call trees, too")
    add("--plot", type=Path, metavar="FILE", help="draw the phases into FILE (.svg, .png, .pdf)")
    formats.add_option(options)
    add_global_options(options, top=False)


def run(args: argparse.Namespace) -> int:
    """Record, print, and draw if asked to."""
    case = Case(args.folio, args.bytes, args.kind, args.pages_per_call, args.order)
    if args.folio not in plan.sizes_of(args.kind, read_only=False):
        raise UsageError(f"{args.kind} memory does not come in folios of {plan.size_argument(args.folio)}",
                         hint="--folio 4k")
    if "dcbm" in args.migrator:
        raise UsageError(f"{args.board} has no DMA engine for dcbm", hint="--migrator off,kernel,mtcopy")
    configs = plan.configs(Choice(args.migrator, [1], runs=args.runs))
    with tempfile.TemporaryDirectory(prefix="ferry-profile-") as scratch:
        found = move_pages.profiles(boards.load(args.board), args.kernel, configs, case, Path(scratch))
    print(formats.render(output.output(move_pages.NAME, args.board, found, args.tree), args.format))
    if args.plot:
        output.plot(move_pages.NAME, args.board, found, args.plot)
    return 0
