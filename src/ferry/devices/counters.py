# SPDX-License-Identifier: GPL-2.0
"""What a queue did, in numbers, for a test to compare with what the driver and its client believe."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SCHEMA = 1


@dataclass
class Counters:
    """Of one queue, since the boot: resets do not reset them.

    descriptors = completed + errors + bad_addresses + stalls + abandoned + the one under way, if any.
    """

    descriptors: int = 0
    """Fetched."""
    completed: int = 0
    """Reported as success, corrupt, partial and late ones included."""
    bytes: int = 0
    """Really copied."""
    interrupts: int = 0
    errors: int = 0
    """Reported as errors because a fault asked for it."""
    bad_addresses: int = 0
    """Reported as errors because of where they pointed."""
    corrupt: int = 0
    partial: int = 0
    late: int = 0
    """Completed late."""
    stalls: int = 0
    abandoned: int = 0
    """Under way, as late ones are for long, when the device was reset: never copied, never reported."""


def write(path: Path, document: dict[str, Any]) -> None:
    """Put the document there whole: whoever reads it at any time reads all of one."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps({"schema": SCHEMA, **document}, indent=1) + "\n")
    os.replace(part, path)


def as_row(queue: int, counters: Counters) -> dict[str, int]:
    """One queue's counters under its number."""
    return {"queue": queue, **asdict(counters)}
