# SPDX-License-Identifier: GPL-2.0
"""AE4DMA (1022:149b) as drivers/dma/amd/ae4dma of Linux 7.3 expects it; not AMD's hardware.

Up to 16 queues, according to the driver's parameter max_hw_q (default 1), each a ring of 32-byte descriptors between a
read and a write index, with its own interrupt vector. The device writes the result into the descriptor; after an error
the queue goes on.

When a client terminates a channel, the driver writes 0 to the queue's first register, which is PTDMA's control
register, and never sets it again. The model keeps that value and goes on: if it stopped, the queue would be useless
after the first termination. Descriptors in flight at that time still write to memory, therefore, as in hardware.
"""

from __future__ import annotations

import struct

from ferry.devices.engine import Job, Queue, Surroundings
from ferry.devices.faults import Faults
from ferry.devices.pci import Device, Identity

NAME = "ae4dma"
REGISTER_BAR = 0
REGISTER_BYTES = 0x1000
QUEUES = 16
"""The driver requests exactly so many interrupt vectors, whatever number of queues it uses."""
QUEUE_BYTES = 0x20

CONTROL, SIZE, READ_INDEX, WRITE_INDEX, INTERRUPT_STATUS, BASE_LOW, BASE_HIGH = 0, 0x8, 0xC, 0x10, 0x14, 0x18, 0x1C
INTERRUPT_ON_COMPLETION = 2
"""Bit of a descriptor's first byte."""
DESCRIPTOR = struct.Struct("<IBBHIIQQ")
STATUS_OFFSET = 4
"""Values of the descriptor's status byte, which precedes the error code."""
COMPLETED, FAILED = 3, 4
ERROR_CODE = 20
"""The driver calls 16 to 31 firmware errors."""


class Ae4dmaQueue(Queue):
    """One of the queues."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self.clear()

    def clear(self) -> None:
        self._registers = dict.fromkeys(range(0, QUEUE_BYTES, 4), 0)
        self._interrupts_on = False

    def get(self, offset: int) -> int:
        return self._registers.get(offset, 0)

    def put(self, offset: int, value: int) -> None:
        if offset in self._registers and offset != READ_INDEX:
            self._registers[offset] = value

    def pending(self) -> bool:
        registers = self._registers
        return bool(registers[SIZE]) and registers[READ_INDEX] != registers[WRITE_INDEX] % registers[SIZE]

    def fetch(self) -> Job:
        flags, _, _, _, length, _, source, destination = DESCRIPTOR.unpack(
            self.memory.read(self._descriptor(), DESCRIPTOR.size))
        self._interrupts_on = bool(flags & INTERRUPT_ON_COMPLETION)
        return Job(source, destination, length)

    def finish(self, good: bool) -> None:
        registers = self._registers
        self.memory.write(self._descriptor() + STATUS_OFFSET, bytes((COMPLETED, 0) if good else (FAILED, ERROR_CODE)))
        registers[READ_INDEX] = (registers[READ_INDEX] + 1) % registers[SIZE]
        registers[INTERRUPT_STATUS] |= 1
        if self._interrupts_on:
            self.interrupt()

    def _descriptor(self) -> int:
        base = self._registers[BASE_HIGH] << 32 | self._registers[BASE_LOW]
        return base + self._registers[READ_INDEX] * DESCRIPTOR.size


def make(faults: Faults) -> Device:
    """The device with all its queues; the driver may use only some of them."""
    identity = Identity(vendor=0x1022, device=0x149B, vectors=QUEUES, register_bar=REGISTER_BAR,
                        register_bytes=REGISTER_BYTES)
    # The first queue's registers follow the device's own, which take as much space as a queue's.
    queues = {(index + 1) * QUEUE_BYTES: Ae4dmaQueue for index in range(QUEUES)}
    return Device(NAME, identity, faults, queues, QUEUE_BYTES)
