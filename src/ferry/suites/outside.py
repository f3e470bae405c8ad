# SPDX-License-Identifier: GPL-2.0
"""Test programs that are not ours, on the unpatched kernel and on ours with everything on, compared case by case.

Such programs fail here and there on any kernel, on an emulated one in particular: a slow machine misses their
deadlines, a small one has no memory for them. Only what is worse on our kernel counts. A case that is worse is
repeated on both kernels: it fails the suite if all runs agree. A splat counts at once, unless the unpatched kernel
reports the same.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ferry.errors import Splat
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot, outside_programs
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.outside_programs import Program
from ferry.suites.result import Outcome, Result, failed, passed, skipped
from ferry.vm import guest_programs, splat

NAME = "outside"
STOCK = "stock"
#: Of a case that is worse on our kernel: runs on each kernel.
RUNS = 3
_BETTER = (Outcome.FAILED, Outcome.SKIPPED, Outcome.PASSED)


@dataclass(frozen=True)
class Side:
    """One of the kernels that are compared: `setup` are the shell lines that switch its features on.

    The programs have tested nothing of ours unless `counters` below /sys/kernel/mm/migration are above 0 in the end,
    and `migrator` has copied in the first program of each boot.
    """

    name: str
    kernel: Kernel
    setup: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    migrator: str = ""


_ZRAM = "/sys/block/zram0/disksize"
_SWAP_ON = (f'if [ "$(cat {_ZRAM})" = 0 ]; then echo 256M >{_ZRAM}; mkswap /dev/zram0 >&2; swapon /dev/zram0; fi',)

#: The results of one round of boots of each side.
Turn = Mapping[str, Sequence[Result]]


def run(context: Context) -> list[Result]:
    programs = outside_programs.all_programs()
    sides = _sides(context)
    turns: list[Turn] = [_turn(context, sides, programs, 1)]
    doubtful = [program for program in programs if _is_worse(turns[0], program)]
    for number in range(2, RUNS + 1 if doubtful else 0):
        turns.append(_turn(context, sides, doubtful, number))
    names = [program.name for program in programs]
    boots = {side.name: [result for turn in turns for result in turn[side.name] if not _is_case(result, names)]
             for side in sides}
    ours = [side.name for side in sides if side.name != STOCK]
    return [*judged(boots), *(verdict(turns, side, case) for side in ours for case in _cases(turns, names))]


def verdict(turns: Sequence[Turn], side: str, case: str) -> Result:
    """What all runs of a case say about one of our sides. One that only some runs have is not worse in all."""
    ran = [turn for turn in turns if any(result.name == case for results in turn.values() for result in results)]
    ours, stock = ([_outcome(turn, name, case) for turn in ran] for name in (side, STOCK))
    reason = next((result.reason for turn in ran for result in turn[side] if result.name == case and result.reason),
                  "no result")
    name = f"{side}: {case}"
    worse = [_below(one, other) for one, other in zip(ours, stock, strict=True)]
    said = f"{', '.join(ours)}; on the unpatched kernel {', '.join(stock)}: {reason}"
    if sum(worse) >= RUNS:
        result = failed(NAME, name, said)
    elif any(worse):
        result = skipped(NAME, name, f"unstable: {said}")
    elif Outcome.PASSED in ours:
        result = passed(NAME, name)
    else:
        result = skipped(NAME, name, f"{ours[0]} on the unpatched kernel, too: {reason}")
    return dataclasses.replace(result, compared={"ours": " ".join(ours), STOCK: " ".join(stock)})


def judged(boots: Mapping[str, Sequence[Result]]) -> list[Result]:
    """The boots' own results. A splat of the unpatched kernel, and the same one on ours, is shown as skipped.

    If the unpatched kernel died of one, there is nothing to compare with, and that is a failure.
    """
    known = {_signature(found) for result in boots[STOCK] for found in _splats(result)}
    return [_judged(result, side == STOCK, known) for side, results in boots.items() for result in results]


def _judged(result: Result, is_stock: bool, known: set[str]) -> Result:
    splats = _splats(result)
    if not splats or (is_stock and any(found.crippling for found in splats)):
        return result
    new = [found for found in splats if _signature(found) not in known]
    if new:
        return dataclasses.replace(result, reason=f"not on the unpatched kernel: {new[0]}, line {new[0].line}")
    which = "the unpatched kernel" if is_stock else "this and the unpatched kernel"
    return skipped(NAME, result.name, f"of {which}: {result.reason}", result.log)


def _splats(result: Result) -> list[splat.Found]:
    if result.status != Splat.status or result.log is None:
        return []
    return splat.scan(result.log.read_text(errors="replace"))


def _signature(found: splat.Found) -> str:
    """A report without line numbers, offsets, CPUs and process IDs, which differ between two kernels or boots."""
    return re.sub(r"0x[0-9a-f]+|\d+", "N", str(found))


def _below(one: Outcome, other: Outcome) -> bool:
    return _BETTER.index(one) < _BETTER.index(other)


def _outcome(turn: Turn, side: str, case: str) -> Outcome:
    """A case without a result has failed: its program crashed before. A program's own end is reported only if bad."""
    reported_if_bad = "." not in case or case.endswith(".ktap")
    return next((result.outcome for result in turn[side] if result.name == case),
                Outcome.PASSED if reported_if_bad else Outcome.FAILED)


