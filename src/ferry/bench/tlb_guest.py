# SPDX-License-Identifier: GPL-2.0
"""The guest's tlbbench and xslookup: the script that runs them in turn, and what they leave behind.

Each run leaves in $FERRY_SHARE NAME.jsonl, NAME.stderr and NAME.status, where NAME is WORK.CONFIG.ROUND. tlbbench makes
one sample a run, so that every sample starts from the same state; xslookup makes all of them from one table.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferry.bench.tlb_plan import Config, Plan, Work

#: Their exit status when the guest cannot do this at all.
MISSING = 4


@dataclass(frozen=True)
class Outcome:
    """One run. `status` is None when the guest died before it could write one; `events` are the samples' lines."""

    work: str
    config: str
    boot: int
    rounds: tuple[int, ...]
    status: int | None
    events: tuple[dict[str, Any], ...]
    stderr: str

    @property
    def reason(self) -> str:
        """Why samples are missing."""
        said = self.stderr.strip().splitlines()
        how = "the guest died" if self.status is None else f"it exited with {self.status}"
        return f"{how}: {said[-1]}" if said else how


def runs_of(plan: Plan, work: Work) -> list[tuple[int, ...]]:
    """The rounds that each run of a boot makes."""
    rounds = tuple(range(plan.samples_per_boot))
    return [rounds] if work.program == "xslookup" else [(turn,) for turn in rounds]


def run_name(work: Work, config: Config, rounds: Sequence[int]) -> str:
    """Of a run's files."""
    return f"{work.key}.{config.label}.{rounds[0]}"


def command(program: Path, plan: Plan, work: Work, config: Config, rounds: Sequence[int]) -> list[str]:
    """One run."""
    count = ["--samples", str(len(rounds))] if work.program == "xslookup" else ["--round", str(rounds[0])]
    return [str(program), *work.arguments, *count, *config.arguments(plan.max_bytes)]


def script(programs: dict[str, Path], plan: Plan, works: Iterable[Work], configs: Sequence[Config]) -> str:
    """The shell commands of one boot: every round takes each work in turn, with each configuration in turn."""
    lines = ["set -u"]
    ordered = sorted(((turn, work) for work in works for turn in range(len(runs_of(plan, work)))),
                     key=lambda pair: pair[0])
    for turn, work in ordered:
        rounds = runs_of(plan, work)[turn]
        for config in configs:
            out = f'"$FERRY_SHARE"/{run_name(work, config, rounds)}'
            words = shlex.join(command(programs[work.program], plan, work, config, rounds))
            lines.append(f"{{ {words} 2>{out}.stderr; echo $? >{out}.status; }} | tee {out}.jsonl")
    return "\n".join([*lines, "exit 0", ""])


def outcomes(share: Path, plan: Plan, works: Iterable[Work], configs: Sequence[Config], boot: int) -> list[Outcome]:
    """What one boot left in its share."""
    return [outcome(share, work, config, boot, rounds)
            for work in works for rounds in runs_of(plan, work) for config in configs]


def outcome(share: Path, work: Work, config: Config, boot: int, rounds: Sequence[int]) -> Outcome:
    """What one run left."""
    name = run_name(work, config, rounds)
    status = _text(share / f"{name}.status").strip()
    return Outcome(work.key, config.label, boot, tuple(rounds), int(status) if status else None,
                   tuple(samples(_text(share / f"{name}.jsonl"))), _text(share / f"{name}.stderr"))


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def samples(text: str) -> list[dict[str, Any]]:
    """The samples' lines, warm-ups left out; a line cut short by a dying guest is no sample."""
    found = []
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "sample" and not event.get("warmup"):
            found.append(event)
    return found
