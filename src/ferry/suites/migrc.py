# SPDX-License-Identifier: GPL-2.0
"""migrc's rule: no CPU reads stale data through a TLB entry whose flush was deferred.

The suite `migrc` runs every test of guest/stale_tlb on a correct kernel. The suite `migrc-faults` disables the rule at
each place that enforces it, and requires both the test and the kernel's own checker to detect that.
"""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass

from ferry.suites import guest_boot, integrity
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs, splat, tcg

NAME = "migrc"
FAULTS_NAME = "migrc-faults"
#: Another board on which both suites run if the user names it.
ALSO = ("zcu102",)

THOROUGH_ROUNDS = 1000
#: On a board with a far slower guest.
FOREIGN_ROUNDS = 200
ROUNDS = 8
#: The slowest average round of a test: that of pressure on a busy host, and on a foreign board that of ksm, too.
ROUND_S = 4
FOREIGN_ROUND_S = 5
TEST_AROUND_S = 600
#: An upper bound of the number of tests. Each may take its whole time before the boot is aborted.
MOST_TESTS = 48
AROUND_S = 180
#: Tests that make the kernel patch code through breakpoints: they run in a boot of their own, see vm.tcg.
SWITCH = "kill_switch,uprobe"
#: A test that runs again in that boot, whose kernel zeroes freed pages: a stale read then returns zeroes.
ZEROING = "init_on_free=1"
ZEROED = "reuse"
FILES = ("file_write", "file_open_already", "file_truncate", "file_punch", "file_mmap_write", "file_copy_range")
DISK_MIB = 64
#: A separate tmpfs for the files of the tests.
DIRECTORY = "/tmp/ferry-stale_tlb"
_MOUNT = (f"mkdir -p {DIRECTORY}", f"mount -t tmpfs stale_tlb {DIRECTORY}")


@dataclass(frozen=True)
class Case:
    """A test of stale_tlb that detects a fault, or only one of the test and the checker.

    `checker_only`: the window is too short for the test. `test_only`: the checker watches changes of PTEs and pages,
    and the fault leaves out a flush for an entry that is just removed, or for a PTE that stays as it is.

    The window is short where the kernel itself flushes soon after the hook: reclaim at the end of its batch
    (swap_fault), mprotect(2) and userfaultfd at the end of their range (mprotect_write, uffd_wp, uffd_move), a CPU that
    comes online (cpu_hotplug). After hot_unplug the page is only missing, which no reader can see. mprotect_race loses
    stores after 15 rounds in one run and in none of 400 rounds in another.
    """

    test: str
    checker_only: bool = False
    test_only: bool = False

    @property
    def argument(self) -> str:
        """As migrc-faults.sh takes it."""
        return "~" * self.checker_only + "!" * self.test_only + self.test


def _cases(*tests: str, checker: tuple[str, ...] = ()) -> tuple[Case, ...]:
    return (*(Case(test) for test in tests), *(Case(test, checker_only=True) for test in checker))


#: A word of /sys/kernel/debug/migrc/fault_inject, and the tests that must detect it. Where two hooks in turn prevent a
#: stale read, `generation` disables both. Tests are left out if the kernel's own flush is sufficient: fork_flushes, and
#: those in which a page is unmapped and replaced or lost (file_truncate, file_punch, uprobe, thp_collapse, thp_split,
#: memory_failure, soft_offline); so are the tests of limits and of the switch, in which nothing is flushed.
FAULTS: dict[str, tuple[Case, ...]] = {
    "write_fault": _cases("write_fault", "lazy", "process_vm", "fork_child", "ksm", checker=("cpu_hotplug",)),
    "entry": tuple(Case(test, test_only=True) for test in ("munmap", "mremap", "dontneed")),
    "table": tuple(Case(test, test_only=True) for test in ("mprotect_none", "mprotect_walk")),
    "protect": _cases(checker=("mprotect_write", "uffd_move")),
    "gup": _cases("gup_force"),
    "mixed": _cases("mixed"),
    "failure": _cases("source_failure"),
    "pages": _cases("source_offline", checker=("hot_unplug",)),
    "file_open": _cases("file_write", "file_mmap_write", "file_copy_range", "exec_exit"),
    "file_recheck": _cases("file_open_already"),
    "swap_fault": _cases(checker=("swap_fault",)),
    "pending": _cases("soft_dirty", checker=("mprotect_race",)),
    "fork": _cases("lost_write"),
    "quarantine": _cases("reuse"),
    "drain": _cases("reuse"),
    "generation": _cases("write_fault", checker=("mprotect_write", "uffd_wp")),
}
#: Tests that are checker_only on a foreign board, or left out there if the checker sees nothing of them. After mremap
#: and dontneed the unmapping flushes soon, by one instruction there, not by interrupts. If one page is flushed, QEMU's
#: arm64 drops more TLB entries than that one, and mixed flushes neighbouring pages (neither mremap nor mixed had stale
#: reads in 2,000 rounds). If an ASID is flushed, it drops all, as when another process ends (fork_child, 2,000 rounds;
#: exec_exit, 150). ksm had none in 60 rounds.
FOREIGN_CHECKER_ONLY = ("mremap", "dontneed", "mixed", "fork_child", "exec_exit", "ksm")
#: Tests with a short window need many rounds.
FAULT_ROUNDS = 2000
SHORT_FAULT_ROUNDS = 400

