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
#: Other boards on which the suite runs if the user names them.
ALSO = ("zcu102", "x86-kasan")
#: Pages to move in runs if the user names the suite, and a limit of that (s) on an emulated kernel with KASAN. The
#: movers get most of the CPUs if the stressors rest longer.
PAGES = 1_000_000
REST_MS = 1000
PAGES_S = 7200
AROUND_S = 600


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    return guest_boot.run_jobs(context, kernel, jobs(context, kernel), NAME)


def jobs(context: Context, kernel: Kernel) -> list[Job]:
    """guest/integrity under each load, on ext4 as in suites.integrity."""
    mtcopy = (guest_boot.load(kernel), *guest_boot.select("mtcopy", threads=2, nontemporal="never"))
    each = [_job(context, "off", 0), _job(context, "mtcopy", 0, mtcopy, "mtcopy"),
            _job(context, "migrc", 1, guest_boot.select("off"))]
    return [*each, _million(context)] if context.thorough else each


def _job(context: Context, name: str, migrc: int, setup: tuple[str, ...] = (), migrator: str = "") -> Job:
    return Job(NAME, name, _command(context, migrc, ""), integrity.load_s(context) + AROUND_S, setup, migrator)


def _million(context: Context) -> Job:
    more = f" --movers 2 --threads 1 --rest-ms {REST_MS} --in-runs {PAGES}"
    return Job(NAME, "million", _command(context, 0, more), PAGES_S, guest_boot.select("off"))


def _command(context: Context, migrc: int, more: str) -> str:
    script = guest_programs.script_line("runs.sh", migrc)
    disk = guest_programs.script_line("with-disk.sh", integrity.DISK_MIB)
    return (f"{script} {disk} {integrity.program(context)} --seconds {integrity.load_s(context)}"
            f" --leak-kb {integrity.WARMUP_LEAK_KIB} --file @{more}")
