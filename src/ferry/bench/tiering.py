# SPDX-License-Identifier: GPL-2.0
"""`ferry bench tiering`: how fast the users of memory are while the kernel moves it between two tiers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ferry import boards
from ferry.bench import experiment, guest_samples, move_pages, plan, tierbench, tiering_rows, tlb_plan
from ferry.bench.plan import STOCK, Choice, Config
from ferry.bench.tierbench import Load
from ferry.boards import Board
from ferry.errors import UsageError
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.results import stats
from ferry.results.document import Document

NAME = "tiering"
#: Of the fast to the slow node: an emulated machine fills the fast one, and moves a part of it in a sample, in seconds.
#: Under reclaim the board has its own nodes: the lists that kswapd demotes are a part of the node's memory.
RATIO = "1:3"
SAMPLES = 15
LOAD, QUICK_LOAD = Load(8000, 4000, 6000), Load(4000, 4000, 3000)
#: Far more than any sample took, so that only a guest that hangs reaches it.
SLOWEST_SAMPLE_S = 120
SILENCE_S = 240


@dataclass(frozen=True)
class Plan:
    """The sweep: `samples` of each configuration, workload and policy, over all boots of its kernel."""

    workloads: tuple[str, ...]
    policies: tuple[str, ...]
    configs: tuple[Config, ...]
    load: Load
    samples: int
    boots: int
    vs_stock: bool

    @property
    def samples_per_boot(self) -> int:
        return -(-self.samples // self.boots)

    @property
    def chosen(self) -> list[Config]:
        """The configurations of all kernels, the baseline first."""
        return [STOCK] * self.vs_stock + list(self.configs)

    @property
    def cases(self) -> list[tuple[str, str]]:
        """Each workload under each policy."""
        return tierbench.cases(self.workloads, self.policies)

    def cases_of(self, reclaim: bool) -> list[tuple[str, str]]:
        """Those under the policy `reclaim`, or the others."""
        return [case for case in self.cases if (case[1] == tierbench.RECLAIM) == reclaim]


@dataclass(frozen=True)
class Turn:
    """A boot, the `number`th one of its kernel: for the policy `reclaim`, or for all others."""

    number: int
    kernel: str
    reclaim: bool

    @property
    def name(self) -> str:
        """Unique in a run."""
        return f"{self.number}-{self.kernel}" + "-reclaim" * self.reclaim


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The options of this bench."""
    parser = sub.add_parser(NAME, help="measure the users of memory that moves between a fast and a slow node")
    add = parser.add_argument
    add("--board", default=tlb_plan.TIERED, choices=(tlb_plan.TIERED,), help=f"default: {tlb_plan.TIERED}")
    add("--quick", action="store_true", help="less load a sample, and no more samples and boots than needed")
    add("--baseline", default="off", choices=("off", "stock"),
        help="no migrator in the same boot (off, the default), or the unpatched kernel in boots between (stock)")
    add("--policy", type=plan.listed(plan.one_of(tierbench.POLICIES)), metavar="LIST",
        help="numab: NUMA balancing promotes, reclaim demotes; damon: schemes of DAMON do both; reclaim: it demotes, "
             "nothing promotes (default: all)")
    add("--workload", type=plan.listed(plan.one_of(tierbench.WORKLOADS)), metavar="LIST",
        help="tenants: processes whose hot sets move; redis: redis-benchmark (default: both)")
    add("--migrator", type=plan.listed(plan.one_of(plan.MIGRATORS)), metavar="LIST",
        help="off, kernel, mtcopy (default: off; it is always measured)")
    add("--threads", type=plan.listed(plan.bounded(1, plan.MAX_THREADS)), metavar="LIST", help="of mtcopy (default: 2)")
    add("--runs", type=plan.listed(plan.one_of(plan.RUNS)), metavar="LIST",
        help="each row with base pages moved in runs: off, on (default: one row with runs beside the others)")
    add("--samples", type=int, metavar="N", help="of each row (default: 15, or 10 if quick)")
    return parser


