# SPDX-License-Identifier: GPL-2.0
"""Every byte survives under stress: guest/integrity with each migrator, on the debug kernel."""

from __future__ import annotations

import shlex

from ferry.kernel.build import Kernel
from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs

NAME = "integrity"
LOAD_S = 30
#: If the user does not name the suite.
SHORT_LOAD_S = 7
#: In addition to the time under load: to touch the memory, until the migrator has copied, to stop the stressors, and
#: for the final checks.
AROUND_S = 180
#: In the first run of a boot the kernel allocates memory that it keeps (slabs, stacks, inodes): that is no leak.
#: A short run comes first, therefore, and its own memory check allows this much (KiB).
WARMUP_S = 10
WARMUP_LEAK_KIB = 64 * 1024
#: The disk file system for readdisk, writedisk and odirect: the rest of the guest is on 9p and tmpfs.
DISK_MIB = 128


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    return guest_boot.run_jobs(context, kernel, jobs(context, kernel), NAME)


def jobs(context: Context, kernel: Kernel) -> list[Job]:
    """One job for each migrator and kind of store; with `quick` only the one that exercises the most code."""
    two = _mtcopy(context, kernel, 2, "never")
    if context.quick:
        return [two]
    warmup = _command(context, WARMUP_S, "--leak-kb", str(WARMUP_LEAK_KIB))
    return [
        Job(NAME, "warm-up", warmup, WARMUP_S + AROUND_S),
        _job(context, "kernel", "kernel", guest_boot.select("kernel")),
        two, _mtcopy(context, kernel, 4, "always"),
    ]


def _mtcopy(context: Context, kernel: Kernel, threads: int, nontemporal: str) -> Job:
    setup = (guest_boot.load(kernel), *guest_boot.select("mtcopy", threads=threads, nontemporal=nontemporal))
    return _job(context, f"mtcopy{threads}" + "-nontemporal" * (nontemporal == "always"), "mtcopy", setup)


def _job(context: Context, name: str, migrator: str, setup: tuple[str, ...]) -> Job:
    seconds = load_s(context)
    command = _command(context, seconds, "--copied-by", migrator)
    return Job(NAME, name, command, seconds + AROUND_S, setup, migrator)


def load_s(context: Context) -> int:
    """Seconds of load in one job."""
    return LOAD_S if context.thorough else SHORT_LOAD_S


def _command(context: Context, seconds: int, *more: str) -> str:
    """integrity for so long, on a disk of its own."""
    words = (program(context), "--ktap", "--seconds", str(seconds), "--file @", *more)
    return " ".join((guest_programs.script_line("with-ext4.sh", DISK_MIB), *words))


def program(context: Context) -> str:
    """The path of integrity, quoted for the guest's shell."""
    return shlex.quote(str(guest_programs.programs(context.board.arch)["integrity"]))
