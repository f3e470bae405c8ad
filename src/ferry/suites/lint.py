# SPDX-License-Identifier: GPL-2.0
"""What the compilers and linters say of the tool and of the programs that run inside."""

from __future__ import annotations

import sys
import time

from ferry import guest, paths, proc
from ferry.errors import FerryError
from ferry.suites.context import Context
from ferry.suites.result import Result, broken, passed, verdict

NAME = "lint"
LINTERS = {"ruff": ("ruff", "check"), "mypy": ("mypy", "--strict")}
LINT_S = 300


def run(context: Context) -> list[Result]:
    """Each linter in turn, then guest/, whose Makefile takes warnings for errors."""
    return [*(_lint(context, name, words) for name, words in LINTERS.items()), _guest()]


def _lint(context: Context, name: str, words: tuple[str, ...]) -> Result:
    log = context.logs / f"{name}.log"
    done = proc.run([sys.executable, "-m", *words], cwd=paths.repo_root(), log=log, timeout=LINT_S)
    reason = done.tail[-1] if done.tail else f"it ended with status {done.status}"
    return verdict(done.status == 0, NAME, " ".join(words), reason, done.seconds, log)


def _guest() -> Result:
    started = time.monotonic()
    try:
        guest.programs()
    except FerryError as error:
        return broken(NAME, "guest", error, time.monotonic() - started)
    return passed(NAME, "guest", time.monotonic() - started)
