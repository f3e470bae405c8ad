# SPDX-License-Identifier: GPL-2.0
"""What a suite is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ferry.boards import Board


@dataclass(frozen=True)
class Context:
    """`board` is where the guest suites run; `logs` a directory of this run's own; `quick` asks for less of each."""

    board: Board
    logs: Path
    quick: bool = False
