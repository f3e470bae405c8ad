# SPDX-License-Identifier: GPL-2.0
"""A PCI function: its configuration space, its register BAR, its interrupt vectors, its queues.

If the kernel disables bus mastering, as it does when a driver is unbound, the function resets itself, because it may
not access memory any more. So a driver that is unbound and bound again finds it clean, whatever was in flight or stuck.
"""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from ferry.devices import counters
from ferry.devices.engine import Queue, Surroundings
from ferry.devices.faults import Faults
from ferry.devices.guest_memory import GuestMemory
from ferry.devices.pace import Bandwidth

_log = logging.getLogger(__name__)

CONFIG_BYTES = 256
COMMAND, STATUS, CLASS, BARS, SUBSYSTEM, CAPABILITIES = 0x04, 0x06, 0x09, 0x10, 0x2C, 0x34
BUS_MASTER = 4
HAS_CAPABILITIES = 0x10
SYSTEM_PERIPHERAL = bytes((0, 0x80, 0x08))
MSIX_CAPABILITY = 0x40
MSIX_ID = 0x11
MSIX_BAR = 4
"""QEMU keeps table and pending bits itself; the device only tells their location."""
MSIX_PENDING_OFFSET = 0x1000
MSIX_BAR_BYTES = 0x2000


@dataclass(frozen=True)
class Identity:
    """The IDs by which a driver matches the device, and the layout of its registers. `constants` are values, by offset,
    of registers that no write changes."""

    vendor: int
    device: int
    vectors: int
    register_bar: int
    register_bytes: int
    constants: Mapping[int, int] = field(default_factory=dict)


def config_space(identity: Identity) -> bytearray:
    """The configuration space after power on. BARs are 32 bits wide; QEMU assigns them."""
    space = bytearray(CONFIG_BYTES)
    struct.pack_into("<HHHH", space, 0, identity.vendor, identity.device, 0, HAS_CAPABILITIES)
    space[CLASS : CLASS + 3] = SYSTEM_PERIPHERAL
    struct.pack_into("<HH", space, SUBSYSTEM, identity.vendor, 1)
    space[CAPABILITIES] = MSIX_CAPABILITY
    struct.pack_into("<BBHII", space, MSIX_CAPABILITY, MSIX_ID, 0, identity.vectors - 1,
                     MSIX_BAR, MSIX_BAR | MSIX_PENDING_OFFSET)
    return space


class Interrupts:
    """One eventfd for each enabled vector."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fds: dict[int, int] = {}

    def set(self, vector: int, fd: int | None) -> None:
        """Set or clear a vector's eventfd, which this object closes."""
        with self._lock:
            old = self._fds.pop(vector, None)
            if fd is not None:
                self._fds[vector] = fd
        if old is not None:
            os.close(old)

    def clear(self) -> None:
        for vector in list(self._fds):
            self.set(vector, None)

    def trigger(self, vector: int) -> None:
        with self._lock, contextlib.suppress(KeyError):
            os.eventfd_write(self._fds[vector], 1)


class Device:
    """A function with queues, each at an offset of its register BAR; other registers only keep the value written."""

    def __init__(self, name: str, identity: Identity, faults: Faults,
                 queues: Mapping[int, Callable[[Surroundings], Queue]], queue_bytes: int) -> None:
        self.name = name
        self.vectors = identity.vectors
        self.bars = {identity.register_bar: identity.register_bytes, MSIX_BAR: MSIX_BAR_BYTES}
        self.memory = GuestMemory()
        self.interrupts = Interrupts()
        self._register_bar = identity.register_bar
        self._constants = identity.constants
        self._queue_bytes = queue_bytes
        self._faults = faults
        self._config = config_space(identity)
        self._registers: dict[int, int] = {}
        self._resets = 0
        bandwidth = Bandwidth()
        self._queues = {
            offset: make(Surroundings(name, index, self.memory, faults, partial(self.interrupts.trigger, index),
                                      bandwidth))
            for index, (offset, make) in enumerate(queues.items())
        }

    def read_config(self, offset: int, size: int) -> bytes:
        return bytes(self._config[offset : offset + size]).ljust(size, b"\0")

    def write_config(self, offset: int, data: bytes) -> None:
        """Accept writes to the command register, and those to MSI-X's control that QEMU passes on."""
        was_master = self._config[COMMAND] & BUS_MASTER
        for at, byte in enumerate(data, start=offset):
            if at in (COMMAND, COMMAND + 1) or MSIX_CAPABILITY + 2 <= at <= MSIX_CAPABILITY + 3:
                self._config[at] = byte
        if was_master and not self._config[COMMAND] & BUS_MASTER:
            self.reset()

    def read(self, bar: int, offset: int, size: int) -> bytes:
        """A register by its own offset; drivers read each as a whole."""
        value = 0
        if bar == self._register_bar:
            queue, inside = self._queue_at(offset)
            value = queue.read(inside) if queue else self._constants.get(offset, self._registers.get(offset, 0))
        return (value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def write(self, bar: int, offset: int, data: bytes) -> None:
        if bar != self._register_bar:
            return
        queue, inside = self._queue_at(offset)
        if queue:
            queue.write(inside, int.from_bytes(data, "little"))
        else:
            self._registers[offset] = int.from_bytes(data, "little")

    def _queue_at(self, offset: int) -> tuple[Queue | None, int]:
        """A register's queue, and its offset there."""
        start = max((start for start in self._queues if start <= offset), default=None)
        if start is None or offset >= start + self._queue_bytes:
            return None, offset
        return self._queues[start], offset - start

    def reset(self) -> None:
        """Reset all queues and registers; QEMU and the kernel set up configuration and interrupts again."""
        _log.info("%s: reset", self.name)
        self._resets += 1
        self._registers = {}
        for queue in self._queues.values():
            queue.reset()

    def report(self) -> dict[str, Any]:
        """Counters of the queues that the driver has used, and the current faults and speeds."""
        return {
            "resets": self._resets,
            "faults": asdict(self._faults.current().plans[self.name]),
            "queues": [counters.as_row(index, queue.counters)
                       for index, queue in enumerate(self._queues.values()) if queue.used],
        }
