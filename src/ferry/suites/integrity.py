# SPDX-License-Identifier: GPL-2.0
"""Every byte survives under stress: guest/integrity with each migrator, on the debug kernel."""

from __future__ import annotations

import platform
import shlex
from dataclasses import replace

from ferry.bench.plan import ends_words
from ferry.boards import LOCAL
from ferry.debian import packages
from ferry.errors import InfraError
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result, error, skipped
from ferry.vm import guest_programs

NAME = "integrity"
LOAD_S = 30
#: If the user does not name the suite.
SHORT_LOAD_S = 7
#: In addition to the time under load: to touch the memory, until the migrator has copied, to stop the stressors, and
#: for the final checks.
AROUND_S = 900
#: In the first run of a boot the kernel allocates memory that it keeps (slabs, stacks, inodes): that is no leak.
#: A short run comes first, therefore, and its own memory check allows this much (KiB).
WARMUP_S = 10
WARMUP_LEAK_KIB = 64 * 1024
#: The disk file system for readdisk, writedisk and odirect: the rest of the guest is on 9p and tmpfs. Btrfs needs 109.
DISK_MIB = 128
#: Of a machine in use: stressors that touch only memory of their own, so no swap, KSM, NUMA balancing or disk. Other
#: programs allocate memory at the same time (KiB).
LIVE = ("--only", "read,write,fork,mlock,mprotect,split,vmsplice,uring,uffd", "--areas", "4k,64k,2m,shmem")
LIVE_LEAK_KIB = 1024 * 1024


def run(context: Context) -> list[Result]:
    if context.board.runner == LOCAL and len(context.board.ends) < 2:
        return [skipped(NAME, NAME, "memory is to move between two nodes, and this machine has one")]
    kernel = guest_boot.debug_kernel(context)
    if context.board.runner == LOCAL:
        return guest_boot.run_jobs(context, kernel, live_jobs(context, kernel), NAME)
    chosen, missing = jobs(context, kernel), []
    try:
        chosen += btrfs_jobs(context)
    except InfraError as cause:
        missing.append(error(NAME, "btrfs", cause))
    return [*guest_boot.run_jobs(context, kernel, chosen, NAME), *missing]


def jobs(context: Context, kernel: Kernel) -> list[Job]:
    """One job for each migrator and kind of store; with `quick` only the one that exercises the most code.

    Unless the user names the suite, that one is left to the suites `arm64`, and `runs`, where base pages move in runs.
    """
    two = _mtcopy(context, kernel, 2, "never")
    if context.quick:
        return [two]
    warmup = _command(context, WARMUP_S, "--leak-kb", str(WARMUP_LEAK_KIB))
    return [
        Job(NAME, "warm-up", warmup, WARMUP_S + AROUND_S),
        _job(context, "kernel", "kernel", guest_boot.select("kernel")),
        *([two] if context.thorough else []), _mtcopy(context, kernel, 4, "always"),
    ]


def live_jobs(context: Context, kernel: Kernel) -> list[Job]:
    """One job for each migrator of the running kernel that copies by CPUs, without what disturbs other programs."""
    setups = {"kernel": guest_boot.select("kernel")}
    if guest_boot.MODULE in {*kernel.modules, *kernel.present}:
        load = [guest_boot.load(kernel)] if guest_boot.MODULE in kernel.modules else []
        setups["mtcopy"] = (*load, *guest_boot.select("mtcopy", threads=2))
    seconds = load_s(context)
    command = " ".join((program(context), "--ktap", "--seconds", str(seconds), "--leak-kb", str(LIVE_LEAK_KIB),
                        *ends_words(context.board.ends), *LIVE))
    return [Job(NAME, migrator, f"{command} --copied-by {migrator}", seconds + AROUND_S, setup, migrator)
            for migrator, setup in setups.items()]


def _mtcopy(context: Context, kernel: Kernel, threads: int, nontemporal: str) -> Job:
    setup = (guest_boot.load(kernel), *guest_boot.select("mtcopy", threads=threads, nontemporal=nontemporal))
    return _job(context, f"mtcopy{threads}" + "-nontemporal" * (nontemporal == "always"), "mtcopy", setup)


def _job(context: Context, name: str, migrator: str, setup: tuple[str, ...]) -> Job:
    seconds = load_s(context)
    command = _command(context, seconds, "--copied-by", migrator)
    return Job(NAME, name, command, seconds + AROUND_S, setup, migrator)


def btrfs_jobs(context: Context) -> list[Job]:
    """Files on Btrfs: whether the migrator copies their folios; and if the user names the suite, integrity there.

    Raises InfraError if its mkfs cannot be fetched.
    """
    if context.quick or context.board.arch != platform.machine():
        return []
    mkfs = packages.run_unpacked(packages.with_libraries("btrfs-progs"), "mkfs.btrfs")
    movebench = guest_programs.programs(context.board.arch)["movebench"]
    copy = guest_programs.script_words("early-copy.sh", movebench, "@/pages")
    short = Job(NAME, "btrfs-early-copy", guest_programs.script_line("with-disk.sh", DISK_MIB, *copy), AROUND_S,
                guest_boot.select("kernel"))
    long = _job(context, "btrfs-kernel", "kernel", guest_boot.select("kernel"))
    return [replace(job, command=f"MKFS={shlex.quote(shlex.join(mkfs))} {job.command}")
            for job in ([short, long] if context.thorough else [short])]


def load_s(context: Context) -> int:
    """Seconds of load in one job."""
    return LOAD_S if context.thorough else SHORT_LOAD_S


def _command(context: Context, seconds: int, *more: str) -> str:
    """integrity for so long, on a disk of its own."""
    words = (program(context), "--ktap", "--seconds", str(seconds), "--file @", *more)
    return " ".join((guest_programs.script_line("with-disk.sh", DISK_MIB), *words))


def program(context: Context) -> str:
    """The path of integrity, quoted for the guest's shell."""
    return shlex.quote(str(guest_programs.programs(context.board.arch)["integrity"]))
