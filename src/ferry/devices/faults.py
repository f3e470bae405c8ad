# SPDX-License-Identifier: GPL-2.0
"""What goes wrong, and with which descriptors: a control file that may change at any time.

    {"seed": 1, "error": 5, "delay_us": 20, "ae4dma": {"late": 100, "late_ms": 3000}}

A rate of N lets one descriptor in N go wrong, 0 none. What stands at the top holds for every device; an object under a
device's name replaces single keys for it. Where several faults meet in a descriptor, the first in RATES is taken.

Which descriptors they are depends on nothing but seed, device, queue, kind and the descriptor's number in its queue,
counted anew from each change of the file. So a run repeats, however its threads are scheduled.
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
    """What may become of one descriptor; the values are the keys of the control file."""

    STALL = "stall"
    """Never completes; neither do those behind it, until the device is reset."""
    LATE = "late"
    """Is copied, and completes, only after `late_ms`: to a client that gave up, a write to memory it may have freed."""
    ERROR = "error"
    """Not copied; the device reports an error."""
    CORRUPT = "corrupt"
    """Not copied; the device reports success."""
    PARTIAL = "partial"
    """The first half is copied; the device reports success."""


RATES = tuple(fault.value for fault in Fault)


@dataclass(frozen=True)
class Plan:
    """What goes wrong on one device: rates are one in so many descriptors, 0 is never."""

    seed: int = 0
    stall: int = 0
    late: int = 0
    late_ms: int = 1000
    """How late a late descriptor is."""
    error: int = 0
    corrupt: int = 0
    partial: int = 0
    delay_us: int = 0
    """What every descriptor takes, on top of its copying."""

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
    """The plan of each device. Raises ValueError that says what is wrong with the control file."""
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
        # A boolean is an int to Python, not to whoever writes "stall": true.
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"{key} is {value!r}, not a whole number from 0 up")
    return Plan(**values)


@dataclass(frozen=True)
class Control:
    """What is in force. `generation` counts the changes; `error` says why the file's last change is not in force."""

    plans: dict[str, Plan]
    generation: int = 0
    error: str | None = None


class Faults:
    """Follows the control file. A file that is gone means that nothing goes wrong."""

    def __init__(self, path: Path, devices: tuple[str, ...]) -> None:
        self._path = path
        self._devices = devices
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] | None = None
        self._control = Control(dict.fromkeys(devices, Plan()))

    def current(self) -> Control:
        """What is in force now: a change of the file holds from the next descriptor that is fetched.

        A file that makes no sense leaves in force what was; it may be half written, so it is read again each time.
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
    """Differs after each change: file systems stamp times in ticks of some ms, so size and inode count as well."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