def _is_worse(turn: Turn, program: Program) -> bool:
    return any(_below(_outcome(turn, side, case), _outcome(turn, STOCK, case))
               for case in _cases([turn], [program.name]) for side in turn)


def _is_case(result: Result, programs: Sequence[str]) -> bool:
    """Whether a result is that of a program or of one of its cases, not that of a boot."""
    return result.name.split(".")[0] in programs


def _cases(turns: Sequence[Turn], programs: Sequence[str]) -> list[str]:
    """The names of the programs' cases on any side, in their order."""
    found = [result.name for turn in turns for results in turn.values() for result in results
             if _is_case(result, programs)]
    return list(dict.fromkeys(found))


def _sides(context: Context) -> list[Side]:
    ours = build.build(context.board, "ferry", debug=True)
    runs, migrc = guest_boot.write("runs", 1), guest_boot.write("migrc/enabled", 1)
    mtcopy = (guest_boot.load(ours), *guest_boot.select("mtcopy", threads=2))
    return [
        Side(STOCK, build.build(context.board, "stock", debug=True)),
        Side("all", ours, (*mtcopy, *runs, *migrc), ("stats/runs/moved", "migrc/counters/folios"), "mtcopy"),
    ]


def _turn(context: Context, sides: Sequence[Side], programs: Sequence[Program], number: int) -> Turn:
    """Boot each side, and run the programs in turn; those that are alone have a boot of their own."""
    boots = [("", [program for program in programs if not program.alone])]
    boots += [(f"-{program.name}", [program]) for program in programs if program.alone]
    return {side.name: [result for name, inside in boots if inside
                        for result in _boot(context, side, inside, f"{NAME}{name}-{side.name}-{number}", number)]
            for side in sides}


def _boot(context: Context, side: Side, programs: Sequence[Program], name: str, number: int) -> list[Result]:
    """The guest prints when a program ends, at the latest. Otherwise it hangs, and need not be awaited for hours."""
    jobs = _jobs(programs, side, number)
    silence_s = context.board.boot_timeout_s + max(job.seconds for job in jobs)
    return paired(guest_boot.run_jobs(context, side.kernel, jobs, name, silence_s=silence_s))


def paired(results: Sequence[Result]) -> list[Result]:
    """The results of a boot, with N for the numbers in a name where they tell no two cases of the boot apart.

    Some programs put what they measured into a case's name, and the other kernel's case would have another one.
    """
    numberless = [program + dot + re.sub(r"\d+(\.\d+)?", "N", case)
                  for program, dot, case in (result.name.partition(".") for result in results)]
    count = Counter(numberless)
    return [dataclasses.replace(result, name=name if count[name] == 1 else result.name)
            for result, name in zip(results, numberless, strict=True)]


def _jobs(programs: Sequence[Program], side: Side, number: int) -> list[Job]:
    """The jobs of a boot. Those of the first turn, which has all programs, also test that our code ran."""
    jobs: list[Job] = []
    for program in programs:
        command = shlex.join(["timeout", "-k", "10", str(program.seconds), "sh", "-c", program.command])
        load = () if not program.module else (guest_boot.load(side.kernel, program.module),)
        migrator = side.migrator if number == 1 and not jobs else ""
        jobs.append(Job(NAME, program.name, command, program.seconds + 10, (*_SWAP_ON, *load, *side.setup), migrator))
    if side.counters and number == 1:
        jobs.append(Job(NAME, f"used-{side.name}", guest_programs.script_line("used.sh", *side.counters), 60))
    return jobs
