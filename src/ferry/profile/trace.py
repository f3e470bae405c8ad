# SPDX-License-Identifier: GPL-2.0
"""The files that record_blocks.c leaves, and the kernel's symbols."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ferry.errors import InfraError

_BEGIN, _END = 0xFFFFFFFF, 0xFFFFFFFE
_KERNEL_SPACE = 1 << 63
USER = "user space"
#: Words of a trace that are looked at together: a trace can be larger than the memory.
_CHUNK = 1 << 20

Window = npt.NDArray[np.uint32]
"""Numbers of blocks, in the order of execution."""


@dataclass(frozen=True)
class Block:
    """Instructions that are executed one after the other. `kind` says how the last one leaves the block."""

    function: str
    is_entry: bool
    """It begins where the function does."""
    address: int
    next_address: int
    insns: int
    kind: str
    """call, ret, iret, syscall, sysret or other."""


class Symbols:
    """Functions by address, from the lines of /proc/kallsyms: address, type, name and perhaps [module]."""

    def __init__(self, text: str) -> None:
        found: dict[int, str] = {}
        for line in text.splitlines():
            address, kind, name = line.split()[:3]
            if kind in "tTwW":
                found.setdefault(int(address, 16), name)
        self._starts = sorted(found)
        self._names = [found[start] for start in self._starts]

    def at(self, address: int) -> tuple[str, int]:
        """The function at an address, and where it begins. A function's cold part has the function's name."""
        if address < _KERNEL_SPACE:
            return USER, 0
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0:
            return "?", 0
        return self._names[index].split(".cold")[0], self._starts[index]


class Stretch(NamedTuple):
    """Blocks of one function that follow each other without a call or a return: the first, the last, their sum."""

    first: Block
    last: Block
    insns: int


class Blocks:
    """The executed blocks by their numbers."""

    def __init__(self, by_number: Mapping[int, Block]) -> None:
        self.by_number = by_number
        functions = {name: index for index, name in enumerate({block.function for block in by_number.values()})}
        size = max(by_number, default=0) + 1
        self._function, self._insns = np.zeros(size, np.int32), np.zeros(size, np.int64)
        self._leaves = np.zeros(size, np.bool_)
        for number, block in by_number.items():
            self._function[number], self._insns[number] = functions[block.function], block.insns
            self._leaves[number] = block.kind != "other"

    def stretches(self, window: Window) -> Iterator[Stretch]:
        """The window's stretches, in order; one can be cut in two."""
        for at in range(0, len(window), _CHUNK):
            part = window[at:at + _CHUNK]
            function = self._function[part]
            begins = np.flatnonzero(np.append(True, self._leaves[part[:-1]] | (function[1:] != function[:-1])))
            ends = np.append(begins[1:], len(part)) - 1
            insns = np.add.reduceat(self._insns[part], begins)
            for first, last, count in zip(part[begins].tolist(), part[ends].tolist(), insns.tolist(), strict=True):
                yield Stretch(self.by_number[first], self.by_number[last], count)


def blocks(path: Path, symbols: Symbols) -> Blocks:
    """PREFIX.blocks."""
    found = {}
    for line in path.read_text().splitlines():
        number, address, insns, size, last = line.split()
        start = int(address, 16)
        name, begins = symbols.at(start)
        found[int(number)] = Block(name, start == begins, start, start + int(size, 16), int(insns),
                                   kind_of(bytes.fromhex(last)))
    return Blocks(found)


def windows(path: Path) -> list[Window]:
    """PREFIX.trace: the blocks between each pair of markers, in order. Raises InfraError if a window is not closed."""
    words = np.memmap(path, dtype=np.uint32, mode="r")
    begins, ends = np.flatnonzero(words == _BEGIN), np.flatnonzero(words == _END)
    if len(begins) != len(ends) or any(begins > ends):
        raise InfraError("the guest did not end what it began to record", log=path)
    return [words[begin + 1:end] for begin, end in zip(begins, ends, strict=True)]


_PREFIXES = frozenset((0x2E, 0x3E, 0x26, 0x36, 0x64, 0x65, 0x66, 0xF2, 0xF3))
_REX = range(0x40, 0x50)


def kind_of(code: Sequence[int]) -> str:
    """How an x86-64 instruction changes the flow: call, ret, iret, syscall, sysret or other (jumps are other)."""
    at = 0
    while at < len(code) - 1 and (code[at] in _PREFIXES or code[at] in _REX):
        at += 1
    opcode, following = code[at], code[at + 1] if at + 1 < len(code) else 0
    if opcode == 0xFF:
        return "call" if (following >> 3) & 7 in (2, 3) else "other"
    if opcode == 0x0F:
        return {0x05: "syscall", 0x07: "sysret"}.get(following, "other")
    return {0xE8: "call", 0xC2: "ret", 0xC3: "ret", 0xCF: "iret"}.get(opcode, "other")
