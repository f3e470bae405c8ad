# SPDX-License-Identifier: GPL-2.0
"""Migrators switched and mtcopy loaded and unloaded while pages are moved: no splat, no wrong byte, no leak."""

from __future__ import annotations

import dataclasses
import shlex

from ferry.kernel.build import Kernel
from ferry.suites import guest_boot, integrity
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import tcg

NAME = "module_switch"
#: Enough to hold references while the module goes; with all stressors, unloading waits its turn for CPUs.
STRESSORS = "read,write,fork,odirect,uring"
THOROUGH_SWITCHES = 1000
SWITCHES = 300
QUICK_SWITCHES = 10
#: The slowest cycle of load, select, deselect, unload that is still no failure.
SWITCH_S = 2
AROUND_S = 120


def run(context: Context) -> list[Result]:
    board = dataclasses.replace(context.board, qemu_options=(*context.board.qemu_options, *tcg.ONE_THREAD), kvm=False)
    context = dataclasses.replace(context, board=board)
    kernel = guest_boot.debug_kernel(context)
    return guest_boot.run_jobs(context, kernel, jobs(context, kernel), NAME)


def jobs(context: Context, kernel: Kernel) -> list[Job]:
    """One job: integrity with its switcher, which loads and unloads the module itself."""
    switches = QUICK_SWITCHES if context.quick else THOROUGH_SWITCHES if context.thorough else SWITCHES
    module = shlex.quote(str(kernel.modules[guest_boot.MODULE]))
    command = f"{integrity.program(context)} --ktap --seconds 1 --only {STRESSORS} --switch --module {module}"
    warmup = f"{command} --switches {QUICK_SWITCHES} --leak-kb {integrity.WARMUP_LEAK_KIB}"
    return [
        Job(NAME, "warm-up", warmup, int(QUICK_SWITCHES * SWITCH_S) + AROUND_S),
        Job(NAME, NAME, f"{command} --switches {switches}", int(switches * SWITCH_S) + AROUND_S),
    ]
