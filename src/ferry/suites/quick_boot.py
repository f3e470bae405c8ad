# SPDX-License-Identifier: GPL-2.0
"""The guest suites in small, all in one boot: what daily work can afford."""

from __future__ import annotations

from ferry.suites import flips, guest_boot, integrity, selftests
from ferry.suites.context import Context
from ferry.suites.result import Result

NAME = "boot"


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    jobs = [job for suite in (selftests, integrity, flips) for job in suite.jobs(context, kernel)]
    return guest_boot.run_jobs(context, kernel, jobs, NAME)
