# SPDX-License-Identifier: GPL-2.0
"""The modelled speed of an engine: when a descriptor is complete.

A queue copies a descriptor as fast as this machine does, then sleeps until the modelled engine would be done. So the
time of a descriptor is the longer one of the modelled and the real time.

A sleep ends late, by the resolution of the host's timers and by the wait for Python's global lock. The queue takes that
off its next sleeps, so that many short descriptors together take as long as modelled.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ferry.devices.faults import Plan

_MICRO, _MEGA = 1e-6, 1e6


class Bandwidth:
    """The rate that the queues of a device share. Threads may use it concurrently."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free_at = 0.0

    def reserve(self, now: float, seconds: float) -> float:
        """Reserve the whole rate for some seconds, from `now` or from the end of all reservations; returns the end."""
        with self._lock:
            self._free_at = max(self._free_at, now) + seconds
            return self._free_at


class Pace:
    """Lets the descriptors of one queue take as long as modelled. `clock` is in seconds."""

    def __init__(self, shared: Bandwidth, clock: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._clock = clock
        self._begun = 0.0
        self._overslept = 0.0

    def begin(self) -> None:
        """The queue, which was idle, starts a descriptor. Otherwise one starts when that before it ends."""
        self._begun = self._clock()

    def due(self, plan: Plan, length: int, delay: float = 0.0) -> float | None:
        """When that descriptor, of `length` bytes and with a delay (s), is complete; None if the plan has no speed."""
        if not (plan.queue_mb_per_s or plan.latency_us or plan.device_mb_per_s):
            return None
        start = self._begun + delay
        end = start + plan.latency_us * _MICRO
        if plan.queue_mb_per_s:
            end += length / (plan.queue_mb_per_s * _MEGA)
        if plan.device_mb_per_s:
            end = max(end, self._shared.reserve(start, length / (plan.device_mb_per_s * _MEGA)))
        return end

    def is_overdue(self, due: float | None) -> bool:
        """Whether that time is over."""
        return due is not None and due < self._clock()

    def sleep_until(self, due: float | None, sleep: Callable[[float], bool]) -> bool:
        """Call `sleep` with the seconds that are left, if any, and end the descriptor; returns its result, or True."""
        self._begun = self._clock()
        if due is None:
            return True
        left = max(due - self._begun, 0.0) - self._overslept
        self._overslept = max(-left, 0.0)
        if left <= 0:
            return True
        undisturbed = sleep(left)
        end = self._begun + left
        self._begun = self._clock()
        self._overslept = max(self._begun - end, 0.0)
        return undisturbed
