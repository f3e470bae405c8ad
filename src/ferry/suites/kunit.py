# SPDX-License-Identifier: GPL-2.0
"""The kernel's unit tests, on two debug kernels: User-Mode Linux at native speed with KASAN, and x86.

User-Mode Linux lacks buffer heads, memory failure and machine checks: tests that need them are skipped there. One test
needs a third kernel, with KASAN's hardware tags, and a machine with MTE.
"""

from __future__ import annotations

import time

from ferry import boards, progress
from ferry.boards import Board
from ferry.errors import FerryError
from ferry.kernel import build
from ferry.suites import guest_boot, ktap
from ferry.suites.context import Context
from ferry.suites.result import Outcome, Result, error, passed, result_of
from ferry.vm import boot

NAME = "kunit"
NUMA_NAME = "kunit-numa"
#: Benchmarks are marked slow and are not tests.
ASKED = ("kunit.autorun=1", "kunit.filter=speed>slow")
ALL = "kunit.filter_glob=ferry*"
#: The tests of runs once more without memory cgroups, where folios have none.
NO_MEMCG = ("kunit.filter_glob=ferry_runs*", "cgroup_disable=memory")
#: The test that both skip, and its suite of tests.
TAGS_NAME = "kasan-tags"
TAGS_CASE = "copy_resets_kasan_tags"
TAGS = ("kunit.filter_glob=ferry_copy*",)
SUITES_S = 900


def run(context: Context) -> list[Result]:
    """In User-Mode Linux."""
    return run_on(context, NAME, boards.load("uml"))


def run_numa(context: Context) -> list[Result]:
    """On x86-numa."""
    return [*run_on(context, NUMA_NAME, context.board),
            *run_on(context, NUMA_NAME, context.board, "no-memcg", NO_MEMCG)]


def run_tags(context: Context) -> list[Result]:
    """On a board with MTE. There TAGS_CASE must not be skipped."""
    results = run_on(context, TAGS_NAME, context.board, append=TAGS)
    ran = any(result.name.endswith(TAGS_CASE) and result.outcome is Outcome.PASSED for result in results)
    return [*results, result_of(ran, TAGS_NAME, "the tags were tested", f"{TAGS_CASE} did not pass")]


def run_on(context: Context, name: str, board: Board, prefix: str = "", append: tuple[str, ...] = (ALL,),
           ) -> list[Result]:
    """Boot once; the tests run before init and print their results on the console. `prefix` starts their names."""
    kernel = build.build(board, "ferry", debug=True)
    console = context.logs / "-".join(filter(None, (name, prefix))) / "console.log"
    started = time.monotonic()
    try:
        with progress.stage(f"{name}: {board.name}, debug kernel"):
            boot.boot(board, kernel, guest_boot.SCAN_FOR_LEAKS, timeout_s=board.boot_timeout_s + SUITES_S,
                      share=console.parent,
                      append=(*guest_boot.LOCKUP_TIMEOUTS, *guest_boot.CHECKS, *ASKED, *append))
        end = passed(name, f"{prefix} no splat".strip(), time.monotonic() - started, console)
    except FerryError as cause:
        end = error(name, "boot", cause, time.monotonic() - started)
    lines = console.read_text(errors="replace").splitlines() if console.is_file() else []
    return [*ktap.parse(name, prefix, lines, console), end]
