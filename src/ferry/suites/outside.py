# SPDX-License-Identifier: GPL-2.0
"""Test programs that are not ours, on the unpatched kernel and on ours with everything on, compared case by case.

Such programs fail here and there on any kernel, on an emulated one in particular: a slow machine misses their
deadlines, a small one has no memory for them. Only what is worse on our kernel counts. A case that is worse is
repeated on both kernels: it fails the suite if all runs agree.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry.kernel import build, tree_selftests
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Outcome, Result, failed, passed, skipped
from ferry.vm import guest_programs

NAME = "outside"
STOCK = "stock"
#: Of a case that is worse on our kernel: runs on each kernel.
RUNS = 3
DISK_MIB = 256
_BETTER = (Outcome.FAILED, Outcome.SKIPPED, Outcome.PASSED)


@dataclass(frozen=True)
class Program:
    """A selftest of the kernel's tree, with its arguments; `seconds` is its limit on an emulated debug kernel."""

    name: str
    seconds: int
    arguments: tuple[str, ...] = ()


PROGRAMS = (
    Program("migration", 600),
    Program("rmap", 600),
    Program("ksm_functional_tests", 300),
    Program("uffd-unit-tests", 900),
    Program("cow", 1800),
    Program("split_huge_page_test", 600),
    Program("khugepaged", 900),
)


@dataclass(frozen=True)
class Side:
    """One of the kernels that are compared: `setup` are the shell lines that switch its features on.

    The programs have tested nothing of ours unless `counters` below /sys/kernel/mm/migration are above 0 in the end,
    and `migrator` has copied in the first program.
    """

    name: str
    kernel: Kernel
    setup: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    migrator: str = ""


_ZRAM = "/sys/block/zram0/disksize"
_SWAP_ON = (f'if [ "$(cat {_ZRAM})" = 0 ]; then echo 256M >{_ZRAM}; mkswap /dev/zram0 >&2; swapon /dev/zram0; fi',)

#: The results of one boot of each side.
Turn = Mapping[str, Sequence[Result]]


def run(context: Context) -> list[Result]:
    built = tree_selftests.programs(tuple(program.name for program in PROGRAMS))
    sides = _sides(context)
    turns: list[Turn] = [_turn(context, sides, PROGRAMS, built, 1)]
    doubtful = [program for program in PROGRAMS if _is_worse(turns[0], program)]
    for number in range(2, RUNS + 1 if doubtful else 0):
        turns.append(_turn(context, sides, doubtful, built, number))
    boots = [result for turn in turns for side in sides for result in turn[side.name] if not _is_case(result)]
    ours = [side.name for side in sides if side.name != STOCK]
    return [*boots, *(verdict(turns, side, case) for side in ours for case in _cases(turns, PROGRAMS))]


def verdict(turns: Sequence[Turn], side: str, case: str) -> Result:
    """What all runs of a case say about one of our sides."""
    ran = [turn for turn in turns if case in _cases([turn], PROGRAMS)]
    ours, stock = ([_outcome(turn, name, case) for turn in ran] for name in (side, STOCK))
    reason = next((result.reason for turn in ran for result in turn[side] if result.name == case and result.reason),
                  "no result")
    name = f"{side}: {case}"
    worse = [_below(one, other) for one, other in zip(ours, stock, strict=True)]
    if not any(worse):
        if Outcome.PASSED in ours:
            return passed(NAME, name)
        return skipped(NAME, name, f"{ours[0]} on the unpatched kernel, too: {reason}")
    said = f"{', '.join(ours)}; on the unpatched kernel {', '.join(stock)}: {reason}"
    return failed(NAME, name, said) if all(worse) else skipped(NAME, name, f"unstable: {said}")


def _below(one: Outcome, other: Outcome) -> bool:
    return _BETTER.index(one) < _BETTER.index(other)


def _outcome(turn: Turn, side: str, case: str) -> Outcome:
    """A case that has no result, because its program crashed before, has failed."""
    return next((result.outcome for result in turn[side] if result.name == case), Outcome.FAILED)


def _is_worse(turn: Turn, program: Program) -> bool:
    return any(_below(_outcome(turn, side, case), _outcome(turn, STOCK, case))
               for case in _cases([turn], [program]) for side in turn)


def _is_case(result: Result) -> bool:
    """Whether a result is that of a program or of one of its cases, not that of a boot."""
    return result.name.split(".")[0] in [program.name for program in PROGRAMS]


def _cases(turns: Sequence[Turn], programs: Sequence[Program]) -> list[str]:
    """The names of the programs' cases on any side, in their order."""
    names = [program.name for program in programs]
    found = [result.name for turn in turns for results in turn.values() for result in results
             if result.name.split(".")[0] in names]
    return list(dict.fromkeys(found))


def _sides(context: Context) -> list[Side]:
    ours = build.build(context.board, "ferry", debug=True)
    runs, migrc = guest_boot.write("runs", 1), guest_boot.write("migrc/enabled", 1)
    mtcopy = (guest_boot.load(ours), *guest_boot.select("mtcopy", threads=2))
    return [
        Side(STOCK, build.build(context.board, "stock", debug=True)),
        Side("runs", ours, runs, ("stats/runs/moved",)),
        Side("all", ours, (*mtcopy, *runs, *migrc), ("stats/runs/moved", "migrc/counters/folios"), "mtcopy"),
    ]


def _turn(context: Context, sides: Sequence[Side], programs: Sequence[Program], built: Mapping[str, Path],
          number: int) -> Turn:
    """Boot each side once, and run the programs in turn. The first turn has all of them, and so tests the counters."""
    turn = {}
    for side in sides:
        jobs = [_job(program, built[program.name], side) for program in programs]
        if side.counters and number == 1:
            jobs.append(Job(NAME, f"used-{side.name}", guest_programs.script_line("used.sh", *side.counters), 60))
        turn[side.name] = guest_boot.run_jobs(context, side.kernel, jobs, f"{NAME}-{side.name}-{number}")
    return turn


def _job(program: Program, path: Path, side: Side) -> Job:
    """A program in a directory on ext4, where it also finds itself; with swap in memory."""
    run = shlex.join(["sh", "-c", 'cp "$1" "$0" && cd "$0" && shift && exec "$@"', "@", str(path),
                      f"./{program.name}", *program.arguments])
    command = f"{guest_programs.script_line('with-ext4.sh', DISK_MIB)} {run}"
    migrator = side.migrator if program is PROGRAMS[0] else ""
    return Job(NAME, program.name, command, program.seconds, (*_SWAP_ON, *side.setup), migrator)
