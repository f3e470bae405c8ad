# SPDX-License-Identifier: GPL-2.0
"""The control files of migration: any value at any time, a limit for each reason, and the verbs that use them."""

from __future__ import annotations

import dataclasses

from ferry import paths
from ferry.debian import packages
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot, integrity, selftests
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs, tcg

NAME = "control"
SECONDS = 300
#: If the user does not name the suite.
SHORT_SECONDS = 20
WRITERS = 4
VERBS = "ctl"
VERBS_S = 120
SELFTEST = "ferry_reasons"


def run(context: Context) -> list[Result]:
    """Migrators switch code behind a breakpoint, hence a single thread for all emulated CPUs; see vm.tcg.

    The verbs start Python eight times, which takes minutes on a debug kernel, hence the other one. The selftest of
    limits needs the rate of all CPUs; the suite selftests has it, too.
    """
    options = (*context.board.qemu_options, *tcg.SINGLE_THREAD)
    board = dataclasses.replace(context.board, qemu_options=options, kvm=False)
    single = dataclasses.replace(context, board=board)
    release, kernel = build.build(context.board, "ferry"), guest_boot.debug_kernel(context)
    results = guest_boot.run_jobs(single, release, [verbs(context, release)], f"{NAME}-{VERBS}")
    results += guest_boot.run_jobs(single, kernel, writers(context, kernel), NAME)
    if context.thorough:
        limits = [dataclasses.replace(job, suite=NAME) for job in selftests.jobs(context, kernel)
                  if job.name == SELFTEST]
        results += guest_boot.run_jobs(context, kernel, limits, f"{NAME}-{SELFTEST}")
    return results


def verbs(context: Context, kernel: Kernel) -> Job:
    command = guest_programs.script_line("ctl.sh", paths.repo_root() / "src", *_promtool(context))
    return Job(NAME, VERBS, command, VERBS_S, (guest_boot.load(kernel),))


def writers(context: Context, kernel: Kernel) -> list[Job]:
    """integrity, with threads that write to all control files; first a short run, as in suites.integrity."""
    seconds = SECONDS if context.thorough else SHORT_SECONDS
    command = f"{integrity.program(context)} --ktap --threads {WRITERS} --only read,write,fork --control"
    setup = (guest_boot.load(kernel),)
    return [
        Job(NAME, "warm-up", f"{command} --seconds {integrity.WARMUP_S} --leak-kb {integrity.WARMUP_LEAK_KIB}",
            integrity.WARMUP_S + integrity.AROUND_S, setup),
        Job(NAME, "random-values", f"{command} --seconds {seconds}", seconds + integrity.AROUND_S, setup),
    ]


def _promtool(context: Context) -> list[str]:
    """The command, for the guest's shell; it is a large download."""
    if not context.thorough:
        return []
    return packages.run_unpacked(packages.with_libraries("prometheus"), "promtool")
