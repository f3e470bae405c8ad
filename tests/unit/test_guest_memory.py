# SPDX-License-Identifier: GPL-2.0
"""The guest's memory as a device sees it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from ferry.devices.guest_memory import BadAddress, GuestMemory

SIZE = 1 << 16
PAGE = 4096


@pytest.fixture
def fd() -> Iterator[int]:
    made = os.memfd_create("guest")
    os.write(made, bytes(number // 16 % 256 for number in range(SIZE)))
    yield made
    os.close(made)


def test_pieces_of_one_file_anywhere(fd: int) -> None:
    """As behind an IOMMU: consecutive bus addresses, pages in any order; written through to the file."""
    memory = GuestMemory()
    for number, page in enumerate((3, 1, 7, 5)):
        memory.map(0x1000_0000 + number * PAGE, PAGE, fd, page * PAGE, True)
    assert memory.read(0x1000_0000 + PAGE - 16, 32) == os.pread(fd, 16, 4 * PAGE - 16) + os.pread(fd, 16, PAGE)
    wanted = os.pread(fd, PAGE - 100, 3 * PAGE + 100) + os.pread(fd, 100, PAGE)
    memory.copy(0x1000_0000 + 100, 0x1000_0000 + 2 * PAGE - 50, PAGE)
    assert os.pread(fd, 50, 2 * PAGE - 50) + os.pread(fd, PAGE - 50, 7 * PAGE) == wanted


def test_overlapping_copy_is_a_move(fd: int) -> None:
    memory = GuestMemory()
    memory.map(0, SIZE, fd, 0, True)
    before = memory.read(0, PAGE)
    memory.copy(0, 16, PAGE)
    assert memory.read(16, PAGE) == before


@pytest.mark.parametrize(("source", "target"), [(SIZE - 8, 0), (0, SIZE - 8), (SIZE, 0), (0, 1 << 50)])
def test_copy_into_a_gap_changes_nothing(fd: int, source: int, target: int) -> None:
    memory = GuestMemory()
    memory.map(0, SIZE, fd, 0, True)
    before = os.pread(fd, SIZE, 0)
    with pytest.raises(BadAddress):
        memory.copy(source, target, 16)
    assert os.pread(fd, SIZE, 0) == before


def test_read_only_range_is_read_only(fd: int) -> None:
    memory = GuestMemory()
    memory.map(0, PAGE, fd, 0, False)
    memory.map(PAGE, PAGE, fd, PAGE, True)
    memory.copy(0, PAGE, PAGE)
    with pytest.raises(BadAddress, match="only read"):
        memory.copy(PAGE, 0, 16)
    with pytest.raises(BadAddress, match="only read"):
        memory.write(0, b"x")


def test_newer_range_replaces_an_older(fd: int) -> None:
    memory = GuestMemory()
    memory.map(0, 2 * PAGE, fd, 0, True)
    memory.map(PAGE, PAGE, fd, 8 * PAGE, True)
    assert memory.read(PAGE, PAGE) == os.pread(fd, PAGE, 8 * PAGE)


def test_unmapped_is_gone_and_so_are_the_files(fd: int) -> None:
    memory = GuestMemory()
    memory.map(0, PAGE, fd, 0, True)
    memory.map(PAGE, PAGE, fd, PAGE, True)
    memory.unmap(0, PAGE)
    with pytest.raises(BadAddress):
        memory.read(0, 1)
    assert memory.read(PAGE, 1)
    memory.clear()
    with pytest.raises(BadAddress):
        memory.read(PAGE, 1)


def test_an_unmap_waits_for_a_copy_and_a_read_does_not(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = GuestMemory()
    memory.map(0, SIZE, fd, 0, True)
    copying, may_end, copyto = threading.Event(), threading.Event(), np.copyto

    def slow(target: np.ndarray, source: np.ndarray) -> None:
        copying.set()
        assert may_end.wait(10)
        copyto(target, source)

    monkeypatch.setattr(np, "copyto", slow)
    copy = threading.Thread(target=memory.copy, args=(PAGE, 0, PAGE))
    unmap = threading.Thread(target=memory.unmap, args=(0, SIZE))
    copy.start()
    assert copying.wait(10)
    assert memory.read(0, 1) == os.pread(fd, 1, 0)
    unmap.start()
    unmap.join(0.1)
    assert unmap.is_alive()
    may_end.set()
    unmap.join(10)
    assert not unmap.is_alive() and os.pread(fd, PAGE, 0) == os.pread(fd, PAGE, PAGE)
