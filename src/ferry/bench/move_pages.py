# SPDX-License-Identifier: GPL-2.0
"""`ferry bench move_pages`: the speed of move_pages(2) with each migrator, by folio size, and the stalls of its users.

Within a boot the configurations are measured in turn; with `--baseline stock`, boots of the unpatched kernel of the
same configuration alternate with boots of ours. Rows of 4 KiB and of 2 MiB have stalls, see ferry.bench.stalls; those
of other folio sizes have none.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ferry import boards
from ferry.bench import engines, experiment, guest_samples, movebench, plan, rows, stalls
from ferry.bench.plan import STOCK, Case, Config, Plan
from ferry.bench.rows import BootResult
from ferry.boards import LOCAL, Board
from ferry.errors import UsageError
from ferry.kernel.build import Kernel
from ferry.results import stats
from ferry.results.document import Document
from ferry.vm import guest_programs, qemu

NAME = "move_pages"
MIB = 1 << 20

#: Bytes of one move, by folio size: a tenth of a second of emulation, so that the whole sweep takes about one minute.
#: Counting instructions is ten times slower, but counts are stable, so that a few batches are enough.
TOTALS = {4 << 10: 32 * MIB, 64 << 10: 64 * MIB, 2 << 20: 256 * MIB}
COUNTED_TOTALS = {4 << 10: 8 * MIB, 2 << 20: 64 * MIB}

#: Divisor of the bytes: with CPU hogs, a guest with more CPUs than its host moves a fraction as fast.
HOGGED = 4

#: Emulated figures scatter, so take more samples than a comparison needs.
SAMPLES = 15

#: Moving 256 MiB of 4 KiB pages there and back under -icount took 17 s a round; hogs make it slower still.
SLOWEST_ROUND_S = 60

#: Only a guest that hangs prints no sample for so long: the slowest sample seen took 20 s, on an overloaded host.
SILENCE_S = 180


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The options of this bench."""
    parser = sub.add_parser(NAME, help="move pages between two memory nodes with each migrator")
    add = parser.add_argument
    add("--board", default="x86-numa", choices=[*with_two_nodes(), LOCAL],
        help="default: x86-numa; local is this machine, which runs the kernel already")
    add("--quick", action="store_true", help="no more samples, warm-up rounds and boots than needed")
    add("--baseline", default="off", choices=("off", "stock"),
        help="no migrator in the same boot (off, the default), or the unpatched kernel in boots between (stock)")
    add("--migrator", type=plan.listed(plan.one_of(plan.MIGRATORS)), metavar="LIST",
        help="off, kernel, mtcopy, dcbm, auto (default: all that the board has; off is always measured)")
    add("--threads", type=plan.listed(plan.bounded(1, plan.MAX_THREADS)), metavar="LIST",
        help="of mtcopy (default: 1,2,4)")
    add("--nontemporal", type=plan.listed(plan.one_of(plan.NONTEMPORAL)), metavar="LIST",
        help="stores of mtcopy, each one a row: never, always or auto")
    add("--channels", type=plan.listed(plan.bounded(1, plan.MAX_CHANNELS)), metavar="LIST",
        help="of dcbm and auto (default: the board's)")
    add("--engine-rate", type=plan.listed(plan.engine_rate), metavar="LIST",
        help="speed of each channel of the device models, in multiples of a CPU's copy rate; each one a column")
    add("--batch-max-us", type=plan.bounded(1, plan.MAX_BATCH_US), metavar="N",
        help="batch_max_us of our kernel while the samples are taken (default: leave it as it is; "
             f"{engines.BATCH_MAX_US} with --engine-rate)")
    add("--verify", type=plan.listed(plan.one_of(plan.VERIFY)), metavar="LIST", help="of dcbm, each one a row")
    add("--force-offload", action="store_true", help="let dcbm and auto offload even what the CPU copies faster")
    add("--folio", type=plan.listed(plan.folio_size), metavar="LIST",
        help="folio sizes (default: 4k,64k,2m; of hugetlb 2m, and it can have 1g)")
    add("--bytes", type=plan.byte_count, metavar="N", help="how much one move moves at every folio size, as in 32m")
    add("--samples", type=int, metavar="N", help="of each row (default: 15, or 10 where that is as good)")
    add("--runs", type=plan.listed(plan.one_of(plan.RUNS)), metavar="LIST",
        help="each row with base pages moved in runs: off, on (default: one row with runs beside the others)")
    add("--pages-per-call", type=plan.listed(plan.bounded(1, plan.MAX_PAGES_PER_CALL)), metavar="LIST",
        help="addresses in one move_pages(2) call (default: all)")
    add("--order", type=plan.listed(plan.one_of(plan.ORDERS)), metavar="LIST",
        help="of the addresses: sequential, random, every8 (one folio of eight) (default: sequential)")
    add("--cpu-hogs", type=plan.bounded(0, plan.MAX_PROGRAM_THREADS), default=0, metavar="N",
        help="keep the guest's CPUs busy with N threads")
    add("--defer-flush", action="store_true", help="a row with deferred TLB flushes (migrc) beside off")
    add("--read-only", action="store_true", help="map the memory read-only (anonymous memory of 4k or 2m folios)")
    add("--kind", type=plan.listed(plan.one_of(plan.KINDS)), metavar="LIST",
        help="kind of memory to move: anon, shmem, file, swapcache, hugetlb (default: anon)")
    return parser


