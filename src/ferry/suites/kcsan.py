# SPDX-License-Identifier: GPL-2.0
"""Data races in our code: the loads of other suites on a kernel with KCSAN.

The kernel reports each race that it observes, most of them in code that is not ours. A report counts if a function of
the overlay is among the innermost frames of one of its two stacks. The selftests are mere loads here: their cases have
limits of time, which KCSAN exceeds. The other loads are those of a run that names no suite.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ferry.kernel.build import Kernel
from ferry.series import patches
from ferry.suites import guest_boot, integrity, migrc, runs, selftests
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Outcome, Result, failed, passed, skipped
from ferry.vm import splat

NAME = "kcsan"
BOARD = "x86-kcsan"
#: The report of a race on the console.
RACE = splat.Report("BUG: KCSAN: ", "=====")
#: An access in a helper that the compiler did not inline is that of the helper's caller.
INNERMOST = 2
#: KCSAN makes the guest so much slower.
SLOWER = 4
#: VM_BUG_ON_PGFLAGS() in these reads bit 0 of page->compound_head. The word is also lru.next, whose bit 0 is always
#: clear; a CPU that takes a neighbour off its list changes it, as isolate_lru_folio() does. KCSAN reports them against
#: the unpatched lru_add() as well.
ASSERTIONS = frozenset({"folio_flags", "const_folio_flags"})
_FRAME = re.compile(r"\s(\w+)(?:\.[\w.]+)?\+0x")
_STACK = re.compile(r"(?:read|write|race|assert no).* by (?:task|interrupt)")
_FUNCTION = re.compile(r"^(?!#|typedef|struct \w+ {)[a-z_].*?\b(\w+)\(", re.MULTILINE)


@dataclass(frozen=True)
class Race:
    """One report: its title, and for each stack its function names from the innermost one."""

    title: str
    stacks: tuple[tuple[str, ...], ...]

    def is_in(self, functions: frozenset[str]) -> bool:
        if any(stack and stack[0] in ASSERTIONS for stack in self.stacks):
            return False
        return any(name in functions for stack in self.stacks for name in stack[:INNERMOST])


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    started = time.monotonic()
    found = guest_boot.run_jobs(context, kernel, jobs(context, kernel), NAME, expected=(RACE,))
    seconds = time.monotonic() - started
    races = [result for share in guest_boot.shares(context, NAME) for result in _judged(share / "console.log", seconds)]
    return [*map(as_load, found), *races]


def jobs(context: Context, kernel: Kernel) -> list[Job]:
    """Every migrator's load, runs and migrc, each with more time. A thousand rounds of stale_tlb would take hours."""
    context = dataclasses.replace(context, thorough=False)
    each = [*selftests.jobs(context, kernel), *integrity.jobs(context, kernel), *runs.jobs(context, kernel),
            *migrc.jobs(context, "--except", migrc.SWITCH)]
    return [_slowed(job) for job in each]


def _slowed(job: Job) -> Job:
    return Job(NAME, job.name if job.suite == job.name else f"{job.suite}-{job.name}", job.command,
               job.seconds * SLOWER, job.setup, job.migrator, job.files)


def as_load(result: Result) -> Result:
    """A selftest's case that failed is skipped, because the suite `selftests` judges it; one that crashed is not."""
    job, _, case = result.name.partition(".")
    if result.outcome is not Outcome.FAILED or not job.startswith(selftests.NAME) or case in ("", "ktap"):
        return result
    return skipped(NAME, result.name, f"only a load here: {result.reason}", result.log)


def _judged(console: Path, seconds: float) -> list[Result]:
    """A failure for each race in our code; a pass if the detector worked and there is none."""
    text = console.read_text(errors="replace") if console.is_file() else ""
    races = parse(text.splitlines())
    ours = sorted({race.title for race in races if race.is_in(overlay_functions())})
    if "kcsan: enabled early" not in text:
        return [failed(NAME, "no race in our code", "the kernel has no KCSAN", log=console)]
    if ours:
        return [failed(NAME, title, "a data race in our code", log=console) for title in ours]
    return [passed(NAME, f"no race in our code ({len(races)} reports of others)", seconds, console)]


def parse(lines: Sequence[str]) -> list[Race]:
    """The races that the kernel reported on its console."""
    races = []
    title, stacks = "", list[list[str]]()
    for line in lines:
        if RACE.begins(line):
            title, stacks = line.partition(RACE.first)[2].strip(), []
        elif title and RACE.ends(line):
            races.append(Race(title, tuple(tuple(stack) for stack in stacks)))
            title = ""
        elif title and _STACK.search(line):
            stacks.append([])
        elif title and stacks and (frame := _FRAME.search(line)):
            stacks[-1].append(frame[1])
    return races


@cache
def overlay_functions() -> frozenset[str]:
    """The functions that the overlay's C files and headers define, as far as a line that begins one tells."""
    sources = [path for name, path in patches.overlay_files().items()
               if name.endswith((".c", ".h")) and not name.startswith("tools/")]
    return frozenset(name for path in sources for name in _FUNCTION.findall(path.read_text()))
