# SPDX-License-Identifier: GPL-2.0
"""I/OAT 3.4 (8086:0b00, Ice Lake) as drivers/dma/ioat of Linux 7.3 expects it; not Intel's hardware.

Two channels, each a chain of 64-byte descriptors. The driver writes the address of the first one, and then how many it
has issued since; the device follows the links. After a descriptor that asks for it the device writes the descriptor's
address and the channel's state to memory. At an error it halts with the address of the last good descriptor, until the
driver has reset the channel.

A reset, and a suspend, let the copy under way end first, and no descriptor after it begins.

Interrupts are never masked: the driver arms them again after each one, and loses none.
"""

from __future__ import annotations

import struct
import time

from ferry.devices.engine import Job, Queue, Surroundings
from ferry.devices.faults import Faults
from ferry.devices.pci import Device, Identity

NAME = "ioat"
REGISTER_BAR = 0
REGISTER_BYTES = 0x4000
CHANNELS = 2
"""The driver can use four; each takes it 65,536 descriptors."""
CHANNEL_BYTES = 0x80

CHANNEL_COUNT, TRANSFER_CAPACITY, VERSION, CAPABILITIES = 0x00, 0x01, 0x08, 0x10
"""Registers of the device."""
CAPACITY_LOG = 20
"""A descriptor has 1 MiB at most."""
VERSION_3_4 = 0x34

COMMAND, ISSUED, STATUS, CHAIN_LOW, CHAIN_HIGH = 0x04, 0x06, 0x08, 0x10, 0x14
COMPLETION_LOW, COMPLETION_HIGH, ERROR = 0x18, 0x1C, 0x28
"""Registers of a channel."""
RESET, SUSPEND = 0x20, 0x04
"""Bits of the command register."""
ACTIVE, IDLE, SUSPENDED, HALTED = range(4)
"""States in the low bits of the status register; above is the address of the last good descriptor."""
WRITE_DATA_ERROR = 0x200

DESCRIPTOR = struct.Struct("<IIQQQ")
INTERRUPT, WRITE_COMPLETION, NOTHING = 1, 8, 0x20
"""Bits of a descriptor's second word. The driver starts a channel with a descriptor that copies nothing."""
COUNT_MASK = 0xFFFF


class IoatChannel(Queue):
    """One of the channels."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._reset_until = 0.0
        self.clear()

    def clear(self) -> None:
        self._registers = dict.fromkeys((CHAIN_LOW, CHAIN_HIGH, COMPLETION_LOW, COMPLETION_HIGH), 0)
        self._issued = self._done = self._error = 0
        self._last_good = 0
        self._next: int | None = None
        """Address of the next descriptor; None at the start of a chain."""
        self._busy = self._halted = False
        self._suspended = True
        """Until it gets a chain."""

    def get(self, offset: int) -> int:
        values = {COMMAND: RESET if self._resets() else 0, STATUS: self._status(), STATUS + 4: self._status() >> 32,
                  ISSUED: self._issued, ERROR: self._error}
        return values.get(offset, self._registers.get(offset, 0))

    def put(self, offset: int, value: int) -> None:
        if offset in self._registers:
            self._registers[offset] = value
        if offset in (CHAIN_LOW, CHAIN_HIGH):
            self._next, self._issued, self._done, self._suspended = None, 0, 0, False
        elif offset == ISSUED:
            self._issued = value
        elif offset == ERROR:
            self._error &= ~value
        elif offset == COMMAND and value & RESET:
            if not self._resets():
                self.reset()
                self._reset_until = time.monotonic() + self.plan.reset_ms * 1e-3
        elif offset == COMMAND:
            self._suspended = bool(value & SUSPEND)

    def pending(self) -> bool:
        return self._done != self._issued and not self._halted and not self._suspended

    def fetch(self) -> Job:
        self._busy = True
        address = self._address(CHAIN_LOW, CHAIN_HIGH) if self._next is None else self._next
        length, self._flags, source, target, self._next = DESCRIPTOR.unpack(self.memory.read(address, DESCRIPTOR.size))
        self._current = address
        return Job(source, target, 0 if self._flags & NOTHING else length)

    def finish(self, good: bool) -> None:
        self._busy = False
        if good:
            self._done = self._done + 1 & COUNT_MASK
            self._last_good = self._current
        else:
            self._halted = True
            self._error |= WRITE_DATA_ERROR
        if self._flags & WRITE_COMPLETION or not good:
            self.memory.write(self._address(COMPLETION_LOW, COMPLETION_HIGH), self._status().to_bytes(8, "little"))
        if self._flags & INTERRUPT or not good:
            self.interrupt()

    def _resets(self) -> bool:
        return time.monotonic() < self._reset_until

    def _status(self) -> int:
        if self._halted:
            state = HALTED
        elif self._busy or self.pending():
            state = ACTIVE
        else:
            state = SUSPENDED if self._suspended else IDLE
        return self._last_good | state

    def _address(self, low: int, high: int) -> int:
        return self._registers[high] << 32 | self._registers[low]


def make(faults: Faults) -> Device:
    """The device with its channels, whose registers follow the device's own."""
    constants = {CHANNEL_COUNT: CHANNELS, TRANSFER_CAPACITY: CAPACITY_LOG, VERSION: VERSION_3_4, CAPABILITIES: 0}
    identity = Identity(vendor=0x8086, device=0x0B00, vectors=CHANNELS, register_bar=REGISTER_BAR,
                        register_bytes=REGISTER_BYTES, constants=constants)
    channels = {(index + 1) * CHANNEL_BYTES: IoatChannel for index in range(CHANNELS)}
    return Device(NAME, identity, faults, channels, CHANNEL_BYTES)
