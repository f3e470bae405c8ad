# SPDX-License-Identifier: GPL-2.0
"""`ferry bench tlb`: TLB flushes and their interrupts on CPUs that read memory while it is migrated.

The same work runs on the unpatched kernel and, in boots between, on ours with migrc off and on in turn; or only on
ours. Boots differ in their nodes: hinting and xslookup need memory tiers, compaction and kcompactd a full node.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from ferry import boards
from ferry.bench import experiment, guest_samples, plan, tlb_plan, tlb_rows, tlbbench
from ferry.bench.tlb_plan import Config, Plan, Work
from ferry.errors import UsageError
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.results import stats
from ferry.results.document import Document
from ferry.vm import guest_programs

NAME = "tlb"
SAMPLES = 15
#: Far more than any sample took, so that only a guest that hangs reaches it.
SLOWEST_SAMPLE_S = 90
SILENCE_S = 240


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The options of this bench."""
    parser = sub.add_parser(NAME, help="count the TLB flushes on CPUs that read memory while it is migrated")
    add = parser.add_argument
    add("--board", default="x86-numa", choices=tlb_plan.BOARDS, help="default: x86-numa")
    add("--quick", action="store_true", help="less work a sample, and no more samples and boots than needed")
    add("--workload", type=plan.listed(plan.one_of(tlb_plan.WORKLOADS)), metavar="LIST",
        help=f"{', '.join(tlb_plan.WORKLOADS)} (default: all but xslookup)")
    add("--ratio", type=plan.listed(tlb_plan.ratio_of), metavar="LIST",
        help=f"of fast to slow memory, for xslookup (default: {','.join(tlb_plan.DEFAULT_RATIOS)})")
    add("--baseline", default="stock", choices=tuple(tlb_plan.SIDES),
        help="the unpatched kernel, in boots between ours (stock, the default), or migrc off in the same boot (off)")
    add("--max-bytes", type=tlb_plan.quarantine_bytes, metavar="N", help="bound of migrc's quarantine, as in 16m")
    add("--readers", type=plan.bounded(1, plan.MAX_PROGRAM_THREADS), metavar="N",
        help="threads that read (default: one for each CPU); not of active and xslookup")
    add("--samples", type=int, metavar="N", help="of each side of a row (default: 15, or 10 if quick)")
    return parser


def plan_for(args: argparse.Namespace) -> Plan:
    """The plan for the options. Raises UsageError if it could not support a comparison."""
    names = args.workload or list(tlb_plan.DEFAULT_WORKLOADS)
    if args.ratio and "xslookup" not in names:
        raise UsageError("--ratio is of xslookup", hint="--workload xslookup")
    if args.readers and (others := [name for name in names if name in tlb_plan.OWN_READERS]):
        raise UsageError(f"--readers is not of {others[0]}, which has readers of its own", hint="--workload move_pages")
    samples = args.samples if args.samples is not None else stats.MIN_SAMPLES if args.quick else SAMPLES
    if samples < stats.MIN_SAMPLES:
        raise UsageError(f"{samples} samples are too few: a comparison needs {stats.MIN_SAMPLES}",
                         hint=f"--samples {stats.MIN_SAMPLES}")
    works = tlb_plan.works(names, boards.load(args.board), args.ratio or list(tlb_plan.DEFAULT_RATIOS), args.quick,
                           args.readers)
    return Plan(works, args.baseline, samples, boots=2 if args.quick else 3, max_bytes=args.max_bytes)


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build the kernels and measure."""
    chosen = plan_for(args)
    board = boards.load(args.board)
    kernels = {name: build.build(board, name) for name in dict.fromkeys(config.kernel for config in chosen.configs)}
    document = experiment.document(NAME, board, chosen.baseline, kernels, described(chosen))
    order = {f"{number}-{machine}-{name}": (number, works, [one for one in chosen.configs if one.kernel == name])
             for number in range(chosen.boots) for machine, works in enumerate(chosen.groups()) for name in kernels}
    program = guest_programs.programs(board.arch)[tlb_plan.PROGRAM]
    boots = [one_boot(chosen, program, name, works, configs, kernels[configs[0].kernel])
             for name, (_, works, configs) in order.items()]
    document["warnings"] += experiment.run(boots, run_dir, f"tlb on {board.name}", samples(chosen))
    outcomes = [outcome for name, (number, works, configs) in order.items() for outcome
                in tlbbench.outcomes(experiment.share_of(run_dir, name), chosen, works, configs, number)]
    tlb_rows.fill(document, chosen, outcomes)
    return document


def samples(chosen: Plan) -> int:
    """How many there are in all, warm-ups left out: the length of the bar."""
    return chosen.boots * chosen.samples_per_boot * len(chosen.works) * len(chosen.configs)


def described(chosen: Plan) -> dict[str, object]:
    """The plan as it is kept; boards are named, their nodes are in the rows."""
    works = [{"name": work.name, "arguments": list(work.arguments)} for work in chosen.works]
    return {**{key: value for key, value in asdict(chosen).items() if key != "works"}, "works": works}


def one_boot(chosen: Plan, program: Path, name: str, works: list[Work], configs: list[Config],
             kernel: Kernel) -> experiment.Boot:
    """A boot of the machine that these workloads need."""
    board = works[0].board
    runs = len(works) * (1 + chosen.samples_per_boot * len(chosen.configs))
    return experiment.Boot(name, board, kernel, tlbbench.script(program, chosen, works, configs),
                           guest_samples.SAMPLE, silence_s=SILENCE_S,
                           timeout_s=board.boot_timeout_s + SLOWEST_SAMPLE_S * runs)
