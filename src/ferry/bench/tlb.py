# SPDX-License-Identifier: GPL-2.0
"""`ferry bench tlb`: what moving memory costs those who read it, in TLB flushes and the interrupts they take.

Equal work on the unpatched kernel and on ours with migrc, in interleaved boots, or in turn in one boot of ours with
migrc off and on. Boots differ in their nodes: hinting and xslookup need memory tiers, compaction a node that is full.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from ferry import boards, progress
from ferry.bench import meta, movebench, plan, tlb_guest, tlb_plan, tlb_rows
from ferry.bench.tlb_guest import Outcome
from ferry.bench.tlb_plan import Plan, Work
from ferry.errors import InfraError, UsageError
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.paths import CONSOLE, RAW
from ferry.results import stats
from ferry.results.document import SCHEMA, Document
from ferry.vm import boot, guest_programs, tcg
from ferry.vm.boot_log import booted, counting

NAME = "tlb"
SCRIPT = "tlb.sh"
SAMPLES = 15
#: Far more than any sample took: a guest that hangs runs into it.
SLOWEST_SAMPLE_S = 90
SILENCE_S = 240


@dataclass(frozen=True)
class Bench:
    """A plan and everything that it runs with; `advance` is called after every sample."""

    plan: Plan
    board: str
    kernels: dict[str, Kernel]
    programs: dict[str, Path]
    run_dir: Path
    advance: Callable[[], None]


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The options of this bench."""
    parser = sub.add_parser(NAME, help="count the TLB flushes that moving memory costs those who read it")
    add = parser.add_argument
    add("--board", default="x86-numa", choices=tlb_plan.BOARDS, help="default: x86-numa")
    add("--quick", action="store_true", help="less work a sample, and no more samples and boots than needed")
    add("--workload", type=plan.listed(plan.one_of(tlb_plan.WORKLOADS)), metavar="LIST",
        help=f"{', '.join(tlb_plan.WORKLOADS)} (default: all but xslookup)")
    add("--ratio", type=plan.listed(tlb_plan.ratio_of), metavar="LIST",
        help=f"of fast to slow memory, for xslookup (default: {','.join(tlb_plan.DEFAULT_RATIOS)})")
    add("--baseline", default="stock", choices=tuple(tlb_plan.BASELINES),
        help="the unpatched kernel, in boots between ours (stock, the default), or migrc off in the same boot (off)")
    add("--max-bytes", type=tlb_plan.quarantine_bytes, metavar="N", help="bound of migrc's quarantine, as in 16m")
    add("--readers", type=tlb_plan.reader_count, metavar="N", help="threads that read (default: one for each CPU)")
    add("--samples", type=int, metavar="N", help="of each side of a row (default: 15, or 10 if quick)")
    return parser


def plan_for(args: argparse.Namespace) -> Plan:
    """What the options ask for. Raises UsageError where it could not support a comparison."""
    names = args.workload or list(tlb_plan.DEFAULT_WORKLOADS)
    if args.ratio and "xslookup" not in names:
        raise UsageError("--ratio is of xslookup", hint="--workload xslookup")
    if args.readers and "xslookup" in names:
        raise UsageError("--readers is not of xslookup, whose threads look up", hint="--workload single")
    samples = args.samples if args.samples is not None else stats.MIN_SAMPLES if args.quick else SAMPLES
    if samples < stats.MIN_SAMPLES:
        raise UsageError(f"{samples} samples are too few: a comparison needs {stats.MIN_SAMPLES}",
                         hint=f"--samples {stats.MIN_SAMPLES}")
    works = tlb_plan.works(names, boards.load(args.board), args.ratio or list(tlb_plan.DEFAULT_RATIOS), args.quick,
                           args.readers)
    return Plan(works, args.baseline, samples, boots=2 if args.quick else 3, max_bytes=args.max_bytes)


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build what is needed and measure it."""
    chosen = plan_for(args)
    board = boards.load(args.board)
    names = dict.fromkeys(config.kernel for config in chosen.configs)
    kernels = {name: build.build(board, name) for name in names}
    with counting(f"tlb on {board.name}", samples(chosen)) as advance:
        return measure(Bench(chosen, board.name, kernels, guest_programs.programs(board.arch), run_dir, advance))


def samples(chosen: Plan) -> int:
    """How many there are in all, warm-ups left out: the length of the bar."""
    return chosen.boots * chosen.samples_per_boot * len(chosen.works) * len(chosen.configs)


def measure(bench: Bench) -> Document:
    """Boot, run and sum up."""
    chosen, kind = bench.plan, boards.load(bench.board).kind
    captured = meta.capture(kernel_keys={name: kernel.key for name, kernel in bench.kernels.items()},
                            config=described(chosen), accelerator=accelerator(bench))
    warnings = meta.warnings(captured)
    order = [(number, machine, name) for number in range(chosen.boots) for machine in range(len(chosen.groups()))
             for name in bench.kernels]
    outcomes: list[Outcome] = []
    for made, (number, machine, name) in enumerate(order, start=1):
        works = chosen.groups()[machine]
        what = ", ".join(work.name for work in works)
        progress.note(f"booting the {name} kernel on {bench.board} for {what}, {made} of {len(order)}")
        found, said = one_boot(bench, works, number, machine, name)
        outcomes += found
        warnings += said
    document = Document(schema=SCHEMA, bench=NAME, board=bench.board, kind=kind, baseline=chosen.baseline, rows=[],
                        meta=captured, warnings=warnings)
    tlb_rows.fill(document, chosen, outcomes)
    return document


def accelerator(bench: Bench) -> str:
    """The same for all boots."""
    return meta.accelerator(boards.load(bench.board), next(iter(bench.kernels.values())).image)


def described(chosen: Plan) -> dict[str, object]:
    """The plan as it is kept; boards are named, their nodes are in the rows."""
    works = [{"name": work.name, "arguments": list(work.arguments)} for work in chosen.works]
    return {**{key: value for key, value in asdict(chosen).items() if key != "works"}, "works": works}


def one_boot(bench: Bench, works: list[Work], number: int, machine: int, name: str) -> tuple[list[Outcome], list[str]]:
    """The outcomes of one boot, and what must be said of it."""
    share = bench.run_dir / RAW / f"{number}-{machine}-{name}"
    share.mkdir(parents=True)
    configs = [config for config in bench.plan.configs if config.kernel == name]
    (share / SCRIPT).write_text(tlb_guest.script(bench.programs, bench.plan, works, configs))
    kernel = bench.kernels[name]
    warnings = tcg.twice(works[0].board, kernel, share, lambda: run_once(bench, works, kernel, share))
    return tlb_guest.outcomes(share, bench.plan, works, configs, number), warnings


def run_once(bench: Bench, works: list[Work], kernel: Kernel, share: Path) -> None:
    """One boot; its results lie in `share` afterwards, and its console at the end of the run's console.log."""
    board = works[0].board
    runs = len(works) * (1 + bench.plan.samples_per_boot * len(bench.plan.configs))
    result = booted(bench.run_dir, share.name, lambda: boot.boot(
        board, kernel, f"sh {SCRIPT}", timeout_s=board.boot_timeout_s + SLOWEST_SAMPLE_S * runs, silence_s=SILENCE_S,
        share=share, on_line=lambda line: bench.advance() if movebench.is_sample(line) else None))
    if result.status:
        raise InfraError(f"the workloads ended with {result.status} in the guest",
                         hint=f"ferry boot --board {board.name}", log=bench.run_dir / CONSOLE)
