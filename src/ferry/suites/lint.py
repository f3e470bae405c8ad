# SPDX-License-Identifier: GPL-2.0
"""Linters, type checker and layers of the tool; layers, compiler warnings and self-tests of the guest programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from ferry import paths, proc
from ferry.errors import FerryError
from ferry.suites import layers
from ferry.suites.context import Context
from ferry.suites.result import Result, error, passed, result_of
from ferry.vm import guest_programs

NAME = "lint"
LINTERS = {"ruff check": ("ruff", "check"), "mypy --strict": ("mypy", "--strict")}
LINT_S = 300


def run(context: Context) -> list[Result]:
    """guest/Makefile has -Werror; its target `check` tests the checkers of the guest programs."""
    check = ("make", "-s", "-C", "guest", f"O={context.logs / 'guest'}", "check")
    linted = [_ran(context, name, (sys.executable, "-m", *words)) for name, words in LINTERS.items()]
    root = paths.repo_root()
    return [*linted, _layered("layers of src", layers.python(root / "src")),
            _layered("layers of guest", layers.guest(root / "guest")), _guest(), _ran(context, "make check", check)]


def _layered(name: str, wrong: Iterable[str]) -> Result:
    found = list(wrong)
    return result_of(not found, NAME, name, "; ".join(found))


def _ran(context: Context, name: str, command: tuple[str, ...]) -> Result:
    """Passed if the command ends with status 0; otherwise its last line is the reason."""
    log = context.logs / f"{name.replace(' ', '-')}.log"
    done = proc.run(command, cwd=paths.repo_root(), log=log, timeout=LINT_S)
    reason = done.tail[-1] if done.tail else f"it ended with status {done.status}"
    return result_of(done.status == 0, NAME, name, reason, done.seconds, log)


def _guest() -> Result:
    started = time.monotonic()
    try:
        guest_programs.programs()
    except FerryError as cause:
        return error(NAME, "guest", cause, time.monotonic() - started)
    return passed(NAME, "guest", time.monotonic() - started)
