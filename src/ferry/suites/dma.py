# SPDX-License-Identifier: GPL-2.0
"""dcbm: on engines that work, and on engines that do everything wrong. guest/dma.sh and guest/dma-faults.sh."""

from __future__ import annotations

import shlex
from pathlib import Path

from ferry import guest, paths
from ferry.build import Kernel
from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result

NAME = "dma"
FAULTS_NAME = "dma-faults"
MODULE = "ferry_dcbm"
#: An engine without hardware that fails on demand.
TESTDMA = "ferry_testdma"
#: What a board with device models drives them by, in the order that dma-faults.sh takes them.
DRIVERS = ("ptdma", "ae4dma")
#: zcu102 has so many, half of them near each node.
CHANNELS = 16
LOAD_S = 20
#: That dcbm is given in each case of dma-faults.
FOLIOS = 10_000
SHORT_FOLIOS = 1_000
CASES = 21
#: For one case: the slowest seen is a tenth of this.
CASE_S = 180
AROUND_S = 240


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    command = _command(context, "dma.sh", CHANNELS, LOAD_S, _program(context, "movebench"),
                       _program(context, "integrity"), kernel.modules[MODULE])
    return guest_boot.run_jobs(context, kernel, [Job(NAME, NAME, command, LOAD_S + AROUND_S)], NAME)


def run_faults(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    job = Job(FAULTS_NAME, FAULTS_NAME, _faults_command(context, kernel), CASES * CASE_S + AROUND_S)
    return guest_boot.run_jobs(context, kernel, [job], FAULTS_NAME)


def _faults_command(context: Context, kernel: Kernel) -> str:
    folios = FOLIOS if context.thorough else SHORT_FOLIOS
    models = [kernel.modules[name] for name in DRIVERS if name in context.board.devices]
    return _command(context, "dma-faults.sh", folios, _program(context, "integrity"), kernel.modules[MODULE],
                    kernel.modules[TESTDMA], *models)


def _program(context: Context, name: str) -> Path:
    return guest.programs(context.board.arch)[name]


def _command(context: Context, script: str, *arguments: object) -> str:
    return shlex.join(["sh", str(paths.repo_root() / "guest" / script), *map(str, arguments)])