def plan_for(args: argparse.Namespace, board: Board) -> Plan:
    """The plan for the options. Raises UsageError if it could not support a comparison."""
    samples = args.samples if args.samples is not None else stats.MIN_SAMPLES if args.quick else SAMPLES
    if samples < stats.MIN_SAMPLES:
        raise UsageError(f"{samples} samples are too few: a comparison needs {stats.MIN_SAMPLES}",
                         hint=f"--samples {stats.MIN_SAMPLES}")
    vs_stock = args.baseline == "stock"
    configs = plan.configs(Choice(move_pages.migrators(args.migrator or ["off"], board), args.threads or [2],
                                  channels=[board.channels], runs=args.runs))
    workloads, policies = args.workload or tierbench.WORKLOADS, args.policy or tierbench.POLICIES
    if not tierbench.cases(workloads, policies):
        raise UsageError(f"{tierbench.REDIS} allocates nothing, so reclaim demotes nothing of it",
                         hint=f"--workload {tierbench.TENANTS}")
    return Plan(tuple(workloads), tuple(policies), configs, QUICK_LOAD if args.quick else LOAD,
                samples, boots=(2 if args.quick else 3) if vs_stock else 1, vs_stock=vs_stock)


def machine(name: str, reclaim: bool) -> Board:
    """The board, with nodes that can be filled in seconds unless it is for the policy `reclaim`."""
    return boards.load(name) if reclaim else tlb_plan.tiered(boards.load(name), RATIO)


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build the kernels and measure."""
    board = boards.load(args.board)
    chosen = plan_for(args, board)
    kernels = {name: build.build(board, name) for name in ["stock"] * chosen.vs_stock + ["ferry"]}
    machines = {reclaim: machine(args.board, reclaim) for reclaim in (False, True) if chosen.cases_of(reclaim)}
    described = {**asdict(chosen), "nodes": {"reclaim" if reclaim else "others": [asdict(node) for node in one.nodes]
                                             for reclaim, one in machines.items()}}
    document = experiment.document(NAME, board, "stock" if chosen.vs_stock else "off", kernels, described)
    order = [Turn(number, kernel, reclaim)
             for number in range(chosen.boots) for reclaim in machines for kernel in kernels]
    boots = [one_boot(chosen, machines[turn.reclaim], kernels[turn.kernel], turn) for turn in order]
    expected = chosen.boots * (chosen.samples_per_boot + 1) * len(chosen.cases) * len(chosen.chosen)
    document["warnings"] += experiment.run(boots, run_dir, f"tiering on {board.name}", expected)
    tiering_rows.fill(document, chosen.chosen, chosen.cases, chosen.samples_per_boot, outcomes(chosen, order, run_dir))
    return document


def outcomes(chosen: Plan, order: Sequence[Turn], run_dir: Path) -> list[tiering_rows.Run]:
    """What each boot left of each workload and policy."""
    return [tiering_rows.Run(turn.number, turn.kernel, case,
                             tierbench.outcome(experiment.share_of(run_dir, turn.name), *case))
            for turn in order for case in chosen.cases_of(turn.reclaim)]


def one_boot(chosen: Plan, board: Board, kernel: Kernel, turn: Turn) -> experiment.Boot:
    """A boot that measures each workload under each policy, or under `reclaim`."""
    configs = [config for config in chosen.chosen if config.kernel == turn.kernel]
    cases = chosen.cases_of(turn.reclaim)
    modules = move_pages.insmods(kernel, move_pages.modules_of(board, configs))
    script = tierbench.script(cases, configs, chosen.load, chosen.samples_per_boot, modules)
    runs = len(cases) * len(configs) * (1 + chosen.samples_per_boot)
    return experiment.Boot(turn.name, board, kernel, script, guest_samples.SAMPLE, silence_s=SILENCE_S,
                           timeout_s=board.boot_timeout_s + SLOWEST_SAMPLE_S * runs)
