# SPDX-License-Identifier: GPL-2.0
"""The patch series: `ferry series check`."""

from __future__ import annotations

import sys

from ferry import paths, proc, progress
from ferry.suites.context import Context
from ferry.suites.result import Result, verdict

NAME = "series"
LIMIT_S = 900


def run(context: Context) -> list[Result]:
    """The verb itself, so that what the user runs is what is tested."""
    log = context.logs / "series.log"
    with progress.stage("series check"):
        done = proc.run([sys.executable, "-m", "ferry", "series", "check"], cwd=paths.repo_root(), log=log,
                        timeout=LIMIT_S)
    reason = next((line for line in reversed(done.tail) if line.strip()), f"it ended with status {done.status}")
    return [verdict(done.status == 0, NAME, "series check", reason, done.seconds, log)]
