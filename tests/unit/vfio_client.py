# SPDX-License-Identifier: GPL-2.0
"""What QEMU and a driver do to a device model, without either: a socketpair, a memfd, and a driver's few steps."""

from __future__ import annotations

import array
import json
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from mmap import mmap
from pathlib import Path

from ferry.devices import ae4dma, ioat, ptdma
from ferry.devices import vfio_user as vu
from ferry.devices.faults import Faults
from ferry.devices.pci import BUS_MASTER, COMMAND, Device
from ferry.devices.server import Server
from ferry.devices.vfio_user import Command, Irq, Region

MEMORY = 1 << 20
BASE = 1 << 32
"""Bus address of the guest's memory: above 4 GiB, so that both halves of an address count."""
RING, COMPLETION, SOURCE, TARGET = 0, 0x8000, 0x10000, 0x80000
"""Offsets in it."""
PATIENCE_S = 5.0


class Client:
    """The peer of a server that runs in a thread."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.socket, self._other = socket.socketpair()
        self.server = threading.Thread(target=Server(device).serve, args=(self._other,), daemon=True)
        self.server.start()
        self.fd = os.memfd_create("guest")
        os.ftruncate(self.fd, MEMORY)
        self.memory = mmap(self.fd, MEMORY)
        self._number = 0

    def close(self) -> None:
        self.socket.close()
        self.server.join(PATIENCE_S)
        assert not self.server.is_alive()
        self._other.close()
        os.close(self.fd)

    def call(self, command: int, payload: bytes = b"", fds: list[int] | None = None, flags: int = 0) -> bytes:
        """One request and its reply's payload. Raises OSError with the error number of the reply."""
        self.send(command, payload, fds, flags)
        number, answered, size, answer, error = vu.HEADER.unpack(self.socket.recv(vu.HEADER.size))
        assert (number, answered) == (self._number, command)
        assert answer & vu.REPLY
        data = self.socket.recv(size - vu.HEADER.size, socket.MSG_WAITALL) if size > vu.HEADER.size else b""
        if answer & vu.ERROR:
            raise OSError(error, os.strerror(error))
        return data

    def send(self, command: int, payload: bytes = b"", fds: list[int] | None = None, flags: int = 0) -> None:
        self._number += 1
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        header = vu.HEADER.pack(self._number, command, vu.HEADER.size + len(payload), flags, 0)
        self.socket.sendmsg([header + payload], rights)

    def map(self, address: int = BASE, size: int = MEMORY, offset: int = 0, flags: int = 3) -> None:
        self.call(Command.DMA_MAP, vu.DMA_MAP.pack(32, flags, offset, address, size), [self.fd])

    def vectors(self, fds: list[int], count: int, start: int = 0) -> None:
        self.call(Command.DEVICE_SET_IRQS,
                  vu.SET_IRQS.pack(20, vu.SET_IRQS_EVENTFD | 32, Irq.MSIX, start, count), fds)

    def read(self, region: int, offset: int, size: int = 4) -> int:
        data = self.call(Command.REGION_READ, vu.REGION_ACCESS.pack(offset, region, size))
        return int.from_bytes(data[vu.REGION_ACCESS.size :], "little")

    def write(self, region: int, offset: int, value: int, size: int = 4, flags: int = 0) -> None:
        payload = vu.REGION_ACCESS.pack(offset, region, size) + value.to_bytes(size, "little")
        if flags & vu.NO_REPLY:
            self.send(Command.REGION_WRITE, payload, flags=flags)
        else:
            self.call(Command.REGION_WRITE, payload)

    def bus_master(self, on: bool) -> None:
        self.write(Region.CONFIG, COMMAND, BUS_MASTER if on else 0, 2)


