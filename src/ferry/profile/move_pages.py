# SPDX-License-Identifier: GPL-2.0
"""Record the instructions of move_pages(2): a boot for each configuration, with QEMU's plugin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry import boards, progress
from ferry.bench import move_pages, movebench
from ferry.bench.plan import STOCK, Case, Config, Plan
from ferry.boards import Board
from ferry.errors import InfraError
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.profile import calltree, recording
from ferry.profile.calltree import Node
from ferry.vm import boot, guest_programs

NAME = "move_pages"
_TIMEOUT_S = 600
_WARMUP = 1


@dataclass(frozen=True)
class Profile:
    """One configuration: `tree` counts the instructions of `pages` moves, and the guest's clock says how many."""

    label: str
    kernel: str
    pages: int
    tree: Node
    clock: float
    """Instructions a page by the guest's clock, with a few for reading it."""

    @property
    def counted(self) -> float:
        """Instructions a page by the plugin."""
        return self.tree.total() / self.pages


def supported() -> list[str]:
    """The boards whose clock counts the instructions of one x86-64 CPU."""
    known = map(boards.load, boards.names())
    return [board.name for board in known if move_pages.counts(board) and board.arch == "x86_64" and board.cpus == 1]


def profiles(board: Board, kernels: Sequence[str], configs: Sequence[Config], case: Case,
             scratch: Path) -> list[Profile]:
    """A profile of each configuration, in order; stock has one. Leaves the records in `scratch`."""
    chosen = [STOCK] * ("stock" in kernels) + list(configs) * ("ferry" in kernels)
    built = {name: build.build(board, name) for name in dict.fromkeys(config.kernel for config in chosen)}
    found = []
    with progress.stage(f"profile on {board.name}") as stage:
        for number, config in enumerate(chosen):
            stage.update(number, len(chosen), config.label)
            found.append(_profile(board, built[config.kernel], config, case, scratch / config.label))
    return found


def _profile(board: Board, kernel: Kernel, config: Config, case: Case, share: Path) -> Profile:
    share.mkdir(parents=True)
    program = guest_programs.programs(board.arch)[movebench.PROGRAM]
    sweep = Plan(configs=(config,), cases=(case,), samples=1, warmup=_WARMUP, boots=1)
    first = [*move_pages.insmods(kernel, move_pages.modules_of(board, sweep.configs)), recording.SYMBOLS_COMMAND]
    result = boot.boot(recording.recorded(board, share), kernel,
                       movebench.script(program, sweep, sweep.configs, first), timeout_s=_TIMEOUT_S, share=share)
    outcome = movebench.outcome(share, case)
    if result.status or outcome.status or not outcome.samples:
        raise InfraError(f"{config.label}: {outcome.reason}", hint="read the log", log=result.console)
    sample = outcome.samples[-1]
    windows, blocks = recording.load(share)
    # The last two windows are the moves of the sample, there and back.
    return Profile(config.label, config.kernel, sample.moved, calltree.build(windows[-2:], blocks),
                   sample.ns / sample.moved)