#: The checker's report of a violation on the console.
CHECKER = splat.Report("BUG: migrc: ", "migrc: end of report")


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    if _foreign(context):
        return guest_boot.run_jobs(context, kernel, jobs(context), NAME)
    board = dataclasses.replace(
        context.board, qemu_options=(*context.board.qemu_options, *tcg.SINGLE_THREAD), kvm=False,
        append=(*context.board.append, ZEROING))
    alone = dataclasses.replace(context, board=board)
    return [
        *guest_boot.run_jobs(context, kernel, jobs(context, "--except", SWITCH), NAME),
        *guest_boot.run_jobs(alone, kernel, [switch_job(alone)], f"{NAME}-switch"),
    ]


def run_faults(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    job = faults_job(context)
    jobs = [job]
    if context.thorough:
        jobs += _with_runs(dataclasses.replace(job, name=f"{FAULTS_NAME}-runs", setup=()))
    return guest_boot.run_jobs(context, kernel, jobs, FAULTS_NAME, expected=(CHECKER,))


def rounds(context: Context) -> int:
    """Of each test."""
    if not context.thorough:
        return ROUNDS
    return FOREIGN_ROUNDS if _foreign(context) else THOROUGH_ROUNDS


def jobs(context: Context, *choice: str) -> list[Job]:
    """Every test; those of files also on ext4; every test with pages that move in runs.

    Then `count`, and at last the integrity program, after which the script reads the checker.
    """
    seconds = integrity.load_s(context)
    disk = guest_programs.script_line("with-disk.sh")
    load = f"{guest_programs.script_line('migrc.sh')} {disk} {integrity.DISK_MIB} {integrity.program(context)}"
    load += f" --seconds {seconds} --leak-kb {integrity.WARMUP_LEAK_KIB} --file @"
    on_disk = f"{disk} {DISK_MIB} {_stale_tlb(context, '--test', ','.join(FILES))} --dir @"
    tests = _stale_tlb(context, "--dir", DIRECTORY, *choice)
    return [
        Job(NAME, "stale_tlb", tests, MOST_TESTS * _limit(context), _setup(context)),
        Job(NAME, "stale_tlb-ext4", on_disk, len(FILES) * _limit(context)),
        *_with_runs(Job(NAME, "stale_tlb-runs", tests, MOST_TESTS * _limit(context))),
        Job(NAME, "count", _count(context), AROUND_S),
        Job(NAME, "integrity", load, seconds + AROUND_S, guest_boot.write("runs", 0)),
    ]


def _count(context: Context) -> str:
    programs = guest_programs.programs(context.board.arch)
    mover = (programs["movebench"], "--bytes", "4m", "--samples", 1, "--warmup", 0, "--read-only")
    return guest_programs.script_line("count.sh", programs["count"], *mover)


def _with_runs(job: Job) -> list[Job]:
    """The job with runs on, and a check that pages moved in runs."""
    used = Job(job.suite, f"{job.name}-used", guest_programs.script_line("used.sh", "stats/runs/moved"), AROUND_S)
    return [dataclasses.replace(job, setup=(*job.setup, *guest_boot.write("runs", 1))), used]


def switch_job(context: Context) -> Job:
    """Switch migrc off and on, set a uprobe, reuse zeroed frames; then the script reads the checker."""
    tests = _stale_tlb(context, "--test", f"{SWITCH},{ZEROED}")
    return Job(NAME, "patching", f"{guest_programs.script_line('migrc.sh')} {tests}", 3 * _limit(context) + AROUND_S)


def faults(context: Context) -> dict[str, tuple[Case, ...]]:
    """FAULTS, with the cases that are checker_only on the board."""
    if not _foreign(context):
        return FAULTS
    return {word: tuple(dataclasses.replace(case, checker_only=case.checker_only or case.test in FOREIGN_CHECKER_ONLY)
                        for case in cases if not (case.test_only and case.test in FOREIGN_CHECKER_ONLY))
            for word, cases in FAULTS.items()}


def faults_job(context: Context) -> Job:
    """Every fault, in one boot."""
    count = FAULT_ROUNDS if context.thorough else SHORT_FAULT_ROUNDS
    pairs = [f"{word}={','.join(case.argument for case in cases)}" for word, cases in faults(context).items()]
    command = guest_programs.script_line("migrc-faults.sh", count, _program(context), DIRECTORY, *pairs)
    number = sum(len(cases) for cases in FAULTS.values())
    seconds = number * (count * ROUND_S + TEST_AROUND_S) + AROUND_S
    return Job(FAULTS_NAME, FAULTS_NAME, command, seconds, _setup(context))


def _setup(context: Context) -> tuple[str, ...]:
    """A directory on tmpfs, and memory that can go offline: on arm64 only memory that was added at run time can."""
    return (*_MOUNT, *([guest_programs.script_line("add-memory.sh")] if context.board.added_mib else []))


def _foreign(context: Context) -> bool:
    return context.board.runner == "initramfs"


def _limit(context: Context) -> int:
    """Seconds for one test."""
    return rounds(context) * (FOREIGN_ROUND_S if _foreign(context) else ROUND_S) + TEST_AROUND_S


def _stale_tlb(context: Context, *more: str) -> str:
    words = ("--ktap", "--machine", "--rounds", str(rounds(context)), "--limit", str(_limit(context)), *more)
    return shlex.join([_program(context), *words])


def _program(context: Context) -> str:
    return str(guest_programs.programs(context.board.arch)["stale_tlb"])
