# SPDX-License-Identifier: GPL-2.0
"""The arguments of a suite."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ferry.boards import Board


@dataclass(frozen=True)
class Context:
    """`board` is where the guest suites run; `logs` a directory of this run's own; `quick` asks for a short run.

    `thorough`: the user named the suite, so it may repeat each test many times.
    """

    board: Board
    logs: Path
    quick: bool = False
    thorough: bool = False
