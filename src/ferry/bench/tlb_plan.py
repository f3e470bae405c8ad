# SPDX-License-Identifier: GPL-2.0
"""The plan of `ferry bench tlb`: workloads, the machines they need, and the configurations to compare."""

from __future__ import annotations

import argparse
import dataclasses
import re
from dataclasses import dataclass

from ferry import boards
from ferry.boards import Board

MIB = 1 << 20
PAGE = 4096

PROGRAM = "tlbbench"
DEFAULT_WORKLOADS = ("hinting", "compaction", "kcompactd", "move_pages", "active")
WORKLOADS = (*DEFAULT_WORKLOADS, "xslookup")
#: Those whose readers are not threads of tlbbench that do nothing else.
OWN_READERS = frozenset({"active", "xslookup"})
#: The boards whose CPUs interrupt each other to flush a TLB: an arm64 one has an instruction for it.
BOARDS = ("x86-numa", "x86-tier")
TIERED = "x86-tier"
DEFAULT_RATIOS = ("1:4", "1:8", "1:99")

#: Of active, the processes, and the share of the page moves that they need: all of them make calls for each.
PROCESSES = {1: 1, 4: 2, 16: 4}
#: Its calls wait for each other's interrupts, so a host with few idle CPUs takes long. Below SILENCE_S of tlb.py.
ACTIVE_LIMIT_S = 180
#: Of each process. An emulated machine keeps up with that, whatever their number. Both sides then take the same time,
#: as they must: once a second x86 removes from a process's mask the CPUs that do not run it, and until they run it
#: again its flushes are not counted as remote ones.
CALLS_PER_SECOND = 40
#: Of kcompactd, the order that is asked for: the highest that is expected to be cheap (PAGE_ALLOC_COSTLY_ORDER), and a
#: whole pageblock.
ORDERS = (3, 9)

#: Page moves of one sample; compaction makes as many as it makes.
MOVES = {"move_pages": 65536, "active": 2048, "kcompactd": 4096, "hinting": 60000}
QUICK_MOVES = {"move_pages": 32768, "active": 512, "kcompactd": 2048, "hinting": 30000}
#: Nodes that single pages with holes fill within seconds, on an emulated machine too; kcompactd moves few of them.
NODE_MIB = {"compaction": 768, "kcompactd": 256}
#: The fast node of xslookup, the same at every ratio; the slow one is whole memory sections, too.
FAST_MIB, SECTION_MIB = 256, 128
#: More than the fast node has free.
TABLE_BYTES = 256 * MIB
LOOKUPS, QUICK_LOOKUPS = 200_000, 100_000
#: An emulated machine moves fewer pages in the second that they may wait by default than a real one (3.55 GB/s in 4 KiB
#: folios, says the cover letter of the copy offload series, v4). Age would drain it before size does; so it may get
#: older.
AGE_MS = 10_000

#: The workloads whose time is that of the kernel's work, or of the lookups, and the unit of their speed. The others
#: wait for the next scan, for an allocation, or for the pace of their readers.
RATES = {"move_pages": "moves_per_second", "compaction": "moves_per_second", "xslookup": "lookups_per_second"}


@dataclass(frozen=True)
class Config:
    """One side of the comparison. `migrc` is the value of `enabled`; None for the unpatched kernel."""

    label: str
    kernel: str
    migrc: int | None

    def arguments(self, max_bytes: int | None) -> list[str]:
        """As tlbbench takes them."""
        limit = ["--max-bytes", str(max_bytes)] if max_bytes and self.migrc else []
        return [] if self.migrc is None else ["--defer-flush", str(self.migrc), "--max-age-ms", str(AGE_MS), *limit]


STOCK, OFF, MIGRC = Config("stock", "stock", None), Config("off", "ferry", 0), Config("migrc", "ferry", 1)
#: The sides of a comparison by its baseline, which comes first.
SIDES = {"stock": (STOCK, OFF, MIGRC), "off": (OFF, MIGRC)}


@dataclass(frozen=True)
class Work:
    """One workload on a machine, with the arguments of one sample.

    Of these, xslookup has a ratio of fast to slow memory, active a number of processes, kcompactd an order.
    """

    workload: str
    board: Board
    arguments: tuple[str, ...]
    total_bytes: int
    ratio: str | None = None
    processes: int | None = None
    compaction_order: int | None = None
    readers: int | None = None

    @property
    def key(self) -> str:
        """Names its files in a share."""
        return re.sub("[ :]", "-", self.name)

    @property
    def name(self) -> str:
        """For people: `move_pages`, `xslookup 1:4`, `active 16 processes`, `kcompactd order 9`."""
        if self.processes is not None:
            return f"{self.workload} {self.processes} process{'es' * (self.processes > 1)}"
        if self.compaction_order is not None:
            return f"{self.workload} order {self.compaction_order}"
        return self.workload if self.ratio is None else f"{self.workload} {self.ratio}"

    @property
    def identity(self) -> str:
        """Results with the same identity may be compared; it includes the number of readers if the user chose one."""
        return self.workload if self.readers is None else f"{self.workload}, {self.readers} readers"


