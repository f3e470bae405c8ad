# SPDX-License-Identifier: GPL-2.0
"""The guest's memory for a device: ranges of bus addresses, each a part of a file shared with QEMU.

A file is mapped once as a whole, whatever number of ranges are in it: behind an IOMMU each page is a range.
"""

from __future__ import annotations

import bisect
import contextlib
import mmap
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


class BadAddress(Exception):
    """The guest has not mapped these addresses for the device."""


@dataclass(frozen=True)
class Range:
    """`bytes` is the memory at the bus addresses from `start` to below `end`."""

    start: int
    end: int
    bytes: memoryview


class GuestMemory:
    """The memory that QEMU has mapped for one device. Threads may use it concurrently.

    After an unmap the device does not write to that memory: behind an IOMMU the guest may rely on that. So an unmap
    waits for the copies in progress, and a copy for an unmap that waits. Copies run concurrently, and hold neither the
    lock nor Python's, so a register access does not wait for them.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._copies = 0
        self._unmaps = 0
        self._ranges: list[Range] = []
        self._files: dict[tuple[int, int], memoryview] = {}

    def map(self, address: int, size: int, fd: int, offset: int, writable: bool) -> None:
        """Map `size` bytes of a file. The caller keeps the file descriptor. Raises OSError, ValueError."""
        replaces = self._overlaps(address, address + size)
        with self._no_copies() if replaces else self._lock:
            whole = self._file(fd)
            if offset + size > len(whole):
                raise ValueError(f"{size:#x} bytes at {offset:#x} of a file that has {len(whole):#x}")
            part = whole[offset : offset + size]
            self._remove(address, address + size)
            made = Range(address, address + size, part if writable else part.toreadonly())
            bisect.insort(self._ranges, made, key=lambda known: known.start)

    def unmap(self, address: int, size: int) -> None:
        """Unmap these addresses."""
        with self._no_copies():
            self._remove(address, address + size)

    def clear(self) -> None:
        """Unmap everything, and release the files."""
        with self._no_copies():
            self._ranges = []
            self._files = {}

    def read(self, address: int, size: int) -> bytes:
        """Raises BadAddress."""
        with self._lock:
            return b"".join(self._pieces(address, size))

    def write(self, address: int, data: bytes) -> None:
        """Raises BadAddress, also if the device may only read there."""
        with self._lock:
            for piece in _writable(self._pieces(address, len(data))):
                piece[:] = data[: len(piece)]
                data = data[len(piece) :]

    def copy(self, source: int, destination: int, size: int) -> None:
        """Raises BadAddress; copies nothing unless source and destination are completely mapped."""
        with self._lock:
            self._lock.wait_for(lambda: not self._unmaps)
            pairs = list(self._pairs(source, destination, size))
            self._copies += 1
        try:
            for target, data in pairs:
                # It lets other threads run meanwhile, an assignment of memory views does not.
                np.copyto(np.frombuffer(target, np.uint8), np.frombuffer(data, np.uint8))
        finally:
            with self._lock:
                self._copies -= 1
                self._lock.notify_all()

    @contextlib.contextmanager
    def _no_copies(self) -> Iterator[None]:
        """Holds the lock while no copy runs."""
        with self._lock:
            self._unmaps += 1
            try:
                self._lock.wait_for(lambda: not self._copies)
                yield
            finally:
                self._unmaps -= 1
                self._lock.notify_all()

    def _pairs(self, source: int, destination: int, size: int) -> Iterator[tuple[memoryview, memoryview]]:
        """The pieces of both, cut to the same lengths: destinations and sources. Raises BadAddress."""
        sources = list(self._pieces(source, size))
        for target in _writable(self._pieces(destination, size)):
            while target:
                length = min(len(sources[0]), len(target))
                yield target[:length], sources[0][:length]
                target, sources[0] = target[length:], sources[0][length:]
                if not sources[0]:
                    del sources[0]

    def _overlaps(self, start: int, end: int) -> bool:
        with self._lock:
            return any(known.start < end and start < known.end for known in self._ranges)

    def _remove(self, start: int, end: int) -> None:
        """QEMU unmaps ranges that it mapped, never a part of one."""
        self._ranges = [known for known in self._ranges if known.end <= start or end <= known.start]

    def _file(self, fd: int) -> memoryview:
        status = os.fstat(fd)
        key = (status.st_dev, status.st_ino)
        if key not in self._files:
            self._files[key] = memoryview(mmap.mmap(fd, status.st_size, mmap.MAP_SHARED))
        return self._files[key]

    def _pieces(self, address: int, size: int) -> Iterator[memoryview]:
        """The memory from `address` on, one piece for each range. Raises BadAddress at the first gap."""
        while size:
            piece = self._piece(address, size)
            yield piece
            address += len(piece)
            size -= len(piece)

    def _piece(self, address: int, size: int) -> memoryview:
        at = bisect.bisect_right(self._ranges, address, key=lambda known: known.start) - 1
        found = self._ranges[at] if at >= 0 else None
        if found is None or address >= found.end:
            raise BadAddress(f"{address:#x}, {size:#x} bytes from the end, is not mapped")
        offset = address - found.start
        return found.bytes[offset : offset + size]


def _writable(pieces: Iterator[memoryview]) -> Iterator[memoryview]:
    for piece in pieces:
        if piece.readonly:
            raise BadAddress("the guest lets the device only read there")
        yield piece