class Driver:
    """What both drivers have in common: a ring, a vector, data to copy."""

    def __init__(self, share: Path, make: Callable[[Faults], Device], name: str) -> None:
        self.share = share
        self.client = Client(make(Faults(share / "faults", (name,))))
        self.eventfds = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(self.client.device.vectors)]
        self.client.map()
        self.client.vectors(self.eventfds, len(self.eventfds))
        self.source = bytes(range(256)) * 16
        self.client.memory[SOURCE : SOURCE + len(self.source)] = self.source

    def close(self) -> None:
        self.client.close()
        for fd in self.eventfds:
            os.close(fd)

    def fault(self, **keys: int) -> None:
        part = self.share / "faults.part"
        part.write_text(json.dumps(keys))
        part.replace(self.share / "faults")

    def interrupted(self, vector: int = 0, seconds: float = PATIENCE_S) -> bool:
        """Whether the vector's interrupt comes, or came, in that time."""
        if not select.select([self.eventfds[vector]], [], [], seconds)[0]:
            return False
        return os.eventfd_read(self.eventfds[vector]) > 0

    def target(self) -> bytes:
        return self.client.memory[TARGET : TARGET + len(self.source)]

    def row(self, queue: int = 0) -> dict[str, int]:
        rows: list[dict[str, int]] = self.client.device.report()["queues"]
        return next(row for row in rows if row["queue"] == queue)

    def await_row(self, key: str, value: int) -> None:
        end = time.monotonic() + PATIENCE_S
        while self.row()[key] != value:
            assert time.monotonic() < end, self.row()
            time.sleep(0.01)


class PtdmaDriver(Driver):
    """pt_core_init(), pt_core_execute_cmd(), pt_check_status_trans()."""

    def __init__(self, share: Path) -> None:
        super().__init__(share, ptdma.make, ptdma.NAME)
        self.probe()

    def put(self, offset: int, value: int) -> None:
        self.client.write(ptdma.REGISTER_BAR, ptdma.QUEUE_BASE + offset, value)

    def get(self, offset: int) -> int:
        return self.client.read(ptdma.REGISTER_BAR, ptdma.QUEUE_BASE + offset)

    def probe(self) -> None:
        self.client.bus_master(True)
        self.control = BASE >> 32 << 16 | 4 << 3
        for offset, value in ((ptdma.INTERRUPT_ENABLE, 0), (ptdma.CONTROL, 0), (ptdma.TAIL, BASE & 0xFFFFFFFF),
                              (ptdma.HEAD, BASE & 0xFFFFFFFF), (ptdma.CONTROL, self.control),
                              (ptdma.INTERRUPT_ENABLE, 3)):
            self.put(offset, value)
        self.index = 0

    def submit(self, source: int = BASE + SOURCE, target: int = BASE + TARGET) -> None:
        words = (0x500012, len(self.source), source & 0xFFFFFFFF, source >> 32, target & 0xFFFFFFFF, target >> 32)
        struct.pack_into("<IIIIIIII", self.client.memory, RING + 32 * self.index, *words, 0, 0)
        self.index = (self.index + 1) % 32
        self.put(ptdma.TAIL, (BASE & 0xFFFFFFFF) + 32 * self.index)
        self.put(ptdma.CONTROL, self.control | ptdma.RUN)

    def handle(self) -> int:
        """The interrupt handler; returns the error code it finds."""
        status = self.get(ptdma.INTERRUPT_STATUS)
        error = self.get(ptdma.STATUS) & 0x3F if status & ptdma.FAILED else 0
        self.put(ptdma.INTERRUPT_STATUS, status)
        if error:
            self.put(ptdma.HEAD, (BASE & 0xFFFFFFFF) + 32 * self.index)
        return error


