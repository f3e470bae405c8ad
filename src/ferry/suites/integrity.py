# SPDX-License-Identifier: GPL-2.0
"""Does every byte survive, whatever gets in the way? guest/integrity under each migrator, on the debug kernel."""

from __future__ import annotations

import shlex

from ferry import paths
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs

NAME = "integrity"
LOAD_S = 30
QUICK_LOAD_S = 10
#: On top of the time under load: touching the memory, winding up, the audits.
AROUND_S = 120
#: The first run of a boot makes the kernel allocate what it keeps (slabs, stacks, inodes of programs): that is no leak.
#: So a short run comes first, whose own memory check is this wide (KiB).
WARMUP_S = 10
WARMUP_LEAK_KIB = 64 * 1024
#: The file system that readdisk, writedisk and odirect need: the rest of the guest is on 9p and tmpfs.
DISK_MIB = 128


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    return guest_boot.run_jobs(context, kernel, jobs(context, kernel), NAME)


def jobs(context: Context, kernel: Kernel) -> list[Job]:
    """One job a migrator and kind of store; the quick choice is the one in which most can go wrong."""
    two = _mtcopy(context, kernel, 2, "never")
    if context.quick:
        return [two]
    plain = _job(context, "kernel", "kernel", guest_boot.select("kernel"))
    return [_warmup(context), plain, two, _mtcopy(context, kernel, 4, "always")]


def _warmup(context: Context) -> Job:
    command = _command(context, WARMUP_S, "--leak-kb", str(WARMUP_LEAK_KIB))
    return Job(NAME, "warm-up", command, WARMUP_S + AROUND_S)


def _mtcopy(context: Context, kernel: Kernel, threads: int, nontemporal: str) -> Job:
    setup = (guest_boot.load(kernel), *guest_boot.select("mtcopy", threads=threads, nontemporal=nontemporal))
    return _job(context, f"mtcopy{threads}-{nontemporal}", "mtcopy", setup)


def _job(context: Context, name: str, migrator: str, setup: tuple[str, ...]) -> Job:
    seconds = QUICK_LOAD_S if context.quick else LOAD_S
    return Job(NAME, name, _command(context, seconds), seconds + AROUND_S, setup, migrator)


def _command(context: Context, seconds: int, *more: str) -> str:
    """integrity for so long, on a disk of its own."""
    wrapper = shlex.quote(str(paths.repo_root() / "guest/scripts/with-ext4.sh"))
    words = ("sh", wrapper, str(DISK_MIB), program(context), "--ktap", "--seconds", str(seconds), "--file @", *more)
    return " ".join(words)


def program(context: Context) -> str:
    """integrity, ready for the shell of the board's guest."""
    return shlex.quote(str(guest_programs.programs(context.board.arch)["integrity"]))
