# SPDX-License-Identifier: GPL-2.0
"""`ferry bench move_pages`: what each migrator makes of move_pages(2), over folio sizes.

Within a boot the configurations are taken in turn; with `--baseline stock`, boots of the unpatched kernel of the same
configuration alternate with boots of ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from ferry import boards, progress
from ferry.bench import meta, movebench, plan, summary
from ferry.bench.plan import STOCK, Plan
from ferry.bench.summary import BootResult
from ferry.boards import Board
from ferry.errors import InfraError, UsageError
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.paths import CONSOLE, RAW
from ferry.results import stats
from ferry.results.document import SCHEMA, Document
from ferry.vm import boot, guest_programs, tcg
from ferry.vm.boot_log import booted, counting

NAME = "move_pages"
SCRIPT = "sweep.sh"
MIB = 1 << 20

#: Bytes of one move, by folio size: a tenth of a second of emulation, so that the whole sweep takes about one minute.
#: Counting instructions is ten times slower, but a count is stable however little is moved: several batches will do.
TOTALS = {4 << 10: 32 * MIB, 64 << 10: 64 * MIB, 2 << 20: 256 * MIB}
COUNTED_TOTALS = {4 << 10: 32 * MIB, 2 << 20: 64 * MIB}

#: Hogs leave a mover half a CPU of a guest that has more of them than its host: it moves a fraction as fast.
HOGGED = 4

#: Emulated figures scatter; more samples than a comparison needs narrow its interval.
SAMPLES = 15

#: Moving 256 MiB of 4 KiB pages there and back under -icount took 17 s a round; hogs make it slower still.
SLOWEST_ROUND_S = 60

#: No sample comes for as long as this only in a guest that hangs: the slowest seen took 20 s, on a host much too busy.
SILENCE_S = 180

KernelName = Literal["ferry", "stock"]


@dataclass(frozen=True)
class Bench:
    """A sweep and everything that it runs with; `advance` is called after every round of every configuration."""

    sweep: Plan
    board: Board
    kernels: dict[KernelName, Kernel]
    program: Path
    run_dir: Path
    advance: Callable[[], None]


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The options of this bench."""
    parser = sub.add_parser(NAME, help="move pages between two memory nodes with each migrator")
    add = parser.add_argument
    add("--board", default="x86-numa", choices=with_two_nodes(), help="default: x86-numa")
    add("--quick", action="store_true", help="no more samples, warm-up rounds and boots than needed")
    add("--baseline", default="off", choices=("off", "stock"),
        help="no migrator in the same boot (off, the default), or the unpatched kernel in boots between (stock)")
    add("--migrator", type=plan.listed(plan.one_of(plan.MIGRATORS)), metavar="LIST",
        help="off, kernel, mtcopy, dcbm (default: all that the board has; off is always measured)")
    add("--threads", type=plan.listed(plan.thread_count), metavar="LIST", help="of mtcopy (default: 1,2,4)")
    add("--nontemporal", type=plan.listed(plan.one_of(plan.NONTEMPORAL)), metavar="LIST",
        help="stores of mtcopy, each one a row: never, always or auto")
    add("--channels", type=plan.listed(plan.channel_count), metavar="LIST", help="of dcbm (default: the board's)")
    add("--verify", type=plan.listed(plan.one_of(plan.VERIFY)), metavar="LIST", help="of dcbm, each one a row")
    add("--force-offload", action="store_true", help="let dcbm offload even batches that the CPU copies faster")
    add("--folio", type=plan.listed(plan.folio_size), metavar="LIST", help="folio sizes (default: 4k,64k,2m)")
    add("--bytes", type=plan.byte_count, metavar="N", help="how much one move moves at every folio size, as in 32m")
    add("--samples", type=int, metavar="N", help="of each row (default: 15, or 10 where that is as good)")
    add("--one-per-call", action="store_true", help="one folio per move_pages(2) call")
    add("--cpu-hogs", type=plan.hog_count, default=0, metavar="N", help="keep the guest's CPUs busy with N threads")
    add("--defer-flush", action="store_true", help="a row with deferred TLB flushes (migrc) beside off")
    add("--read-only", action="store_true", help="map the memory read-only (anonymous memory of 4k or 2m folios)")
    add("--kind", default="anon", choices=("anon", "shmem", "file", "swapcache"), help="what is moved")
    return parser


def with_two_nodes() -> list[str]:
    """The boards between whose nodes pages can be moved."""
    return [name for name in boards.names() if len(boards.load(name).nodes) > 1]


