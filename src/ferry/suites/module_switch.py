# SPDX-License-Identifier: GPL-2.0
"""The selector flipped and mtcopy loaded and unloaded while pages are moved: no splat, no wrong byte, no leak."""

from __future__ import annotations

import dataclasses
import shlex

from ferry.kernel.build import Kernel
from ferry.suites import guest_boot, integrity
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import tcg

NAME = "flips"
#: Enough to hold references while the module goes; with all antagonists, unloading waits its turn for CPUs.
ANTAGONISTS = "read,write,fork,odirect,uring"
THOROUGH_FLIPS = 1000
FLIPS = 300
QUICK_FLIPS = 10
#: The slowest cycle of load, select, deselect, unload that is still no failure.
FLIP_S = 2
AROUND_S = 120


def run(context: Context) -> list[Result]:
    board = dataclasses.replace(context.board, qemu_options=(*context.board.qemu_options, *tcg.ONE_THREAD), kvm=False)
    context = dataclasses.replace(context, board=board)
    kernel = guest_boot.debug_kernel(context)
    return guest_boot.run_jobs(context, kernel, jobs(context, kernel), NAME)


def jobs(context: Context, kernel: Kernel) -> list[Job]:
    """One job: integrity with its flipper, which loads and unloads the module itself."""
    flips = QUICK_FLIPS if context.quick else THOROUGH_FLIPS if context.thorough else FLIPS
    module = shlex.quote(str(kernel.modules[guest_boot.MODULE]))
    command = f"{integrity.program(context)} --ktap --seconds 1 --only {ANTAGONISTS} --flip --module {module}"
    warmup = f"{command} --flips {QUICK_FLIPS} --leak-kb {integrity.WARMUP_LEAK_KIB}"
    return [
        Job(NAME, "warm-up", warmup, int(QUICK_FLIPS * FLIP_S) + AROUND_S),
        Job(NAME, NAME, f"{command} --flips {flips}", int(flips * FLIP_S) + AROUND_S),
    ]
