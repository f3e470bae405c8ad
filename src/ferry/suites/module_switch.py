# SPDX-License-Identifier: GPL-2.0
"""Switch the migrator, and load and unload mtcopy, while pages move: no splat, no wrong byte, no leak."""

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
#: Enough stressors to hold references while the module is unloaded; with all of them, rmmod waits long for a CPU.
STRESSORS = "read,write,fork,odirect,uring"
THOROUGH_SWITCHES = 1000
SWITCHES = 30
QUICK_SWITCHES = 10
#: Limit for an average cycle of load, select, deselect, unload.
SWITCH_S = 15
AROUND_S = 120


def run(context: Context) -> list[Result]:
    """Each switch patches code behind a breakpoint, hence a single thread for all emulated CPUs; see vm.tcg."""
    options = (*context.board.qemu_options, *tcg.SINGLE_THREAD)
    board = dataclasses.replace(context.board, qemu_options=options, kvm=False)
    context = dataclasses.replace(context, board=board)
    kernel = guest_boot.debug_kernel(context)
    return guest_boot.run_jobs(context, kernel, jobs(context, kernel), NAME)


def jobs(context: Context, kernel: Kernel) -> list[Job]:
    """integrity, which loads and unloads the module itself; first a short run, as in suites.integrity."""
    switches = QUICK_SWITCHES if context.quick else THOROUGH_SWITCHES if context.thorough else SWITCHES
    module = shlex.quote(str(kernel.modules[guest_boot.MODULE]))
    command = f"{integrity.program(context)} --ktap --seconds 1 --only {STRESSORS} --switch --module {module}"
    warmup = f"{command} --switches {QUICK_SWITCHES} --leak-kb {integrity.WARMUP_LEAK_KIB}"
    return [
        Job(NAME, "warm-up", warmup, QUICK_SWITCHES * SWITCH_S + AROUND_S),
        Job(NAME, NAME, f"{command} --switches {switches}", switches * SWITCH_S + AROUND_S),
    ]
