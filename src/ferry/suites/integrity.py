# SPDX-License-Identifier: GPL-2.0
"""Does every byte survive, whatever gets in the way? guest/integrity under each migrator, on the debug kernel."""

from __future__ import annotations

import shlex

from ferry import guest, paths
from ferry.build import Kernel
from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result

NAME = "integrity"
LOAD_S = 60
QUICK_LOAD_S = 10
#: On top of the time under load: touching the memory, winding up, the audits.
AROUND_S = 120
#: The file system that readdisk, writedisk and odirect need: the rest of the guest is on 9p and tmpfs.
DISK_MIB = 128


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    return guest_boot.run_jobs(context, kernel, jobs(context, kernel), NAME)


def jobs(context: Context, kernel: Kernel) -> list[Job]:
    """One job a migrator and kind of store; the quick choice is the one in which most can go wrong."""
    two = _mtcopy(context, kernel, 2, "cached")
    if context.quick:
        return [two]
    plain = _job(context, "kernel", "kernel", guest_boot.select("kernel"))
    return [plain, two, _mtcopy(context, kernel, 4, "streaming")]


def _mtcopy(context: Context, kernel: Kernel, threads: int, stores: str) -> Job:
    setup = (guest_boot.load(kernel), *guest_boot.select("mtcopy", threads=threads, stores=stores))
    return _job(context, f"mtcopy{threads}-{stores}", "mtcopy", setup)


def _job(context: Context, name: str, migrator: str, setup: tuple[str, ...]) -> Job:
    seconds = QUICK_LOAD_S if context.quick else LOAD_S
    wrapper = shlex.quote(str(paths.repo_root() / "guest/with-ext4.sh"))
    command = f"sh {wrapper} {DISK_MIB} {program()} --ktap --seconds {seconds} --file @"
    return Job(NAME, name, command, seconds + AROUND_S, setup, migrator)


def program() -> str:
    """integrity, ready for the shell."""
    return shlex.quote(str(guest.programs()["integrity"]))
