# SPDX-License-Identifier: GPL-2.0
"""migrc's rule: no CPU whose TLB flush was deferred may ever see what must not be seen any more.

The suite runs every test of guest/stale_tlb on a sound kernel; the suite of faults breaks the rule on purpose,
in each place where it is kept, and wants both the events and the kernel's own checker to see it.
"""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

from ferry import paths
from ferry.suites import guest_boot, integrity
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs, splat, tcg

NAME = "migrc"
FAULTS_NAME = "migrc-faults"
#: Another board on which both suites run when they are named.
ALSO = ("zcu102",)

THOROUGH_ROUNDS = 1000
#: On a board whose guest is slower by far.
FOREIGN_ROUNDS = 200
ROUNDS = 50
#: The slowest that a round may be, on average of its event: pressure's on a busy host. On a foreign board, ksm takes
#: seconds, too.
ROUND_S = 4
FOREIGN_ROUND_S = 5
EVENT_AROUND_S = 600
#: There are not more events; each may take its whole time before the boot is given up.
MOST_EVENTS = 48
LOAD_S = 30
SHORT_LOAD_S = 10
AROUND_S = 180
#: What patches code behind a breakpoint, see suites.module_switch: it has its own boot, with one thread for all CPUs.
SWITCH = "kill_switch,uprobe"
#: Again in that boot, whose kernel zeroes what is freed: the reader would see zeroes.
ZEROING = "init_on_free=1"
ZEROED = "reuse"
FILES = ("file_write", "file_open_already", "file_truncate", "file_punch", "file_mmap_write", "file_copy_range")
DISK_MIB = 64
#: A file system in memory of which nothing else is known.
DIRECTORY = "/tmp/ferry-stale-tlb"
_MOUNT = (f"mkdir -p {DIRECTORY}", f"mount -t tmpfs stale_tlb {DIRECTORY}")

#: Before an event that shows a fault too seldom: then only the checker must see it. What the hook is for ends there
#: with a flush of the kernel's own, and until then the moment is short: reclaim's at the end of its batch (swap_fault),
#: mprotect(2)'s and userfaultfd's at the end of their range (mprotect_write, uffd_wp, uffd_move), that of a CPU that
#: comes back (cpu_hotplug). And no reader can see a page that is merely missing (hot_unplug). mprotect_race loses
#: stores in one run after 15 rounds, in another in none of 400.
SELDOM = "~"
#: A word of /sys/kernel/debug/migrc/fault_inject, and the tests that must show it. A step that two hooks take, one
#: after the other, shows by `generation`, which disables both. Steps that a flush of the kernel itself covers are not
#: here: fork_pays, and those where a page is unmapped to be replaced or lost (file_truncate, file_punch, uprobe,
#: thp_collapse, thp_split, memory_failure, soft_offline); nor the limits and the switch, where nothing is flushed.
FAULTS: dict[str, tuple[str, ...]] = {
    "write_fault": ("write_fault", "lazy", "process_vm", "fork_child", "ksm", SELDOM + "cpu_hotplug"),
    "unmap": ("munmap", "mprotect_none", "mremap", "dontneed", SELDOM + "uffd_move"),
    "gup": ("gup_force",),
    "mixed": ("mixed",),
    "failure": ("source_failure",),
    "pages": ("source_offline", SELDOM + "hot_unplug"),
    "file_open": ("file_write", "file_mmap_write", "file_copy_range", "exec_exit"),
    "file_recheck": ("file_open_already",),
    "swap_fault": (SELDOM + "swap_fault",),
    "pending": ("soft_dirty", SELDOM + "mprotect_race"),
    "fork": ("lost_write",),
    "quarantine": ("reuse",),
    "drain": ("reuse",),
    "generation": ("write_fault", SELDOM + "mprotect_write", SELDOM + "uffd_wp"),
}
#: As if with SELDOM on a foreign board. By mremap and dontneed the unmapping's own flush comes soon after, and is one
#: instruction there, not interrupts; when one page is flushed QEMU's arm64 forgets more than that, and mixed flushes
#: pages beside (no stale read by mremap, nor by mixed, in 2,000 rounds). Where an ASID is flushed it forgets all, as
#: when another process ends (fork_child, 2,000 rounds; exec_exit, 150). ksm showed nothing
#: in 60.
SELDOM_FOREIGN = ("mremap", "dontneed", "mixed", "fork_child", "exec_exit", "ksm")
#: Those whose moment is short need many rounds.
FAULT_ROUNDS = 2000
SHORT_FAULT_ROUNDS = 400