class Ae4dmaDriver(Driver):
    """ae4_core_init(), ae4_core_execute_cmd(), of one queue."""

    def __init__(self, share: Path, queue: int = 0) -> None:
        super().__init__(share, ae4dma.make, ae4dma.NAME)
        self.queue = queue
        self.probe()

    def put(self, offset: int, value: int) -> None:
        self.client.write(ae4dma.REGISTER_BAR, (self.queue + 1) * ae4dma.QUEUE_BYTES + offset, value)

    def get(self, offset: int) -> int:
        return self.client.read(ae4dma.REGISTER_BAR, (self.queue + 1) * ae4dma.QUEUE_BYTES + offset)

    def probe(self) -> None:
        self.client.bus_master(True)
        self.client.write(ae4dma.REGISTER_BAR, 0, 4)
        self.put(ae4dma.SIZE, 32)
        self.put(ae4dma.BASE_LOW, BASE & 0xFFFFFFFF)
        self.put(ae4dma.BASE_HIGH, BASE >> 32)
        self.index = 0

    def submit(self, source: int = BASE + SOURCE, target: int = BASE + TARGET) -> int:
        """Returns the descriptor's number in the ring."""
        mine = self.index
        struct.pack_into("<IIIIQQ", self.client.memory, RING + 32 * mine, 2, 0, len(self.source), 0, source, target)
        self.index = (mine + 1) % 32
        self.put(ae4dma.WRITE_INDEX, self.index)
        return mine

    def outcome(self, number: int) -> tuple[int, int]:
        """Status and error code that the device wrote."""
        return self.client.memory[RING + 32 * number + 4], self.client.memory[RING + 32 * number + 5]

    def outcome_after(self, number: int) -> tuple[int, int]:
        """The same, once the interrupt came."""
        assert self.interrupted(self.queue)
        return self.outcome(number)


class IoatDriver(Driver):
    """ioat_alloc_chan_resources(), ioat_dma_prep_memcpy_lock(), __ioat_issue_pending(), ioat_reset_hw(), of the first
    channel."""

    def __init__(self, share: Path) -> None:
        super().__init__(share, ioat.make, ioat.NAME)
        self.probe()

    def put(self, offset: int, value: int, size: int = 4) -> None:
        self.client.write(ioat.REGISTER_BAR, ioat.CHANNEL_BYTES + offset, value, size)

    def get(self, offset: int, size: int = 4) -> int:
        return self.client.read(ioat.REGISTER_BAR, ioat.CHANNEL_BYTES + offset, size)

    @property
    def state(self) -> tuple[int, int]:
        """The number of the last good descriptor, -1 for none, and the state."""
        return self.decoded(self.get(ioat.STATUS, 8))

    @property
    def completion(self) -> tuple[int, int]:
        """The same as the device wrote it to memory."""
        return self.decoded(int.from_bytes(self.client.memory[COMPLETION : COMPLETION + 8], "little"))

    @staticmethod
    def decoded(status: int) -> tuple[int, int]:
        address, state = status & ~0x3F, status & 7
        return (address - BASE - RING) // 64 if address else -1, state

    def probe(self) -> None:
        self.client.bus_master(True)
        self.put(ioat.COMMAND, ioat.RESET, 1)
        self.restart()

    def restart(self) -> None:
        """__ioat_restart_chan() of a channel after a reset, without the descriptor that copies nothing."""
        for low, high, offset in ((ioat.COMPLETION_LOW, ioat.COMPLETION_HIGH, COMPLETION),
                                  (ioat.CHAIN_LOW, ioat.CHAIN_HIGH, RING)):
            self.put(low, BASE + offset & 0xFFFFFFFF)
            self.put(high, BASE + offset >> 32)
        self.index = self.issued = 0

    def submit(self, source: int = BASE + SOURCE, target: int = BASE + TARGET,
               flags: int = ioat.INTERRUPT | ioat.WRITE_COMPLETION) -> int:
        """Returns the descriptor's number in the ring."""
        mine, self.index = self.index, (self.index + 1) % 32
        struct.pack_into("<IIQQQ", self.client.memory, RING + 64 * mine, len(self.source), flags, source, target,
                         BASE + RING + 64 * self.index)
        self.issued += 1
        self.put(ioat.ISSUED, self.issued, 2)
        return mine
