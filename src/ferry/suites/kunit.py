# SPDX-License-Identifier: GPL-2.0
"""The kernel's own unit tests, at native speed: User-Mode Linux with KASAN and the debug options."""

from __future__ import annotations

import time

from ferry import boards, boot, build, progress
from ferry.errors import FerryError
from ferry.suites import ktap
from ferry.suites.context import Context
from ferry.suites.result import Result, broken, passed

NAME = "kunit"
#: Benchmarks are marked slow and are not tests.
ASKED = ("kunit.autorun=1", "kunit.filter_glob=ferry*", "kunit.filter=speed>slow")
SUITES_S = 240


def run(context: Context) -> list[Result]:
    """Boot once; the tests run before init does."""
    board = boards.load("uml")
    kernel = build.build(board, "ferry", debug=True)
    share = context.logs / NAME
    console = share / "console.log"
    started = time.monotonic()
    try:
        with progress.stage("kunit: uml, debug kernel with KASAN"):
            boot.boot(board, kernel, "true", timeout_s=board.boot_timeout_s + SUITES_S, share=share, append=ASKED)
        end = passed(NAME, "no splat", time.monotonic() - started, console)
    except FerryError as error:
        end = broken(NAME, "boot", error, time.monotonic() - started)
    lines = console.read_text(errors="replace").splitlines() if console.is_file() else []
    return [*ktap.parse(NAME, "", lines, console), end]