def plan_for(args: argparse.Namespace, board: Board) -> Plan:
    """The sweep that the options ask for on this board."""
    threads = args.threads or ([1] if board.cpus == 1 else [1, 2, 4])
    known = {size: total // (HOGGED if args.cpu_hogs else 1) for size, total in default_totals(board).items()}
    possible = plan.sizes_of(args.kind, args.read_only)
    sizes = args.folio or [size for size in known if size in possible]
    vs_stock = args.baseline == "stock"
    enough = stats.MIN_SAMPLES if args.quick or counts(board) else SAMPLES
    return plan.checked(Plan(
        configs=plan.configs(plan.Choice(migrators(args.migrator, board), threads, args.nontemporal,
                                         args.channels or [board.channels], args.verify, args.force_offload,
                                         args.defer_flush)),
        totals={size: args.bytes or known.get(size, known[4 << 10]) for size in sizes},
        samples=enough if args.samples is None else args.samples,
        warmup=1 if args.quick else 2, boots=(2 if args.quick else 3) if vs_stock else 1,
        vs_stock=vs_stock, single=args.one_per_call, hogs=args.cpu_hogs, kind=args.kind, always=args.force_offload,
        read_only=args.read_only,
    ))


def migrators(asked: list[str] | None, board: Board) -> list[str]:
    """Those asked for, or all that the board can have. Raises UsageError for dcbm without a DMA engine."""
    if asked and "dcbm" in asked and not board.channels:
        equipped = [name for name in boards.names() if boards.load(name).channels]
        raise UsageError(f"{board.name} has no DMA engine for dcbm", hint=f"--board {'|'.join(equipped)}")
    return asked or [name for name in plan.MIGRATORS if name != "dcbm" or board.channels]


def default_totals(board: Board) -> dict[int, int]:
    """Bytes of one move by folio size, where the options name none."""
    return COUNTED_TOTALS if counts(board) else TOTALS


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build what is needed and measure it."""
    board = boards.load(args.board)
    sweep = plan_for(args, board)
    order: list[KernelName] = ["stock", "ferry"] if sweep.vs_stock else ["ferry"]
    kernels = {name: build.build(board, name) for name in order}
    program = guest_programs.programs(board.arch)["movebench"]
    with counting(f"sweep on {board.name}", rounds(sweep)) as advance:
        return measure(Bench(sweep, board, kernels, program, run_dir, advance))


def counts(board: Board) -> bool:
    """Whether the guest's clock counts instructions."""
    return board.kind == "instructions"


def rounds(sweep: Plan) -> int:
    """How many rounds of one configuration the whole sweep takes, warm-ups included: the length of its bar."""
    each_boot = (sweep.samples_per_boot + sweep.warmup) * len(sweep.totals)
    return sweep.boots * each_boot * (len(sweep.configs) + sweep.vs_stock)


def timeout_s(sweep: Plan, board: Board) -> float:
    """For one boot: far more than the slowest round takes, so that only a guest that hangs runs into it."""
    return board.boot_timeout_s + SLOWEST_ROUND_S * rounds(sweep) / sweep.boots


def measure(bench: Bench) -> Document:
    """Boot, sweep and sum up."""
    sweep, board = bench.sweep, bench.board
    kernel_keys = {name: kernel.key for name, kernel in bench.kernels.items()}
    captured = meta.capture(kernel_keys=kernel_keys, config=asdict(sweep), **meta.tools(board),
                            accelerator=meta.accelerator(board, bench.kernels["ferry"].image))
    warnings = [] if counts(board) else meta.warnings(captured)
    order = [(number, name) for number in range(sweep.boots) for name in bench.kernels]
    boots = []
    for made, (number, name) in enumerate(order, start=1):
        progress.note(f"booting the {name} kernel on {board.name}, {made} of {len(order)}")
        result, said = one_boot(bench, number, name)
        boots.append(result)
        warnings += said
    document = Document(schema=SCHEMA, bench=NAME, board=board.name, kind=board.kind, baseline=sweep.baseline,
                        meta=captured, rows=[], warnings=warnings)
    summary.fill(document, sweep, boots, "instructions_per_page" if counts(board) else "gbps")
    return document


def one_boot(bench: Bench, number: int, name: KernelName) -> tuple[BootResult, list[str]]:
    """The outcomes of one boot, and what must be said of it."""
    share = bench.run_dir / RAW / f"{number}-{name}"
    share.mkdir(parents=True)
    kernel = bench.kernels[name]
    write_script(bench, name, kernel, share / SCRIPT)
    warnings = tcg.twice(bench.board, kernel, share, lambda: sweep_once(bench, kernel, share))
    outcomes = {size: movebench.outcome(share, size) for size in bench.sweep.totals}
    return BootResult(number, name, outcomes), warnings


def write_script(bench: Bench, name: KernelName, kernel: Kernel, script: Path) -> None:
    """What the guest shall run; the unpatched kernel has nothing to configure and no module of ours."""
    configs = (STOCK,) if name == "stock" else bench.sweep.configs
    chosen = {config.migrator for config in configs}
    modules = ["ferry_mtcopy"] * ("mtcopy" in chosen) + [*bench.board.drivers, "ferry_dcbm"] * ("dcbm" in chosen)
    script.write_text(movebench.script(bench.program, bench.sweep, configs, insmods(kernel, modules)))


def insmods(kernel: Kernel, modules: Sequence[str]) -> list[list[str]]:
    """The words that load each module, given as its name and parameters."""
    named = [module.split() for module in modules]
    return [["insmod", str(kernel.modules[name]), *parameters] for name, *parameters in named]


def sweep_once(bench: Bench, kernel: Kernel, share: Path) -> None:
    """One boot; its results lie in `share` afterwards, and its console at the end of the run's console.log."""
    limit = timeout_s(bench.sweep, bench.board)
    result = booted(bench.run_dir, share.name, lambda: boot.boot(
        bench.board, kernel, f"sh {SCRIPT}", timeout_s=limit, silence_s=SILENCE_S, share=share,
        on_line=lambda line: bench.advance() if movebench.is_sample(line) else None))
    if result.status:
        raise InfraError(f"the sweep ended with {result.status} in the guest",
                         hint=f"ferry boot --board {bench.board.name}", log=bench.run_dir / CONSOLE)
