# SPDX-License-Identifier: GPL-2.0
"""Fault injection and speed: a control file, which may change at any time, selects the faults and their descriptors,
and the speed of the engines.

    {"seed": 1, "error": 5, "delay_us": 20, "ae4dma": {"late": 100, "late_ms": 3000}}
    {"queue_mb_per_s": 400, "latency_us": 5, "device_mb_per_s": 2000}

A rate of N injects the fault into one descriptor of N, 0 into none. Keys at the top are for every device; an object
under a device's name overrides them for that device. If a descriptor gets several faults, the first in RATES applies.

The choice of descriptors depends only on seed, device, queue, kind and the descriptor's number in its queue, counted
from the last change of the file. So a run can be repeated, however its threads are scheduled.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any


class Fault(Enum):
    """A fault of one descriptor; the values are the keys of the control file."""

    STALL = "stall"
    """Never completes, and blocks the descriptors after it until the device is reset."""
    LATE = "late"
    """Is copied and completes only after `late_ms`: a client that gave up may have freed the destination."""
    ERROR = "error"
    """Not copied; the device reports an error."""
    CORRUPT = "corrupt"
    """Not copied; the device reports success."""
    PARTIAL = "partial"
    """The first half is copied; the device reports success."""


RATES = tuple(fault.value for fault in Fault)


@dataclass(frozen=True)
class Plan:
    """The faults of one device, each rate one in so many descriptors, 0 is never; and its speed, see pace.py."""

    seed: int = 0
    stall: int = 0
    late: int = 0
    late_ms: int = 1000
    """Delay of a late descriptor (ms)."""
    error: int = 0
    corrupt: int = 0
    partial: int = 0
    reset_ms: int = 0
    """Time for which a channel says that its reset is not over, of a model that says so (ms)."""
    delay_us: int = 0
    """Delay of every descriptor before its copy (us)."""
    queue_mb_per_s: int = 0
    """Rate of each queue (10^6 bytes a second); 0: that of this machine."""
    latency_us: int = 0
    """Time of every descriptor in addition to its bytes at that rate (us)."""
    device_mb_per_s: int = 0
    """Rate that all queues together do not exceed (10^6 bytes a second); 0: no such limit."""

    def draw(self, device: str, queue: int, number: int) -> Fault | None:
        """The fault of a queue's descriptor `number`, the same each time."""
        hit = (fault for fault in Fault if self._hits(fault, f"{self.seed}/{device}/{queue}/{fault.value}/{number}"))
        return next(hit, None)

    def _hits(self, fault: Fault, name: str) -> bool:
        rate = int(getattr(self, fault.value))
        if not rate:
            return False
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % rate == 0


KEYS = tuple(field.name for field in fields(Plan))


def parse(text: str, devices: tuple[str, ...]) -> dict[str, Plan]:
    """The plan of each device. Raises ValueError with the reason if the control file is invalid."""
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    common = {key: value for key, value in document.items() if key not in devices}
    return {device: _plan({**common, **_object(document.get(device, {}), device)}) for device in devices}


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object")
    return value


def _plan(values: dict[str, Any]) -> Plan:
    for key, value in values.items():
        if key not in KEYS:
            raise ValueError(f"unknown key {key!r}; known: {', '.join(KEYS)}")
        # To Python a boolean is an int; "stall": true is no rate.
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"{key} is {value!r}, not a whole number from 0 up")
    return Plan(**values)


@dataclass(frozen=True)
class Control:
    """The current plans. `generation` counts the changes; `error` is the reason if the last change was rejected."""

    plans: dict[str, Plan]
    generation: int = 0
    error: str | None = None


class Faults:
    """Follows the control file. Without the file there are no faults."""

    def __init__(self, path: Path, devices: tuple[str, ...]) -> None:
        self._path = path
        self._devices = devices
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] | None = None
        self._control = Control(dict.fromkeys(devices, Plan()))

    def current(self) -> Control:
        """The current plans: a change of the file applies to the next descriptor that is fetched.

        An invalid file changes nothing; it may be half written, so it is read again each time.
        """
        with self._lock:
            state = _identity(self._path)
            if state != self._seen:
                self._read(state)
            return self._control

    def _read(self, state: tuple[int, ...] | None) -> None:
        old = self._control
        try:
            text = self._path.read_text() if state else "{}"
            self._control = Control(parse(text, self._devices), old.generation + 1)
            self._seen = state
        except (OSError, ValueError) as error:
            self._control = Control(old.plans, old.generation, str(error))


def _identity(path: Path) -> tuple[int, ...] | None:
    """Differs after each change: file systems have times in steps of some ms, so size and inode are included."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
