# SPDX-License-Identifier: GPL-2.0
"""The guest's memory as a device sees it: ranges of bus addresses, each a part of a file shared with QEMU.

A file is mapped once and whole, however many ranges lie in it: behind an IOMMU each page is a range.
"""

from __future__ import annotations

import bisect
import mmap
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass


class BadAddress(Exception):
    """The guest has not let the device at these addresses."""


@dataclass(frozen=True)
class Range:
    """`bytes` are those of the bus addresses from `start`, below `end`."""

    start: int
    end: int
    bytes: memoryview


class GuestMemory:
    """What QEMU has mapped for one device. Safe to use from several threads.

    A copy is made with the lock held, so that what has been unmapped is not written to any more, as the guest may rely
    on behind an IOMMU. Python's own lock lets only one of them run at a time anyway.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ranges: list[Range] = []
        self._files: dict[tuple[int, int], memoryview] = {}

    def map(self, address: int, size: int, fd: int, offset: int, writable: bool) -> None:
        """Let the device at `size` bytes of a file. The descriptor stays the caller's. Raises OSError, ValueError."""
        with self._lock:
            whole = self._file(fd)
            if offset + size > len(whole):
                raise ValueError(f"{size:#x} bytes at {offset:#x} of a file that has {len(whole):#x}")
            part = whole[offset : offset + size]
            self._remove(address, address + size)
            made = Range(address, address + size, part if writable else part.toreadonly())
            bisect.insort(self._ranges, made, key=lambda known: known.start)

    def unmap(self, address: int, size: int) -> None:
        """Take these addresses from the device."""
        with self._lock:
            self._remove(address, address + size)

    def clear(self) -> None:
        """Take everything, and let go of the files."""
        with self._lock:
            self._ranges = []
            self._files = {}

    def read(self, address: int, size: int) -> bytes:
        """Raises BadAddress."""
        with self._lock:
            return b"".join(self._pieces(address, size))

    def write(self, address: int, data: bytes) -> None:
        """Raises BadAddress, also where the guest lets the device read only."""
        with self._lock:
            for piece in self._pieces(address, len(data)):
                _store(piece, memoryview(data)[: len(piece)])
                data = data[len(piece) :]

    def copy(self, source: int, destination: int, size: int) -> None:
        """Raises BadAddress; nothing is copied unless all of both ends is mapped."""
        with self._lock:
            sources = list(self._pieces(source, size))
            for target in list(self._pieces(destination, size)):
                done = 0
                while done < len(target):
                    length = min(len(sources[0]), len(target) - done)
                    _store(target[done : done + length], sources[0][:length])
                    sources[0] = sources[0][length:]
                    done += length
                    if not sources[0]:
                        del sources[0]

    def _remove(self, start: int, end: int) -> None:
        """QEMU unmaps what it mapped, never a part of it."""
        self._ranges = [known for known in self._ranges if known.end <= start or end <= known.start]

    def _file(self, fd: int) -> memoryview:
        status = os.fstat(fd)
        key = (status.st_dev, status.st_ino)
        if key not in self._files:
            self._files[key] = memoryview(mmap.mmap(fd, status.st_size, mmap.MAP_SHARED))
        return self._files[key]

    def _pieces(self, address: int, size: int) -> Iterator[memoryview]:
        """The memory from `address` on, in as many pieces as it lies in. Raises BadAddress at the first gap."""
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


def _store(target: memoryview, data: memoryview) -> None:
    if target.readonly:
        raise BadAddress("the guest lets the device only read there")
    target[:] = data
