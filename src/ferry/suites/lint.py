# SPDX-License-Identifier: GPL-2.0
"""What the compilers and linters say of the tool and of the programs that run inside."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from ferry import paths, proc
from ferry.errors import FerryError
from ferry.suites import layers
from ferry.suites.context import Context
from ferry.suites.result import Result, broken, passed, verdict
from ferry.vm import guest_programs

NAME = "lint"
LINTERS = {"ruff check": ("ruff", "check"), "mypy --strict": ("mypy", "--strict")}
LINT_S = 300


def run(context: Context) -> list[Result]:
    """Each linter in turn, then guest/: its Makefile takes warnings for errors, and checks that its checks see."""
    check = ("make", "-s", "-C", "guest", f"O={context.logs / 'guest'}", "check")
    linted = [_ran(context, name, (sys.executable, "-m", *words)) for name, words in LINTERS.items()]
    root = paths.repo_root()
    return [*linted, _layered("layers of src", layers.python(root / "src")),
            _layered("layers of guest", layers.guest(root / "guest")), _guest(), _ran(context, "make check", check)]


def _layered(name: str, wrong: Iterable[str]) -> Result:
    found = list(wrong)
    return verdict(not found, NAME, name, "; ".join(found))


def _ran(context: Context, name: str, command: tuple[str, ...]) -> Result:
    """Passed when the command ends with status 0; else its last line is the reason."""
    log = context.logs / f"{name.replace(' ', '-')}.log"
    done = proc.run(command, cwd=paths.repo_root(), log=log, timeout=LINT_S)
    reason = done.tail[-1] if done.tail else f"it ended with status {done.status}"
    return verdict(done.status == 0, NAME, name, reason, done.seconds, log)


def _guest() -> Result:
    started = time.monotonic()
    try:
        guest_programs.programs()
    except FerryError as error:
        return broken(NAME, "guest", error, time.monotonic() - started)
    return passed(NAME, "guest", time.monotonic() - started)
