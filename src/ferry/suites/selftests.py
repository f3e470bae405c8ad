# SPDX-License-Identifier: GPL-2.0
"""The kselftests of the series, on the debug kernel."""

from __future__ import annotations

import shlex
from pathlib import Path

from ferry.boards import LOCAL
from ferry.kernel import series_selftests
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot, integrity
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs

NAME = "selftests"
#: One program, on an emulated debug kernel: ferry_reasons takes 90 s.
TEST_S = 240
DISK_MIB = 16
TUTORIAL, TUTORIAL_S = "ferry_plain", 5


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    if context.board.runner == LOCAL:
        return guest_boot.run_jobs(context, kernel, live_jobs(context, kernel), NAME)
    return guest_boot.run_jobs(context, kernel, [*jobs(context, kernel), _tutorial(context, kernel)], NAME)


def jobs(context: Context, kernel: Kernel) -> list[Job]:
    """One job a program, with all migrators loaded so that their settings are tested, too."""
    loads = tuple(guest_boot.load(kernel, module) for module in guest_boot.MODULES)
    return [
        Job(NAME, program.name, _on_disk(program), TEST_S, setup=loads, files=(program,))
        for program in series_selftests.programs(context.logs, context.board.arch)
    ]


def live_jobs(context: Context, kernel: Kernel) -> list[Job]:
    """The jobs that a machine in use survives, with those modules that its kernel has."""
    loads = tuple(guest_boot.load(kernel, module) for module in guest_boot.MODULES if module in kernel.modules)
    return [Job(NAME, program.name, shlex.quote(str(program)), TEST_S, setup=loads)
            for program in series_selftests.programs(context.logs, context.board.arch, series_selftests.LIVE)]


def _tutorial(context: Context, kernel: Kernel) -> Job:
    """The migrator of docs/tutorials/write-a-migrator.md, while integrity checks each byte."""
    program = guest_programs.programs(context.board.arch)["integrity"]
    command = guest_programs.script_line("tutorial.sh", kernel.modules[TUTORIAL], program, "--seconds", TUTORIAL_S,
                                         "--only", "read,write", "--leak-kb", integrity.WARMUP_LEAK_KIB)
    return Job(NAME, "tutorial", command, TUTORIAL_S + integrity.AROUND_S)


def _on_disk(program: Path) -> str:
    """The command that runs a program in a directory on ext4: tests with files leave out other file systems."""
    enter = ("sh", "-c", shlex.quote('cd "$0" && exec "$1"'), "@", shlex.quote(str(program)))
    return " ".join((guest_programs.script_line("with-disk.sh", DISK_MIB), *enter))
