# SPDX-License-Identifier: GPL-2.0
"""PTDMA (1022:1498) as drivers/dma/amd/ptdma of Linux 7.3 expects it; not AMD's hardware.

One queue of 32-byte descriptors between head and tail, both bus addresses, which runs while RUN is set. The ring is
aligned to its size, so head can wrap although the device does not know the start of the ring. After an error the queue
halts with head on the failed descriptor, until the driver has advanced head and set RUN again.

RUN alone does not end a halt. The driver sets it after each write of tail; if the device failed quickly, that is after
the error. A device that then ran the failed descriptor again would complete it twice, and at the second completion the
driver (7.3.4) uses a descriptor that it has freed.
"""

from __future__ import annotations

import struct

from ferry.devices.engine import Job, Queue, Surroundings
from ferry.devices.faults import Faults
from ferry.devices.pci import Device, Identity

NAME = "ptdma"
REGISTER_BAR = 2
REGISTER_BYTES = 0x8000
QUEUE_BASE = 0x1000

CONTROL, TAIL, HEAD, INTERRUPT_ENABLE, INTERRUPT_STATUS = 0x00, 0x04, 0x08, 0x0C, 0x10
STATUS, LAST_INTERRUPT = 0x100, 0x104
RUN = 1
COMPLETED, FAILED = 1, 2
"""Bits of the interrupt registers."""
INTERRUPT_ON_COMPLETION = 2
"""Bit of a descriptor's first word."""
DESCRIPTOR = struct.Struct("<IIIIIIII")
ERROR_CODE = 38
"""ODMA0_AXI_SLVERR, a failed write. The driver's table of names has 26 entries; 7.3.4 reads past its end."""


class PtdmaQueue(Queue):
    """The only queue."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self.clear()

    def clear(self) -> None:
        self._registers = dict.fromkeys((CONTROL, TAIL, HEAD, INTERRUPT_ENABLE, INTERRUPT_STATUS, STATUS), 0)
        self._interrupts_on = False
        self._halted = False

    def get(self, offset: int) -> int:
        return self._registers.get(INTERRUPT_STATUS if offset == LAST_INTERRUPT else offset, 0)

    def put(self, offset: int, value: int) -> None:
        if offset == INTERRUPT_STATUS:
            self._registers[offset] &= ~value
        elif offset in self._registers:
            self._registers[offset] = value
        if offset == HEAD:
            self._halted = False
        if offset == INTERRUPT_ENABLE:
            self._interrupt_if_due()

    def pending(self) -> bool:
        registers = self._registers
        return bool(registers[CONTROL] & RUN) and not self._halted and registers[HEAD] != registers[TAIL]

    def fetch(self) -> Job:
        control, head = self._registers[CONTROL], self._registers[HEAD]
        words = DESCRIPTOR.unpack(self.memory.read(control >> 16 << 32 | head, DESCRIPTOR.size))
        self._interrupts_on = bool(words[0] & INTERRUPT_ON_COMPLETION)
        return Job(_address(words[2], words[3]), _address(words[4], words[5]), words[1])

    def finish(self, good: bool) -> None:
        registers = self._registers
        registers[STATUS] = 0 if good else ERROR_CODE
        if good:
            registers[HEAD] = _after(registers[HEAD], registers[CONTROL])
            registers[INTERRUPT_STATUS] |= COMPLETED if self._interrupts_on else 0
        else:
            registers[CONTROL] &= ~RUN
            self._halted = True
            registers[INTERRUPT_STATUS] |= FAILED
        self._interrupt_if_due()

    def _interrupt_if_due(self) -> None:
        if self._registers[INTERRUPT_ENABLE] & self._registers[INTERRUPT_STATUS]:
            self.interrupt()


def _address(low: int, high: int) -> int:
    """48 bits; the bits above are the type of memory, which is always system memory."""
    return (high & 0xFFFF) << 32 | low


def _after(head: int, control: int) -> int:
    """The next descriptor's address; the control register's size field n means 2 << n descriptors."""
    ring = (2 << (control >> 3 & 0x1F)) * DESCRIPTOR.size
    return head & ~(ring - 1) | (head + DESCRIPTOR.size) & (ring - 1)


def make(faults: Faults) -> Device:
    """The device with its one queue."""
    identity = Identity(vendor=0x1022, device=0x1498, vectors=1, register_bar=REGISTER_BAR,
                        register_bytes=REGISTER_BYTES)
    return Device(NAME, identity, faults, {QUEUE_BASE: PtdmaQueue}, queue_bytes=0x200)
