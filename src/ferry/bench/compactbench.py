# SPDX-License-Identifier: GPL-2.0
"""The guest's compactbench: the script that runs it for each work of a boot, and its samples.

For each work the script leaves in $FERRY_SHARE: KEY.jsonl, KEY.stderr and KEY.status, where KEY is the work's.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry.bench import guest_samples
from ferry.bench.compaction_plan import PROGRAM, WARMUP, Group, Plan, Work
from ferry.results.document import Event


@dataclass(frozen=True)
class Outcome:
    """The result of one compactbench. `status` is None if the guest died before it could write one."""

    status: int | None
    samples: list[Event]
    stderr: str

    @property
    def reason(self) -> str:
        """Why there are fewer samples than asked for."""
        return guest_samples.reason(PROGRAM, self.status, self.stderr)


def script(program: Path, plan: Plan, group: Group, first: Sequence[Sequence[str]]) -> str:
    """The shell commands of one boot; if one of those that come first, to load modules, fails, it ends with 3."""
    lines = ["set -u", *(f"{shlex.join(command)} || exit 3" for command in first)]
    for work in group.works:
        out = f'"$FERRY_SHARE"/{work.key}'
        command = shlex.join([str(program), *arguments(plan, group, work)])
        lines.append(f"{{ {command} 2>{out}.stderr; echo $? >{out}.status; }} | tee {out}.jsonl")
    return "\n".join([*lines, "exit 0", ""])


def arguments(plan: Plan, group: Group, work: Work) -> list[str]:
    """compactbench's arguments for one work."""
    words = ["--workload", work.workload, "--order", str(work.order), "--blocks", str(work.blocks),
             "--samples", str(plan.samples_per_boot), "--warmup", str(WARMUP)]
    return words + [word for config in group.configs for word in ("--config", config.argument)]


def outcome(share: Path, work: Work) -> Outcome:
    """The outcome of one work, read from `share`."""
    events = guest_samples.events(guest_samples.text_of(share / f"{work.key}.jsonl"))
    return Outcome(guest_samples.status_of(share / f"{work.key}.status"),
                   [event for event in events if event.get("event") == "sample" and not event["warmup"]],
                   guest_samples.text_of(share / f"{work.key}.stderr"))