@dataclass(frozen=True)
class Plan:
    """Boots of the same number stand side by side; each makes `samples_per_boot` samples of each work."""

    works: tuple[Work, ...]
    baseline: str
    samples: int
    boots: int
    max_bytes: int | None

    @property
    def samples_per_boot(self) -> int:
        return -(-self.samples // self.boots)

    @property
    def configs(self) -> tuple[Config, ...]:
        """The baseline first, migrc last."""
        return SIDES[self.baseline]

    def groups(self) -> list[list[Work]]:
        """Works that run in the same boot: those on the same machine."""
        machines = dict.fromkeys(work.board for work in self.works)
        return [[work for work in self.works if work.board == machine] for machine in machines]


def works(names: list[str], board: Board, ratios: list[str], quick: bool,
          readers: int | None = None) -> tuple[Work, ...]:
    """One for each workload; for some, one for each ratio of fast to slow memory, number of processes, or order."""
    found: list[Work] = []
    for name in dict.fromkeys(names):
        if name == "xslookup":
            found += [xslookup(board, ratio, quick) for ratio in dict.fromkeys(ratios)]
        elif name == "active":
            found += [active(board, processes, quick) for processes in PROCESSES]
        elif name == "kcompactd":
            found += [kcompactd(board, order, quick, readers) for order in ORDERS]
        else:
            found.append(tlbbench(name, board, quick, readers))
    return tuple(found)


def tlbbench(workload: str, board: Board, quick: bool, readers: int | None = None) -> Work:
    """One whose readers are threads, on the machine that it needs."""
    machine = machine_of(workload, board)
    moves = (QUICK_MOVES if quick else MOVES).get(workload)
    words = ["--workload", workload]
    words += ["--moves", str(moves)] if moves else []
    words += ["--from", "1", "--to", "0"] if workload in NODE_MIB else []
    words += ["--readers", str(readers)] if readers else []
    total = moves * PAGE if moves else machine.nodes[1].memory_mib * MIB
    return Work(workload, machine, tuple(words), total, readers=readers)


def kcompactd(board: Board, order: int, quick: bool, readers: int | None = None) -> Work:
    """Allocations of this order from a node whose free memory is fragmented wake kcompactd."""
    work = tlbbench("kcompactd", board, quick, readers)
    return dataclasses.replace(work, compaction_order=order, arguments=(*work.arguments, "--order", str(order)))


def active(board: Board, processes: int, quick: bool) -> Work:
    """So many processes share the memory that moves."""
    moves = (QUICK_MOVES if quick else MOVES)["active"] // PROCESSES[processes]
    words = ("--workload", "active", "--moves", str(moves), "--processes", str(processes),
             "--calls-per-second", str(CALLS_PER_SECOND), "--limit-s", str(ACTIVE_LIMIT_S))
    return Work("active", board, words, moves * PAGE, processes=processes)


def xslookup(board: Board, ratio: str, quick: bool) -> Work:
    """The table is larger than the fast node, whatever the ratio."""
    words = ("--workload", "xslookup", "--bytes", str(TABLE_BYTES),
             "--lookups", str(QUICK_LOOKUPS if quick else LOOKUPS))
    return Work("xslookup", tiered(board, ratio), words, TABLE_BYTES, ratio)


def machine_of(workload: str, board: Board) -> Board:
    """The board with the nodes that a workload needs."""
    if workload in NODE_MIB:
        return lone(board, NODE_MIB[workload])
    return tiered(board) if workload == "hinting" else board


def lone(board: Board, memory_mib: int) -> Board:
    """The board with all CPUs at its first node, so that only the workload's memory is at the other."""
    fast, slow = boards.load(TIERED).nodes
    return dataclasses.replace(board, nodes=(fast, dataclasses.replace(slow, memory_mib=memory_mib)))


def tiered(board: Board, ratio: str | None = None) -> Board:
    """The board with all CPUs at a fast node and slow memory at the other; `ratio` says how large they are."""
    fast, slow = boards.load(TIERED).nodes
    if ratio is not None:
        fast_mib, slow_mib = sizes(ratio)
        fast, slow = (dataclasses.replace(node, memory_mib=size) for node, size in ((fast, fast_mib), (slow, slow_mib)))
    return dataclasses.replace(board, nodes=(fast, slow))


def sizes(ratio: str) -> tuple[int, int]:
    """MiB of the fast and the slow node."""
    fast, slow = map(int, ratio.split(":"))
    return FAST_MIB, -(-FAST_MIB * slow // fast // SECTION_MIB) * SECTION_MIB


def ratio_of(text: str) -> str:
    """`1:4`: an argparse type."""
    if not re.fullmatch(r"[1-9]\d{0,2}:[1-9]\d{0,2}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no ratio of fast to slow memory, as in 1:4")
    fast, slow = map(int, text.split(":"))
    if not 1 <= slow / fast <= 100:
        raise argparse.ArgumentTypeError(f"{text}: the slow memory is 1 to 100 times as large as the fast")
    return text


def quarantine_bytes(text: str) -> int:
    """`16m` as bytes: an argparse type."""
    found = re.fullmatch(r"([1-9]\d*)([kmg]?)", text.lower())
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is no size: a number with k, m or g")
    return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2]]
