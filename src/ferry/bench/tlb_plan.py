# SPDX-License-Identifier: GPL-2.0
"""The plan of `ferry bench tlb`: workloads, the machines they need, and the two configurations to compare."""

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
WORKLOADS = ("hinting", "compaction", "move_pages", "single", "xslookup")
DEFAULT_WORKLOADS = ("hinting", "compaction", "move_pages", "single")
#: The boards whose CPUs interrupt each other to flush a TLB: an arm64 one has an instruction for it.
BOARDS = ("x86-numa", "x86-tier")
TIERED = "x86-tier"
DEFAULT_RATIOS = ("1:4", "1:8", "1:99")

#: Page moves of one sample; compaction makes as many as it makes.
MOVES = {"move_pages": 65536, "single": 512, "hinting": 60000}
QUICK_MOVES = {"move_pages": 32768, "single": 256, "hinting": 30000}
#: A node that single pages with holes fill within seconds, on an emulated machine too.
COMPACTED_MIB = 768
#: The fast node of xslookup, the same at every ratio; the slow one is whole memory sections, too.
FAST_MIB, SECTION_MIB = 256, 128
#: More than the fast node has free.
TABLE_BYTES = 256 * MIB
LOOKUPS, QUICK_LOOKUPS = 200_000, 100_000
#: An emulated machine moves fewer pages in the second that they may wait by default, as this bench itself shows, than a
#: real one (3.55 GB/s in 4 KiB folios, says the cover letter of the copy offload series, v4). Age would drain it before
#: size does; so it may get older.
AGE_MS = 10_000
SETTLE_MS, QUICK_SETTLE_MS = 3000, 1500


@dataclass(frozen=True)
class Config:
    """One side of the comparison. `migrc` is the value of `enabled`; None for a kernel without migrc."""

    label: str
    kernel: str
    migrc: int | None

    def arguments(self, max_bytes: int | None) -> list[str]:
        """As tlbbench takes them."""
        limit = ["--max-bytes", str(max_bytes)] if max_bytes and self.migrc else []
        return [] if self.migrc is None else ["--defer-flush", str(self.migrc), "--max-age-ms", str(AGE_MS), *limit]


MIGRC = Config("migrc", "ferry", 1)
BASELINES = {"stock": Config("stock", "stock", None), "off": Config("off", "ferry", 0)}


@dataclass(frozen=True)
class Work:
    """One workload on a machine, with the arguments of one sample."""

    workload: str
    board: Board
    arguments: tuple[str, ...]
    total_bytes: int
    ratio: str | None = None
    readers: int | None = None

    @property
    def key(self) -> str:
        """Names its files in a share."""
        return self.workload if self.ratio is None else f"{self.workload}-{self.ratio.replace(':', '-')}"

    @property
    def name(self) -> str:
        """For people."""
        return self.workload if self.ratio is None else f"{self.workload} {self.ratio}"

    @property
    def identity(self) -> str:
        """Results with the same identity may be compared; it includes the number of readers if the user chose one."""
        return self.workload if self.readers is None else f"{self.workload}, {self.readers} readers"

    @property
    def unit(self) -> str:
        return "lookups_per_second" if self.workload == "xslookup" else "moves_per_second"


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
    def configs(self) -> tuple[Config, Config]:
        """The baseline first."""
        return BASELINES[self.baseline], MIGRC

    def groups(self) -> list[list[Work]]:
        """Works that run in the same boot: those on the same machine."""
        machines = dict.fromkeys(work.board for work in self.works)
        return [[work for work in self.works if work.board == machine] for machine in machines]


def works(names: list[str], board: Board, ratios: list[str], quick: bool,
          readers: int | None = None) -> tuple[Work, ...]:
    """One for each workload, and for xslookup one for each ratio of fast to slow memory."""
    found: list[Work] = []
    for name in dict.fromkeys(names):
        if name == "xslookup":
            found += [xslookup(board, ratio, quick) for ratio in dict.fromkeys(ratios)]
        else:
            found.append(tlbbench(name, board, quick, readers))
    return tuple(found)


def tlbbench(workload: str, board: Board, quick: bool, readers: int | None = None) -> Work:
    """Each on the machine that it needs."""
    machine = {"hinting": tiered(board), "compaction": lone(board)}.get(workload, board)
    moves = (QUICK_MOVES if quick else MOVES).get(workload)
    words = ["--workload", workload, "--settle-ms", str(QUICK_SETTLE_MS if quick else SETTLE_MS)]
    words += ["--moves", str(moves)] if moves else ["--from", "1", "--to", "0"]
    words += ["--readers", str(readers)] if readers else []
    total = moves * PAGE if moves else machine.nodes[1].memory_mib * MIB
    return Work(workload, machine, tuple(words), total, readers=readers)


def xslookup(board: Board, ratio: str, quick: bool) -> Work:
    """The table is larger than the fast node, whatever the ratio."""
    words = ("--workload", "xslookup", "--bytes", str(TABLE_BYTES),
             "--lookups", str(QUICK_LOOKUPS if quick else LOOKUPS))
    return Work("xslookup", tiered(board, ratio), words, TABLE_BYTES, ratio)


def lone(board: Board) -> Board:
    """The board with all CPUs at its first node, so that only the workload's memory is at the other."""
    fast, slow = boards.load(TIERED).nodes
    return dataclasses.replace(board, nodes=(fast, dataclasses.replace(slow, memory_mib=COMPACTED_MIB)))


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
