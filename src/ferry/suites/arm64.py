# SPDX-License-Identifier: GPL-2.0
"""The guest suites in small on another architecture, in one boot of its debug kernel; skipped where it cannot be."""

from __future__ import annotations

import dataclasses

from ferry import boards
from ferry.suites import flips, guest_boot, integrity, selftests
from ferry.suites.context import Context
from ferry.suites.result import Result, skipped

NAME = "arm64"
BOARD = "zcu102"


def run(context: Context) -> list[Result]:
    board = boards.load(BOARD)
    if reason := boards.unavailable(board):
        return [skipped(NAME, BOARD, reason)]
    context = dataclasses.replace(context, board=board, quick=True)
    kernel = guest_boot.debug_kernel(context)
    jobs = [job for suite in (selftests, integrity, flips) for job in suite.jobs(context, kernel)]
    return guest_boot.run_jobs(context, kernel, [dataclasses.replace(job, suite=NAME) for job in jobs], NAME)
