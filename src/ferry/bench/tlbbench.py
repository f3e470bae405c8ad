# SPDX-License-Identifier: GPL-2.0
"""The guest's tlbbench: the script that runs its workloads in turn, and the result of each run.

A run makes one sample, so that every sample starts from the same state. It leaves in $FERRY_SHARE NAME.jsonl,
NAME.stderr and NAME.status, where NAME is WORK.CONFIG.ROUND.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferry.bench import guest_samples
from ferry.bench.tlb_plan import PROGRAM, Config, Plan, Work


@dataclass(frozen=True)
class Outcome:
    """One run. `status` is None when the guest died before it could write one, `sample` when it printed none."""

    work: str
    config: str
    boot: int
    turn: int
    status: int | None
    sample: dict[str, Any] | None
    stderr: str

    @property
    def reason(self) -> str:
        """Why samples are missing."""
        return guest_samples.reason(PROGRAM, self.status, self.stderr)


def run_name(work: Work, config: Config, turn: int) -> str:
    """Of a run's files."""
    return f"{work.key}.{config.label}.{turn}"


def command(program: Path, plan: Plan, work: Work, config: Config, turn: int) -> list[str]:
    """One run."""
    return [str(program), *work.arguments, "--round", str(turn), *config.arguments(plan.max_bytes)]


def script(program: Path, plan: Plan, works: Iterable[Work], configs: Sequence[Config]) -> str:
    """The shell commands of one boot: every round takes each work in turn, with each configuration in turn.

    Each work is run once before, without a sample, so that the host has allocated the guest's memory. Odd rounds take
    the configurations in reverse order, so that none always follows the same other one.
    """
    lines = ["set -u"]
    for work in works:
        warm_up = shlex.join(command(program, plan, work, configs[-1], 0))
        lines.append(f"{warm_up} >/dev/null 2>&1")
    for turn, work, config in in_order(plan, works, configs):
        out = f'"$FERRY_SHARE"/{run_name(work, config, turn)}'
        words = shlex.join(command(program, plan, work, config, turn))
        lines.append(f"{{ {words} 2>{out}.stderr; echo $? >{out}.status; }} | tee {out}.jsonl")
    return "\n".join([*lines, "exit 0", ""])


def in_order(plan: Plan, works: Iterable[Work], configs: Sequence[Config]) -> Iterator[tuple[int, Work, Config]]:
    """The runs of one boot."""
    for turn, work in itertools.product(range(plan.samples_per_boot), works):
        yield from ((turn, work, config) for config in (configs[::-1] if turn % 2 else configs))


def outcomes(share: Path, plan: Plan, works: Iterable[Work], configs: Sequence[Config], boot: int) -> list[Outcome]:
    """The outcomes of one boot, read from its share."""
    return [outcome(share, work, config, boot, turn)
            for work, turn, config in itertools.product(works, range(plan.samples_per_boot), configs)]


def outcome(share: Path, work: Work, config: Config, boot: int, turn: int) -> Outcome:
    """The outcome of one run."""
    name = run_name(work, config, turn)
    return Outcome(work.key, config.label, boot, turn, guest_samples.status_of(share / f"{name}.status"),
                   sample(guest_samples.text_of(share / f"{name}.jsonl")),
                   guest_samples.text_of(share / f"{name}.stderr"))


def sample(text: str) -> dict[str, Any] | None:
    """The sample among a run's lines."""
    return next((event for event in guest_samples.events(text) if event.get("event") == "sample"), None)
