# SPDX-License-Identifier: GPL-2.0
"""The phases of `ferry bench breakdown` as `ferry profile` counts them: by QEMU's plugin, each instruction once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ferry.bench.movebench import Outcome
from ferry.bench.plan import Config, Plan
from ferry.errors import InfraError
from ferry.profile import calltree, recording
from ferry.profile import phases as of_functions
from ferry.profile.breakdown_method import Sample, Turn
from ferry.profile.recording import recorded, remove

__all__ = ["commands", "phases", "recorded", "remove", "samples"]

_MOVE = "migrate_pages"


def commands(kernel: str) -> list[list[str]]:
    """Any kernel has symbols."""
    return [recording.SYMBOLS_COMMAND]


def phases(config: Config) -> list[str]:
    """All, of any configuration."""
    return of_functions.names()


def samples(share: Path, sweep: Plan, configs: Sequence[Config], outcome: Outcome) -> dict[Turn, Sample]:
    """Raises InfraError if the guest marked another number of moves than the sweep has."""
    windows, blocks = recording.load(share)
    # The first window puts the memory where it starts; then each round of each configuration has two, there and back.
    turns = [(config.label, turn - sweep.warmup) for turn in range(sweep.warmup + sweep.samples) for config in configs]
    if len(windows) != 1 + 2 * len(turns):
        raise InfraError(f"the guest marked {len(windows)} moves, not {1 + 2 * len(turns)}", log=share)
    pages = {(sample.config, sample.round): sample.moved for sample in outcome.samples}
    found = {}
    for number, turn in enumerate(turns):
        if moved := pages.get(turn):
            tree = calltree.build(windows[1 + 2 * number:3 + 2 * number], blocks)
            by_phase = {phase: count / moved for phase, count in of_functions.split(tree).items()}
            found[turn] = Sample(by_phase, tree.total_of(_MOVE) / moved)
    return found
