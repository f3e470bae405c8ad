# SPDX-License-Identifier: GPL-2.0
"""dcbm on working DMA engines (guest/scripts/dma.sh), and with fault injection (guest/scripts/dma-faults.sh)."""

from __future__ import annotations

from pathlib import Path

from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs

NAME = "dma"
FAULTS_NAME = "dma-faults"
MODULE = "ferry_dcbm"
#: A software DMA engine whose driver fails on request.
TESTDMA = "ferry_testdma"
LOAD_S = 20
#: Folios that each case of dma-faults submits to dcbm.
FOLIOS = 10_000
SHORT_FOLIOS = 1_000
#: Cases of dma-faults: with testdma and ptdma, and with ae4dma.
CASES = 25
CASES_AE4DMA = 4
#: For one case of dma-faults: several times the slowest seen.
CASE_S = 300
SHORT_CASE_S = 120
AROUND_S = 240
#: SLUB poisons the freed descriptors of drivers of PCI devices: an access after the free is detected.
POISON = "slub_debug=FZPU,0000:*"


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    command = guest_programs.script_line("dma.sh", context.board.channels, LOAD_S, _program(context, "movebench"),
                                     _program(context, "integrity"), kernel.modules[MODULE], kernel.modules[TESTDMA])
    return guest_boot.run_jobs(context, kernel, [Job(NAME, NAME, command, 2 * LOAD_S + AROUND_S)], NAME)


def run_faults(context: Context) -> list[Result]:
    """On the debug kernel; ae4dma, whose driver does not initialise one of its mutexes, on the release kernel."""
    debug, release = guest_boot.debug_kernel(context), build.build(context.board, "ferry", debug=False)
    return [
        *_faults(context, debug, FAULTS_NAME, CASES, (TESTDMA, "ptdma", None)),
        *_faults(context, release, f"{FAULTS_NAME}-ae4dma", CASES_AE4DMA, (None, "ptdma", "ae4dma")),
    ]


def _faults(
    context: Context, kernel: Kernel, name: str, cases: int, modules: tuple[str | None, ...]
) -> list[Result]:
    folios, seconds = (FOLIOS, CASE_S) if context.thorough else (SHORT_FOLIOS, SHORT_CASE_S)
    words = [str(kernel.modules[module]) if module else "-" for module in modules]
    command = guest_programs.script_line("dma-faults.sh", folios, _program(context, "integrity"),
                                         kernel.modules[MODULE], *words)
    job = Job(FAULTS_NAME, name, command, cases * seconds + AROUND_S)
    return guest_boot.run_jobs(context, kernel, [job], name, append=[POISON])


def _program(context: Context, name: str) -> Path:
    return guest_programs.programs(context.board.arch)[name]