#: What the checker says on the console when an injected fault has done its work.
CHECKER = splat.Report("BUG: migrc: ", "migrc: end of report")


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    if _foreign(context):
        return guest_boot.run_jobs(context, kernel, jobs(context), NAME)
    board = dataclasses.replace(
        context.board, qemu_options=(*context.board.qemu_options, *tcg.ONE_THREAD), kvm=False,
        append=(*context.board.append, ZEROING))
    alone = dataclasses.replace(context, board=board)
    return [
        *guest_boot.run_jobs(context, kernel, jobs(context, "--except", SWITCH), NAME),
        *guest_boot.run_jobs(alone, kernel, [switch_job(alone)], f"{NAME}-switch"),
    ]


def run_faults(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    return guest_boot.run_jobs(context, kernel, [faults_job(context)], FAULTS_NAME, expected=(CHECKER,))


def rounds(context: Context) -> int:
    """Of each event."""
    if not context.thorough:
        return ROUNDS
    return FOREIGN_ROUNDS if _foreign(context) else THOROUGH_ROUNDS


def jobs(context: Context, *choice: str) -> list[Job]:
    """Every event, those of files also on a disk's file system, the integrity program; the last asks the checker."""
    seconds = LOAD_S if context.thorough else SHORT_LOAD_S
    disk = shlex.quote(str(_script("with-ext4.sh")))
    load = f"sh {shlex.quote(str(_script('migrc.sh')))} sh {disk} {integrity.DISK_MIB} {integrity.program(context)}"
    load += f" --seconds {seconds} --leak-kb {integrity.WARMUP_LEAK_KIB} --file @"
    on_disk = f"sh {disk} {DISK_MIB} {_stale_tlb(context, '--test', ','.join(FILES))} --dir @"
    events = _stale_tlb(context, "--dir", DIRECTORY, *choice)
    return [
        Job(NAME, "stale_tlb", events, _seconds(context, MOST_EVENTS), _setup(context)),
        Job(NAME, "stale_tlb-ext4", on_disk, _seconds(context, len(FILES))),
        Job(NAME, "integrity", load, seconds + AROUND_S),
    ]


def switch_job(context: Context) -> Job:
    """The switch flipped, a probe set, frames zeroed, under the script that asks the checker at the end."""
    command = f"sh {shlex.quote(str(_script('migrc.sh')))} {_stale_tlb(context, '--test', f'{SWITCH},{ZEROED}')}"
    return Job(NAME, "patching", command, _seconds(context, 3) + AROUND_S)


def faults(context: Context) -> dict[str, tuple[str, ...]]:
    """FAULTS, as the board shows them."""
    if not _foreign(context):
        return FAULTS
    return {word: tuple(SELDOM * (event in SELDOM_FOREIGN) + event for event in events)
            for word, events in FAULTS.items()}


def bare(event: str) -> str:
    """An event of FAULTS without what stands before it."""
    return event.lstrip(SELDOM)


def faults_job(context: Context) -> Job:
    """Every fault, in one boot."""
    count = FAULT_ROUNDS if context.thorough else SHORT_FAULT_ROUNDS
    pairs = [f"{word}={','.join(events)}" for word, events in faults(context).items()]
    words = ["sh", _script("migrc-faults.sh"), count, _program(context), DIRECTORY, *pairs]
    cases = sum(len(events) for events in FAULTS.values())
    seconds = cases * (count * ROUND_S + EVENT_AROUND_S) + AROUND_S
    return Job(FAULTS_NAME, FAULTS_NAME, shlex.join(map(str, words)), seconds, _setup(context))


def _setup(context: Context) -> tuple[str, ...]:
    """What stale_tlb needs: a directory on tmpfs, and memory that can go, which arm64 has only where it was added."""
    added = (shlex.join(["sh", str(_script("add-memory.sh"))]),) if context.board.added_mib else ()
    return (*_MOUNT, *added)


def _foreign(context: Context) -> bool:
    return context.board.runner == "initramfs"


def _seconds(context: Context, events: int) -> int:
    return events * _limit(context)


def _limit(context: Context) -> int:
    """For one event (s)."""
    return rounds(context) * (FOREIGN_ROUND_S if _foreign(context) else ROUND_S) + EVENT_AROUND_S


def _stale_tlb(context: Context, *more: str) -> str:
    words = ("--ktap", "--machine", "--rounds", str(rounds(context)), "--limit", str(_limit(context)), *more)
    return shlex.join([_program(context), *words])


def _program(context: Context) -> str:
    return str(guest_programs.programs(context.board.arch)["stale_tlb"])


def _script(name: str) -> Path:
    return paths.repo_root() / "guest/scripts" / name
