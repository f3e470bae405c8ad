# SPDX-License-Identifier: GPL-2.0
"""What a suite is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ferry.boards import Board


@dataclass(frozen=True)
class Context:
    """`board` is where the guest suites run; `logs` a directory of this run's own; `quick` asks for less of each.

    `thorough`: the suite was asked for by name, so what takes its time in proportion to a count may take it.
    """

    board: Board
    logs: Path
    quick: bool = False
    thorough: bool = False
