# SPDX-License-Identifier: GPL-2.0
"""The plan of `ferry bench compaction`: workloads and orders, configurations, and which boot measures what."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from ferry.bench.plan import STOCK, Config
from ferry.boards import Board

MIB = 1 << 20
PAGE = 4096

PROGRAM = "compactbench"
MODULE = "alloc_blocks"
#: Those whose kernels have the module.
BOARDS = ("x86-numa", "x86-icount", "x86-ptdma", "zcu102", "uml")
IDLE, BUSY, PROACTIVE = "idle", "busy", "proactive"
WORKLOADS = (IDLE, BUSY, PROACTIVE)
DEFAULT = (IDLE, BUSY)
#: A huge page.
DEFAULT_ORDER = 9
#: Of the node, what is to be allocated: 32 of 250 GB in the experiment of the copy offload series, v4.
SHARE = 8
#: Rounds before the samples: in the first one of a boot more allocations fail than later.
WARMUP = 1
#: Memory of the node that is compacted: less is filled sooner. User-Mode Linux cannot have more: each single page is a
#: mapping of a process of the host, and Linux allows 65,530 of them (vm.max_map_count).
QUICK_MIB = 512


@dataclass(frozen=True)
class Work:
    """Blocks of one order are made, by a workload; `blocks` says how many are to be allocated in a sample."""

    workload: str
    order: int
    blocks: int

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.workload}, order {self.order}"

    @property
    def key(self) -> str:
        """Names its files in a share."""
        return f"{self.workload}-{self.order}"

    @property
    def total_bytes(self) -> int:
        """Of the blocks."""
        return self.blocks * PAGE << self.order


@dataclass(frozen=True)
class Group:
    """Boot number `number` of a kernel, and all that it measures."""

    number: int
    kernel: str
    works: tuple[Work, ...]
    configs: tuple[Config, ...]

    @property
    def name(self) -> str:
        """Unique in a run."""
        if len(self.works) == len(self.configs) == 1:
            return f"{self.number}-{self.works[0].key}-{self.configs[0].label}"
        return f"{self.number}-{self.kernel}"


@dataclass(frozen=True)
class Plan:
    """`samples` of each configuration of each work: each from a boot of its own, or, `shared`, all from a few boots.

    Boots of the same number stand side by side.
    """

    works: tuple[Work, ...]
    configs: tuple[Config, ...]
    """Of our kernel."""
    samples: int
    shared: bool
    vs_stock: bool

    @property
    def chosen(self) -> list[Config]:
        """The configurations of all kernels, the baseline first."""
        return [STOCK] * self.vs_stock + list(self.configs)

    @property
    def boots(self) -> int:
        """Of each kernel, or of each configuration of each work."""
        return self.samples if not self.shared else 2 if self.vs_stock else 1

    @property
    def samples_per_boot(self) -> int:
        return -(-self.samples // self.boots)

    def groups(self) -> Iterator[Group]:
        """The boots, in order. Odd ones take the configurations in reverse order."""
        for number in range(self.boots):
            configs = self.chosen[::-1 if number % 2 else 1]
            if self.shared:
                for kernel in dict.fromkeys(config.kernel for config in configs):
                    mine = tuple(config for config in configs if config.kernel == kernel)
                    yield Group(number, kernel, self.works, mine)
            else:
                yield from (Group(number, config.kernel, (work,), (config,))
                            for work in self.works for config in configs)


def works(workloads: list[str], orders: list[int], board: Board) -> tuple[Work, ...]:
    """Each workload with each order."""
    share = board.nodes[-1].memory_mib * MIB // SHARE
    return tuple(Work(workload, order, share // (PAGE << order)) for workload in dict.fromkeys(workloads)
                 for order in dict.fromkeys(orders))


def machine(board: Board, quick: bool) -> Board:
    """The board, with less memory at the node that is compacted, the last one, if `quick` or in User-Mode Linux."""
    if not quick and board.runner != "uml":
        return board
    *others, last = board.nodes
    return dataclasses.replace(board, nodes=(*others, dataclasses.replace(last, memory_mib=QUICK_MIB)))
