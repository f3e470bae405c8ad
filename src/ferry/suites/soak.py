# SPDX-License-Identifier: GPL-2.0
"""Memory moves for an hour with each migrator in turn, while everything happens to it: guest/scripts/soak.sh."""

from __future__ import annotations

from ferry.kernel.build import Kernel
from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs

NAME = "soak"
ALSO = ("zcu102",)
SECONDS = 3600
QUICK_SECONDS = 180
#: The least that must move. On another board the emulated CPUs are several times slower.
GIB_PER_HOUR = 100
FOREIGN_GIB_PER_HOUR = 1
#: The last round begins before the time is over, and ends with integrity's checks; then comes the search for leaks.
AROUND_S = 1800


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    return guest_boot.run_jobs(context, kernel, [job(context, kernel, QUICK_SECONDS if context.quick else SECONDS)],
                               NAME)


def job(context: Context, kernel: Kernel, seconds: int) -> Job:
    """The soak for so long. Whatever a board lacks, the script does without: DMA channels, the module memmap_watch."""
    board = context.board
    foreign = board.runner == "initramfs"
    modules = ["ferry_mtcopy", *(["ferry_dcbm"] if board.channels else [])]
    migrators = ["off", "kernel", *(name.removeprefix("ferry_") for name in modules), *["auto"] * bool(board.channels)]
    command = guest_programs.script_line(
        "soak.sh", seconds, FOREIGN_GIB_PER_HOUR if foreign else GIB_PER_HOUR,
        guest_programs.programs(board.arch)["integrity"], kernel.modules.get("memmap_watch", "-"), *migrators)
    setup = [guest_boot.load(kernel, module) for module in modules]
    if board.added_mib:
        setup.append(guest_programs.script_line("add-memory.sh"))
    return Job(NAME, NAME, command, seconds + AROUND_S, tuple(setup))
