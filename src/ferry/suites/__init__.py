# SPDX-License-Identifier: GPL-2.0
"""The test suites: one module each, whose run(context) returns results. Here is the list of them, with their boards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ferry.boards import LOCAL
from ferry.suites import (
    bench_smoke,
    compaction,
    control,
    dma,
    fleet,
    integrity,
    kcsan,
    kunit,
    lint,
    memmap,
    migrc,
    models,
    module_switch,
    outside,
    package,
    pytest,
    runs,
    selftests,
    series,
    smoke,
    soak,
)
from ferry.suites.context import Context
from ferry.suites.result import Result

HOST = ""


@dataclass(frozen=True)
class Suite:
    """`board` is where it runs, HOST for this machine; `also` are boards on which it runs if the user names them.

    A suite that is `alongside` occupies one CPU for long: other suites run at the same time. One that is `by_name`
    takes so long that it runs only if the user names it.
    """

    name: str
    summary: str
    board: str
    run: Callable[[Context], list[Result]]
    alongside: bool = False
    also: tuple[str, ...] = ()
    by_name: bool = False


#: Short ones first.
ALL = (
    Suite(lint.NAME, "ruff, mypy --strict, layers; guest/ builds without a warning", HOST, lint.run, alongside=True),
    Suite(pytest.NAME, "the tool's own tests", HOST, pytest.run, alongside=True),
    Suite(models.NAME, "models of migrc and dcbm hold, and spin finds each fault in them", HOST, models.run,
          alongside=True),
    Suite(series.NAME, "ferry series check; each series compiles, if named after each patch", HOST, series.run),
    Suite(kunit.NAME, "the kernel's unit tests, with KASAN", "uml", kunit.run),
    Suite(kunit.NUMA_NAME, "the same on x86, with those that User-Mode Linux skips", "x86-numa", kunit.run_numa),
    Suite(selftests.NAME, "kselftests: the control files, and pages moved in runs", "x86-numa", selftests.run,
          also=(LOCAL,)),
    Suite(memmap.NAME, "bind and unbind device memory while allocations fail", "x86-numa", memmap.run),
    Suite(integrity.NAME, "every byte survives under stress, with each migrator", "x86-numa", integrity.run,
          also=(LOCAL,)),
    Suite(runs.NAME, "every byte survives when base pages move in runs", "x86-numa", runs.run, also=runs.ALSO),
    Suite(migrc.NAME, "no CPU reads stale data through a TLB entry whose flush was deferred", "x86-numa", migrc.run,
          also=migrc.ALSO),
    Suite(migrc.FAULTS_NAME, "fault injection in migrc, which tests and checker must detect", "x86-numa",
          migrc.run_faults, also=migrc.ALSO),
    Suite(compaction.NAME, "compaction, demotion, contiguous allocation and hot-unplug together", "x86-tier",
          compaction.run),
    Suite(dma.FAULTS_NAME, "fault injection in DMA engines and their drivers", "x86-ptdma", dma.run_faults),
    Suite(dma.NAME, "DMA engines near each node: channels, limits, every byte", "zcu102", dma.run),
    Suite(bench_smoke.NAME, "each benchmark, as short as it can be: samples, rows, table", "x86-numa", bench_smoke.run),
    Suite(control.NAME, "any value in any control file at any time; limits; ferry ctl and metrics", "x86-numa",
          control.run),
    Suite(module_switch.NAME, "switch migrators and runs, and unload mtcopy, under load", "x86-numa", module_switch.run,
          alongside=True),
    Suite(smoke.ARM64_NAME, "KUnit, selftests, integrity and module_switch, short, on arm64", smoke.ARM64_BOARD,
          smoke.run_arm64),
    Suite(kcsan.NAME, "no data race in our code, under the loads of the other suites", kcsan.BOARD, kcsan.run,
          by_name=True),
    Suite(outside.NAME, "programs that are not ours: nothing worse than on the unpatched kernel", "x86-numa",
          outside.run, by_name=True),
    Suite(package.NAME, "our packages on a Debian disk: installed, booted, removed, and power cuts", HOST, package.run,
          by_name=True),
    Suite(fleet.NAME, "the Ansible role on two such machines: a canary, failures that roll back, removal", HOST,
          fleet.run, by_name=True),
    Suite(kunit.TAGS_NAME, "the copy phase resets KASAN's hardware tags", "arm64-mte", kunit.run_tags, by_name=True),
    Suite(soak.NAME, "memory moves for an hour while everything happens to it; nothing is wrong or left", "x86-numa",
          soak.run, also=soak.ALSO, by_name=True),
)

#: With --quick: for daily work.
QUICK = (
    Suite(pytest.NAME, "the tool's own tests", HOST, pytest.run),
    Suite(kunit.NAME, "the kernel's unit tests, with KASAN", "uml", kunit.run),
    Suite(smoke.NAME, "selftests, integrity and module_switch, short, in one boot", "x86-numa", smoke.run),
    Suite(soak.NAME, "the soak in three minutes", "x86-numa", soak.run, also=soak.ALSO, by_name=True),
)
