# SPDX-License-Identifier: GPL-2.0
"""Device memory bound and unbound again and again, with allocations that fail: no splat, no leak."""

from __future__ import annotations

import dataclasses

from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs, qemu

NAME = "memmap"
#: Bindings of each device; fewer if the user does not name the suite.
ROUNDS = 250
SHORT_ROUNDS = 10
DEVICES = 7
#: The slowest that a round on the debug kernel may be.
ROUND_S = 2
#: To bind the NVDIMM for the first time, on a busy host.
AROUND_S = 300
#: Of the NVDIMM: large enough that two CPUs share its struct pages.
GIB = 3


def run(context: Context) -> list[Result]:
    equipped = qemu.with_nvdimm(context.board, GIB, context.logs)
    (context.logs / qemu.NVDIMM_IMAGE).touch()
    context = dataclasses.replace(context, board=equipped)
    kernel = guest_boot.debug_kernel(context)
    rounds = ROUNDS if context.thorough else SHORT_ROUNDS
    command = guest_programs.script_line("memmap-rebind.sh", kernel.modules["memmap_watch"], rounds)
    job = Job(NAME, "rebind", command, AROUND_S + DEVICES * rounds * ROUND_S)
    try:
        return guest_boot.run_jobs(context, kernel, [job], NAME)
    finally:
        (context.logs / qemu.NVDIMM_IMAGE).unlink(missing_ok=True)