def with_two_nodes() -> list[str]:
    """The boards between whose nodes pages can be moved."""
    return [name for name in boards.names() if len(boards.load(name).nodes) > 1]


def plan_for(args: argparse.Namespace, board: Board) -> Plan:
    """The sweep that the options ask for on this board."""
    threads = args.threads or ([1] if board.cpus == 1 else [1, 2, 4])
    vs_stock = args.baseline == "stock"
    channels = args.channels or [board.channels]
    chosen = migrators(args.migrator, board)
    refuse_idle_options(args, chosen)
    limit = args.batch_max_us
    unmeasured = 0 if set(plan.BY_CHANNELS).isdisjoint(chosen) else 1
    if args.engine_rate:
        engines.refuse(board, channels)
        chosen = [plan.CPU_MIGRATOR, *chosen]
        limit = limit or engines.BATCH_MAX_US
        unmeasured *= engines.UNMEASURED
    enough = stats.MIN_SAMPLES if args.quick or counts(board) else SAMPLES
    sweep = plan.checked(Plan(
        configs=plan.configs(plan.Choice(chosen, threads, args.nontemporal, channels, args.verify, args.force_offload,
                                         args.defer_flush, args.runs, limit)),
        cases=tuple(cases(args, default_totals(board))),
        samples=enough if args.samples is None else args.samples,
        warmup=1 if args.quick else 2, boots=(2 if args.quick else 3) if vs_stock else 1,
        vs_stock=vs_stock, hogs=args.cpu_hogs, always=args.force_offload, read_only=args.read_only,
        unmeasured=unmeasured,
        ends=board.ends, batch_max_us=limit,
    ))
    if board.runner == LOCAL and any(case.kind == "swapcache" for case in sweep.cases):
        raise UsageError("--kind swapcache turns swap on, which the board local leaves as it is",
                         hint="--kind anon,shmem,file")
    return replace(sweep, stalls=stalls.cases(sweep, board))


def refuse_idle_options(args: argparse.Namespace, chosen: Sequence[str]) -> None:
    """Raises UsageError for an option of a migrator that is not measured."""
    of = (("--nontemporal", args.nontemporal, ("mtcopy",)), ("--verify", args.verify, ("dcbm",)),
          ("--force-offload", args.force_offload, plan.BY_CHANNELS))
    for option, value, names in of:
        if value and not set(names) & set(chosen):
            raise UsageError(f"{option} is of {' and '.join(names)}, which is not measured",
                             hint=f"--migrator {','.join(names)}")
    if args.engine_rate and args.runs == ["on"]:
        raise UsageError("--engine-rate compares with a CPU's copy rate, which rows with runs do not show",
                         hint="--runs off,on")


