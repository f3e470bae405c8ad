# SPDX-License-Identifier: GPL-2.0
"""A queue of copy descriptors, which a thread processes in order: the part that all models share.

The server's thread writes registers; the queue's thread fetches, copies and completes. Both access registers under the
queue's lock; a copy runs and a sleep passes without the lock, so that neither a register access nor another queue waits
for it. A reset does wait for a copy: after it returns, no descriptor fetched before it writes to the guest's memory or
interrupts the guest.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ferry.devices.counters import Counters
from ferry.devices.faults import Fault, Faults, Plan
from ferry.devices.guest_memory import BadAddress, GuestMemory
from ferry.devices.pace import Bandwidth, Pace

_log = logging.getLogger(__name__)
_MICRO, _MILLI = 1e-6, 1e-3


@dataclass(frozen=True)
class Job:
    """One descriptor: bus addresses and a length in bytes."""

    source: int
    destination: int
    length: int


@dataclass(frozen=True)
class Surroundings:
    """The constructor's arguments of a queue: its device and index, the guest's memory, faults, its interrupt, and the
    rate that it shares with the device's other queues."""

    device: str
    index: int
    memory: GuestMemory
    faults: Faults
    interrupt: Callable[[], None]
    bandwidth: Bandwidth


class Queue(ABC):
    """A subclass defines registers and descriptors; its methods are called with the lock held."""

    def __init__(self, around: Surroundings) -> None:
        self.counters = Counters()
        self.used = False
        """Whether the driver has written to it."""
        self.memory = around.memory
        self._around = around
        self._pace = Pace(around.bandwidth)
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._epoch = 0
        self._copying = False
        self._generation = 0
        self._number = 0

    @property
    def plan(self) -> Plan:
        """The current plan of the device."""
        return self._around.faults.current().plans[self._around.device]

    @abstractmethod
    def get(self, offset: int) -> int:
        """The register at `offset` of the queue's own."""

    @abstractmethod
    def put(self, offset: int, value: int) -> None:
        """Write that register."""

    @abstractmethod
    def clear(self) -> None:
        """Registers as they are after a reset."""

    @abstractmethod
    def pending(self) -> bool:
        """Whether there is a descriptor to run."""

    @abstractmethod
    def fetch(self) -> Job:
        """The next descriptor. Raises BadAddress when it cannot be read."""

    @abstractmethod
    def finish(self, good: bool) -> None:
        """Report the descriptor last fetched as a success or an error. Raises BadAddress when it cannot be written."""

    def read(self, offset: int) -> int:
        """A register, for the server."""
        with self._changed:
            return self.get(offset)

    def write(self, offset: int, value: int) -> None:
        """Write a register, for the server; wake the queue's thread if there is a descriptor to run."""
        with self._changed:
            self.used = True
            self.put(offset, value)
            if self.pending():
                self._wake()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=str(self), daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def reset(self) -> None:
        """Abandon the descriptor in flight; return once it can neither write to memory nor interrupt."""
        with self._changed:
            self._epoch += 1
            self.clear()
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._copying)

    def interrupt(self) -> None:
        """Raise the queue's interrupt."""
        self.counters.interrupts += 1
        self._around.interrupt()

    def __str__(self) -> str:
        return f"{self._around.device} queue {self._around.index}"

    def _work(self) -> None:
        with self._changed:
            self._pace.begin()
            while True:
                if not self.pending():
                    self._changed.wait_for(self.pending)
                    self._pace.begin()
                try:
                    job = self.fetch()
                except BadAddress as error:
                    _log.error("%s: the descriptor itself: %s; stopped until reset", self, error)
                    self._wait(self._epoch, None)
                else:
                    self._run(job)

    def _run(self, job: Job) -> None:
        epoch = self._epoch
        plan, fault = self._draw()
        self.counters.descriptors += 1
        if fault is Fault.STALL:
            _log.info("%s: stalls", self)
            self.counters.stalls += 1
            self._wait(epoch, None)
            return
        delay = plan.delay_us * _MICRO + (plan.late_ms * _MILLI if fault is Fault.LATE else 0)
        due = self._pace.due(plan, job.length, delay)
        if not self._wait(epoch, delay):
            self.counters.abandoned += 1
            return
        good = self._carry_out(job, fault)
        self.counters.overdue += self._pace.is_overdue(due)
        if epoch != self._epoch or not self._pace.sleep_until(due, partial(self._wait, epoch)):
            self.counters.abandoned += good
            return
        # Before the interrupt, after which the guest may ask for the counters.
        self.counters.completed += good
        try:
            self.finish(good)
        except BadAddress as error:
            self.counters.completed -= good
            _log.error("%s: the result of a descriptor: %s; stopped until reset", self, error)
            self._wait(epoch, None)
            self.counters.abandoned += good

    def _draw(self) -> tuple[Plan, Fault | None]:
        """The fault of the next descriptor; each change of the control file restarts the numbers of descriptors."""
        control = self._around.faults.current()
        if control.generation != self._generation:
            self._generation, self._number = control.generation, 0
        plan = control.plans[self._around.device]
        number, self._number = self._number, self._number + 1
        return plan, plan.draw(self._around.device, self._around.index, number)

    def _wait(self, epoch: int, seconds: float | None) -> bool:
        """Wait, for ever if `seconds` is None; returns False after a reset."""
        if seconds == 0:
            return True
        return not self._changed.wait_for(lambda: self._epoch != epoch, seconds)

    def _carry_out(self, job: Job, fault: Fault | None) -> bool:
        """Copy as much as the fault permits; returns whether the device reports success."""
        nothing = fault in (Fault.ERROR, Fault.CORRUPT)
        length = 0 if nothing else job.length // 2 if fault is Fault.PARTIAL else job.length
        self.counters.errors += fault is Fault.ERROR
        self.counters.corrupt += fault is Fault.CORRUPT
        self.counters.partial += fault is Fault.PARTIAL
        try:
            self._copy(job, length)
        except BadAddress as error:
            _log.warning("%s: %s", self, error)
            self.counters.bad_addresses += 1
            return False
        self.counters.late += fault is Fault.LATE
        return fault is not Fault.ERROR

    def _copy(self, job: Job, length: int) -> None:
        """Copy without the lock; `_copying` makes a reset wait."""
        if not length:
            return
        self._copying = True
        self._changed.release()
        try:
            self.memory.copy(job.source, job.destination, length)
            self.counters.bytes += length
        finally:
            self._changed.acquire()
            self._copying = False
            self._changed.notify_all()
