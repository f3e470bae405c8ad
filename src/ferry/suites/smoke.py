# SPDX-License-Identifier: GPL-2.0
"""selftests, integrity and module_switch, short, in one boot: for daily work, and for another architecture."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ferry.suites import guest_boot, integrity, kunit, module_switch, selftests
from ferry.suites.context import Context
from ferry.suites.result import Result

NAME = "smoke"
ARM64_NAME = "arm64"
ARM64_BOARD = "zcu102"
#: These test charges and limits, which do not depend on the architecture: on arm64 only if the suite is named.
ANY_ARCHITECTURE = ("ferry_account", "ferry_reasons")


def run(context: Context, name: str = NAME, left_out: Sequence[str] = ()) -> list[Result]:
    """`left_out`: names of jobs."""
    kernel = guest_boot.debug_kernel(context)
    jobs = [job for suite in (selftests, integrity, module_switch) for job in suite.jobs(context, kernel)]
    return guest_boot.run_jobs(context, kernel, [job for job in jobs if job.name not in left_out], name)


def run_arm64(context: Context) -> list[Result]:
    """KUnit in one boot, then the rest, always short; all as results of the suite arm64."""
    left_out = () if context.thorough else ANY_ARCHITECTURE
    context = dataclasses.replace(context, quick=True)
    units = kunit.run_on(context, f"{ARM64_NAME}-kunit", context.board)
    return [dataclasses.replace(result, suite=ARM64_NAME) for result in (*units, *run(context, ARM64_NAME, left_out))]
