# SPDX-License-Identifier: GPL-2.0
"""Counters of a queue, for a test to compare with those of the driver and of its client."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SCHEMA = 1


@dataclass
class Counters:
    """The counters of one queue since the boot: a reset of the device does not clear them.

    descriptors = completed + errors + bad_addresses + stalls + abandoned + the one in flight, if any.
    """

    descriptors: int = 0
    """Fetched."""
    completed: int = 0
    """Reported as success, corrupt, partial and late ones included."""
    bytes: int = 0
    """Bytes copied, of whatever result."""
    overdue: int = 0
    """Took longer than modelled, if a speed is given: this machine is slower than the engine."""
    interrupts: int = 0
    errors: int = 0
    """Reported as errors because of an injected fault."""
    bad_addresses: int = 0
    """Reported as errors because of an invalid address."""
    corrupt: int = 0
    partial: int = 0
    late: int = 0
    """Completed late."""
    stalls: int = 0
    abandoned: int = 0
    """In flight at a reset of the device, such as late ones: never reported, and not in the counters above."""


def write(path: Path, document: dict[str, Any]) -> None:
    """Replace the document in one step: a reader always gets a complete one."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps({"schema": SCHEMA, **document}, indent=1) + "\n")
    os.replace(part, path)


def as_row(queue: int, counters: Counters) -> dict[str, int]:
    """One queue's counters under its number."""
    return {"queue": queue, **asdict(counters)}
