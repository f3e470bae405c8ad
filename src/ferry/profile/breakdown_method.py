# SPDX-License-Identifier: GPL-2.0
"""What `ferry bench breakdown` asks of a way to tell the phases of a move apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ferry.bench.movebench import Outcome
from ferry.bench.plan import Config, Plan
from ferry.boards import Board

#: The configuration's label and the round.
Turn = tuple[str, int]


@dataclass(frozen=True)
class Sample:
    """One sample, both ways, in instructions or ns a page: each phase, and migrate_pages() if its part is known."""

    phases: Mapping[str, float]
    migrate_pages: float | None = None


class Method(Protocol):
    """A module of functions: breakdown_plugin or breakdown_events."""

    def recorded(self, board: Board, share: Path) -> Board:
        """The board as it must be to record into `share`."""

    def commands(self, kernel: str) -> list[list[str]]:
        """The guest's commands between loading modules and moving memory."""

    def phases(self, config: Config) -> list[str]:
        """The phases that it can tell apart, in order; none if it knows only the total."""

    def samples(self, share: Path, sweep: Plan, configs: Sequence[Config], outcome: Outcome) -> dict[Turn, Sample]:
        """The samples of a boot of the sweep's one case, in which movebench ended with 0."""

    def remove(self, share: Path) -> None:
        """Delete what is large."""
