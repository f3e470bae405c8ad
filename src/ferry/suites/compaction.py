# SPDX-License-Identifier: GPL-2.0
"""Compaction, demotion, promotion, DAMON, contiguous allocation and hot-unplug: guest/scripts/compaction.sh. Before it,
how often compaction searches the free lists (guest/scripts/compaction-searches.sh), and how long the lists are that
kswapd demotes (guest/scripts/demotion-lists.sh)."""

from __future__ import annotations

from ferry.bench import compaction_plan
from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs

NAME = "compaction"
SECONDS = 600
#: If the user does not name the suite.
SHORT_SECONDS = 30
MIGRATORS = ("off", "kernel", "mtcopy")
#: For each migrator: to touch the memory, to stop the stressors, and for the final checks.
AROUND_S = 300
SEARCHES_S = 120
LISTS_S = 180
#: A region that contiguous allocations take from movable memory, if the kernel has CONFIG_DMA_CMA.
REGION = "cma=64M"


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    seconds = SECONDS if context.thorough else SHORT_SECONDS
    programs = guest_programs.programs(context.board.arch)
    searches = Job(NAME, f"{NAME}-searches",
                   guest_programs.script_line("compaction-searches.sh", programs[compaction_plan.PROGRAM]), SEARCHES_S,
                   (guest_boot.load(kernel, compaction_plan.MODULE),))
    lists = Job(NAME, "demotion-lists", guest_programs.script_line("demotion-lists.sh"), LISTS_S)
    together = Job(NAME, NAME, guest_programs.script_line("compaction.sh", seconds, programs["integrity"], *MIGRATORS),
                   seconds + AROUND_S * len(MIGRATORS), (guest_boot.load(kernel),))
    return guest_boot.run_jobs(context, kernel, [searches, lists, together], NAME, append=(REGION,))