def cases(args: argparse.Namespace, totals: dict[int, int]) -> Iterator[Case]:
    """Each combination of kind, folio size, order, pages per call and speed of the engines.

    `totals` are bytes of one move by folio size.
    """
    slowed = (HOGGED if args.cpu_hogs else 1) * (engines.SLOWED if args.engine_rate else 1)
    for kind in args.kind or ["anon"]:
        for size in args.folio or sorted(totals.keys() & set(plan.sizes_of(kind, args.read_only))):
            total = args.bytes or max(size, totals.get(size, totals[4 << 10]) // slowed)
            for order in args.order or ["sequential"]:
                for count in args.pages_per_call or [0]:
                    for rate in args.engine_rate or [0.0]:
                        yield Case(size, total, kind, count, order, rate)


def migrators(asked: list[str] | None, board: Board) -> list[str]:
    """Those asked for, or all that the board can have. Raises UsageError for dcbm without a DMA engine."""
    if asked and "dcbm" in asked and not board.channels:
        equipped = [name for name in boards.names() if boards.load(name).channels]
        raise UsageError(f"{board.name} has no DMA engine for dcbm", hint=f"--board {'|'.join(equipped)}")
    return asked or [name for name in plan.MIGRATORS if name not in plan.BY_CHANNELS or board.channels]


def default_totals(board: Board) -> dict[int, int]:
    """Bytes of one move by folio size, where the options name none."""
    return COUNTED_TOTALS if counts(board) else TOTALS


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build the kernels and measure."""
    board = boards.load(args.board)
    sweep = plan_for(args, board)
    if args.engine_rate:
        board = engines.rated(board)
    board = qemu.with_gigantic(board, sweep.gigantic_folios)
    kernels = experiment.kernels(board, sweep.vs_stock)
    document = experiment.document(NAME, board, sweep.baseline, kernels, asdict(sweep))
    order = {f"{number}-{name}": (number, name) for number in range(sweep.boots) for name in kernels}
    programs = guest_programs.programs(board.arch)
    boots = [one_boot(sweep, board, kernels[kernel], programs, name, kernel) for name, (_, kernel) in order.items()]
    document["warnings"] += experiment.run(boots, run_dir, f"sweep on {board.name}", rounds(sweep))
    results = [boot_result(sweep, number, kernel, experiment.share_of(run_dir, name))
               for name, (number, kernel) in order.items()]
    rows.fill(document, sweep, results, "instructions_per_page" if counts(board) else "gbps")
    if reason := stalls.why_none(sweep, board):
        document["no_stalls"] = reason
    return document


def counts(board: Board) -> bool:
    """Whether the guest's clock counts instructions."""
    return board.kind == "instructions"


def rounds(sweep: Plan) -> int:
    """How many rounds of one configuration the whole sweep takes, warm-ups included: the length of its bar."""
    each_boot = (sweep.samples_per_boot + sweep.warmup) * len(sweep.cases) + stalls.SAMPLES * len(sweep.stalls)
    return sweep.boots * each_boot * (len(sweep.configs) + sweep.vs_stock)


def one_boot(sweep: Plan, board: Board, kernel: Kernel, programs: Mapping[str, Path], name: str, kernel_name: str,
             *then: list[str]) -> experiment.Boot:
    """A boot that measures each case; the unpatched kernel has nothing to configure and none of our modules.

    `programs` are the guest's; `then` are commands to run once the modules are loaded.
    """
    configs = (STOCK,) if kernel_name == "stock" else sweep.configs
    first = [*insmods(kernel, modules_of(board, configs)), *then]
    script = movebench.script(programs[movebench.PROGRAM], sweep, configs, first,
                              stalls.lines(programs, sweep, configs))
    return experiment.Boot(name, board, kernel, script, guest_samples.SAMPLE, silence_s=SILENCE_S,
                           timeout_s=board.boot_timeout_s + SLOWEST_ROUND_S * rounds(sweep) / sweep.boots)


def modules_of(board: Board, configs: Sequence[Config]) -> list[str]:
    """The modules that the configurations need, with their parameters, in the order in which to load them."""
    chosen = {config.migrator for config in configs}
    by_channels = not chosen.isdisjoint(plan.BY_CHANNELS)
    by_cpus = by_channels or not chosen.isdisjoint(plan.BY_CPUS)
    return ["ferry_mtcopy"] * by_cpus + [*board.drivers, "ferry_dcbm"] * by_channels


def insmods(kernel: Kernel, modules: Sequence[str]) -> list[list[str]]:
    """The words that load each module, given as its name and parameters, unless the kernel has it already."""
    named = [module.split() for module in modules]
    return [["insmod", str(kernel.module(name)), *parameters] for name, *parameters in named
            if name not in kernel.present]


def boot_result(sweep: Plan, number: int, kernel: str, share: Path) -> BootResult:
    """The outcomes of a boot, read from its share."""
    return BootResult(number, kernel, {case: movebench.outcome(share, case) for case in sweep.cases},
                      stalls.outcomes(share, sweep))
