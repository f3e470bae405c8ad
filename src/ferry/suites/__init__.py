# SPDX-License-Identifier: GPL-2.0
"""Test suites: one module each, whose run(context) yields results. Here is which there are and where they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ferry.suites import dma, integrity, kunit, lint, memmap, migrc, module_switch, pytest, selftests, series, smoke
from ferry.suites.context import Context
from ferry.suites.result import Result

HOST = ""


@dataclass(frozen=True)
class Suite:
    """`board` is where it runs, HOST for this machine, and `also` where else if it is asked for that board.

    `alongside`: it takes one CPU for long, others run with it.
    """

    name: str
    summary: str
    board: str
    run: Callable[[Context], list[Result]]
    alongside: bool = False
    also: tuple[str, ...] = ()


#: Cheap ones first, so that what is easily seen is soon seen.
ALL = (
    Suite(lint.NAME, "ruff, mypy --strict, guest/ without a warning", HOST, lint.run),
    Suite(pytest.NAME, "the tool's own tests", HOST, pytest.run),
    Suite(series.NAME, "ferry series check", HOST, series.run),
    Suite(kunit.NAME, "the kernel's unit tests, with KASAN", "uml", kunit.run),
    Suite(kunit.NUMA_NAME, "those that User-Mode Linux cannot run, and the rest again", "x86-numa", kunit.run_numa),
    Suite(selftests.NAME, "kselftests of the control files", "x86-numa", selftests.run),
    Suite(memmap.NAME, "device memory bound and unbound while allocations fail", "x86-numa", memmap.run),
    Suite(integrity.NAME, "every byte survives, under each migrator", "x86-numa", integrity.run),
    Suite(migrc.NAME, "no CPU sees stale data by a TLB entry whose flush was deferred", "x86-numa", migrc.run,
          also=migrc.ALSO),
    Suite(migrc.FAULTS_NAME, "migrc with a fault injected, which must be seen", "x86-numa", migrc.run_faults,
          also=migrc.ALSO),
    Suite(dma.FAULTS_NAME, "DMA engines that do everything wrong", "x86-ptdma", dma.run_faults),
    Suite(dma.NAME, "DMA engines near each node, and every byte by them", "zcu102", dma.run),
    Suite(module_switch.NAME, "migrators switched and unloaded under load", "x86-numa", module_switch.run,
          alongside=True),
    Suite(smoke.ARM64_NAME, "KUnit and the above in small, on another architecture", smoke.ARM64_BOARD,
          smoke.run_arm64),
)

#: For --quick: a clone's daily check.
QUICK = (
    Suite(pytest.NAME, "the tool's own tests", HOST, pytest.run),
    Suite(kunit.NAME, "the kernel's unit tests, with KASAN", "uml", kunit.run),
    Suite(smoke.NAME, "kselftests, integrity and module switching in small, in one boot", "x86-numa", smoke.run),
)
