# SPDX-License-Identifier: GPL-2.0
"""The protocol that QEMU speaks to a device model."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from vfio_client import BASE, MEMORY, Client

from ferry.devices import ae4dma, pci
from ferry.devices import vfio_user as vu
from ferry.devices.faults import Faults
from ferry.devices.vfio_user import Command, Irq, Region


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    made = Client(ae4dma.make(Faults(tmp_path / "none", (ae4dma.NAME,))))
    yield made
    made.close()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_version_offers_no_more_descriptors_than_qemu_takes(client: Client) -> None:
    answer = client.call(Command.VERSION, struct.pack("<HH", 0, 0) + b'{"capabilities":{}}\0')
    assert vu.VERSION.unpack_from(answer) == (0, 0)
    able = json.loads(answer[vu.VERSION.size :].rstrip(b"\0"))["capabilities"]
    assert able["max_msg_fds"] <= 16


def test_device_describes_itself(client: Client) -> None:
    assert vu.DEVICE_INFO.unpack(client.call(Command.DEVICE_GET_INFO, bytes(16)))[1:] == (3, 9, 5)
    sizes = [vu.REGION_INFO.unpack(client.call(Command.DEVICE_GET_REGION_INFO, struct.pack("<IIIIQQ", 32, 0, index,
                                                                                          0, 0, 0)))[4]
             for index in range(Region.COUNT)]
    assert sizes == [ae4dma.REGISTER_BYTES, 0, 0, 0, pci.MSIX_BAR_BYTES, 0, 0, pci.CONFIG_BYTES, 0]
    counts = [vu.IRQ_INFO.unpack(client.call(Command.DEVICE_GET_IRQ_INFO, struct.pack("<IIII", 16, 0, index, 0)))[3]
              for index in range(Irq.COUNT)]
    assert counts == [0, 0, 16, 0, 0]


def test_configuration_space_is_that_of_the_engine(client: Client) -> None:
    assert client.read(Region.CONFIG, 0) == 0x149B1022
    assert client.read(Region.CONFIG, pci.MSIX_CAPABILITY, 2) & 0xFF == pci.MSIX_ID
    assert client.read(Region.CONFIG, pci.MSIX_CAPABILITY + 2, 2) == 15
    client.write(Region.CONFIG, 0, 0)
    client.write(Region.CONFIG, pci.COMMAND, 6, 2)
    assert client.read(Region.CONFIG, 0) == 0x149B1022
    assert client.read(Region.CONFIG, pci.COMMAND, 2) == 6


def test_registers_keep_what_is_written_until_reset(client: Client) -> None:
    client.write(ae4dma.REGISTER_BAR, 0, 4)
    client.write(ae4dma.REGISTER_BAR, 0x28, 32)
    assert (client.read(ae4dma.REGISTER_BAR, 0), client.read(ae4dma.REGISTER_BAR, 0x28)) == (4, 32)
    client.call(Command.DEVICE_RESET)
    assert (client.read(ae4dma.REGISTER_BAR, 0), client.read(ae4dma.REGISTER_BAR, 0x28)) == (0, 0)


def test_posted_write_gets_no_reply(client: Client) -> None:
    client.write(ae4dma.REGISTER_BAR, 0, 7, flags=vu.NO_REPLY)
    assert client.read(ae4dma.REGISTER_BAR, 0) == 7


def test_what_is_not_known_is_refused_and_the_device_goes_on(client: Client) -> None:
    with pytest.raises(OSError, match="not supported") as caught:
        client.call(99)
    assert caught.value.errno == errno.ENOTSUP
    with pytest.raises(OSError, match="Invalid"):
        client.call(Command.DMA_MAP, b"short")
    with pytest.raises(OSError, match="Invalid"):
        client.map(size=2 * MEMORY)
    assert client.read(Region.CONFIG, 0) == 0x149B1022


def test_memory_comes_and_goes(client: Client) -> None:
    client.map(BASE, MEMORY // 2, offset=MEMORY // 2)
    client.memory[MEMORY // 2] = 42
    assert client.device.memory.read(BASE, 1) == b"\x2a"
    client.call(Command.DMA_UNMAP, vu.DMA_UNMAP.pack(24, 0, BASE, MEMORY // 2))
    with pytest.raises(Exception, match="not mapped"):
        client.device.memory.read(BASE, 1)
    client.map()
    client.call(Command.DMA_UNMAP, vu.DMA_UNMAP.pack(24, vu.DMA_UNMAP_ALL, 0, 0))
    with pytest.raises(Exception, match="not mapped"):
        client.device.memory.read(BASE, 1)


def test_memory_without_a_file_is_left_out(client: Client) -> None:
    client.call(Command.DMA_MAP, vu.DMA_MAP.pack(32, 1, 0, BASE, 4096))
    with pytest.raises(Exception, match="not mapped"):
        client.device.memory.read(BASE, 1)


def test_vectors_are_set_replaced_and_switched_off(client: Client) -> None:
    events = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(3)]
    client.vectors(events[:2], 2, start=14)
    client.vectors(events[2:], 1, start=14)
    for vector in (13, 14, 15):
        client.device.interrupts.trigger(vector)
    assert [os.eventfd_read(event) for event in events[1:]] == [1, 1]
    client.vectors([], 1, start=15)
    client.device.interrupts.trigger(15)
    client.call(Command.DEVICE_SET_IRQS, vu.SET_IRQS.pack(20, vu.SET_IRQS_NONE | 32, Irq.MSIX, 0, 0))
    client.device.interrupts.trigger(14)
    for event in events:
        with pytest.raises(BlockingIOError):
            os.eventfd_read(event)
        os.close(event)


def test_no_descriptor_is_kept_after_the_peer_left(tmp_path: Path) -> None:
    before = open_files()
    client = Client(ae4dma.make(Faults(tmp_path / "none", (ae4dma.NAME,))))
    client.map()
    event = os.eventfd(0)
    client.vectors([event], 1)
    with pytest.raises(OSError, match="not supported"):
        client.call(99, fds=[event])
    client.close()
    os.close(event)
    client.memory.close()
    assert open_files() == before


@pytest.mark.parametrize("sent", [b"\0" * 5, vu.HEADER.pack(1, 1, 8, 0, 0), vu.HEADER.pack(1, 1, 1 << 30, 0, 0)])
def test_nonsense_ends_the_connection_and_nothing_else(tmp_path: Path, sent: bytes) -> None:
    client = Client(ae4dma.make(Faults(tmp_path / "none", (ae4dma.NAME,))))
    client.socket.sendall(sent)
    client.socket.shutdown(socket.SHUT_WR)
    client.close()
