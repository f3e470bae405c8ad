# SPDX-License-Identifier: GPL-2.0
"""Base pages that migrate in runs: every byte survives under stress, with and without a migrator and migrc."""

from __future__ import annotations

from ferry.kernel.build import Kernel
from ferry.suites import guest_boot, integrity
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs

NAME = "runs"
#: Another board on which the suite runs if the user names it.
ALSO = ("zcu102",)
THOROUGH_LOAD_S = 120
LOAD_S = 30
AROUND_S = 120


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    return guest_boot.run_jobs(context, kernel, jobs(context, kernel), NAME)


def jobs(context: Context, kernel: Kernel) -> list[Job]:
    """guest/integrity under each load, on ext4 as in suites.integrity."""
    mtcopy = (guest_boot.load(kernel), *guest_boot.select("mtcopy", threads=2, nontemporal="never"))
    return [_job(context, "off", 0), _job(context, "mtcopy", 0, mtcopy, "mtcopy"),
            _job(context, "migrc", 1, guest_boot.select("off"))]


def _job(context: Context, name: str, migrc: int, setup: tuple[str, ...] = (), migrator: str = "") -> Job:
    seconds = THOROUGH_LOAD_S if context.thorough else LOAD_S
    script = guest_programs.script_line("runs.sh", migrc)
    disk = guest_programs.script_line("with-ext4.sh", integrity.DISK_MIB)
    command = f"{script} {disk} {integrity.program(context)} --seconds {seconds}"
    command += f" --leak-kb {integrity.WARMUP_LEAK_KIB} --file @"
    return Job(NAME, name, command, seconds + AROUND_S, setup, migrator)
