# SPDX-License-Identifier: GPL-2.0
"""Finds what a kernel complains of in its console log: a clean exit beside a splat is a failure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_STAMP = r"\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? "
"""printk's time stamp, which tells the kernel's own lines from what a program prints. It may stand behind such a print:
the console and the script's output are two channels into one file.
"""

_KINDS: list[tuple[str, str]] = [
    ("KASAN", r"BUG: KASAN:"),
    ("lockdep", r"WARNING: (?:possible|inconsistent|bad unlock|lock held|held lock|suspicious|Nested)|BUG: MAX_LOCK"),
    ("lockdep", r"INFO: (?:possible|trying to register non-static key)|DEBUG_LOCKS_WARN_ON"),
    ("lockdep", r"turning off the locking correctness validator"),
    ("page table check", r"kernel BUG at mm/page_table_check"),
    ("list corruption", r"list_(?:add|del) corruption"),
    ("soft lockup", r"(?:watchdog: )?(?:BUG: (?:soft|workqueue) lockup|CPU\d+: Watchdog detected hard LOCKUP)"),
    ("RCU stall", r"rcu: INFO: .*(?:stall|starved)|INFO: rcu\S* .*stall"),
    ("hung task", r"INFO: task .* blocked for more than"),
    ("UBSAN", r"UBSAN: "),
    ("panic", r"Kernel panic - not syncing"),
    ("Oops", r"(?:Oops|Internal error): |general protection fault|Unable to handle kernel"),
    ("BUG", r"(?:kernel )?BUG(?: at |: )"),
    ("WARNING", r"WARNING: "),
]
_PATTERNS = [(kind, re.compile(_STAMP + "(?:" + pattern + ")")) for kind, pattern in _KINDS]
_PANIC = re.compile(r"Kernel panic - not syncing")
"""Also without a time stamp: User-Mode Linux and early consoles may drop it."""

_CRIPPLING = frozenset({"Oops", "hung task", "panic"})
"""A thread is dead or stuck, with whatever locks it held: others may wait for them for ever."""

CONTEXT_LINES = 40


@dataclass(frozen=True)
class Found:
    """One splat: its kind, where it stands in the log (from 1), its first line, and the lines that follow."""

    kind: str
    line: int
    text: str
    context: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def _kind(line: str) -> str | None:
    for kind, pattern in _PATTERNS:
        if pattern.search(line):
            return kind
    return "panic" if _PANIC.search(line) else None


def crippling(line: str) -> bool:
    """Whether a kernel that says so may never come to the end of what it was to do."""
    return _kind(line) in _CRIPPLING


@dataclass(frozen=True)
class Report:
    """A report that a test provokes: how its first and its last line begin. It may not hide another splat."""

    first: str
    last: str

    def begins(self, line: str) -> bool:
        return _stripped(line).startswith(self.first)

    def ends(self, line: str) -> bool:
        return _stripped(line).startswith(self.last)


def _stripped(line: str) -> str:
    """A line of the kernel's own, without its time stamp; "" for any other."""
    found = re.search(_STAMP, line)
    return line[found.end() :] if found else ""


def scan(log: str, expected: Sequence[Report] = ()) -> list[Found]:
    """Every splat in a console log, in order, except for reports that are `expected` and complete.

    Of a report only the first line is exempt: another splat among its lines is one, and so is a report without its end.
    """
    lines = log.splitlines()
    provoked = {number for report in expected for number in _complete(lines, report)}
    found = []
    for number, line in enumerate(lines, 1):
        kind = _kind(line)
        if kind and number not in provoked:
            text = (_stripped(line) or line).strip()
            found.append(Found(kind, number, text, tuple(lines[number : number + CONTEXT_LINES])))
    return found


def _complete(lines: Sequence[str], report: Report) -> list[int]:
    """The first lines (from 1) of those reports that end. Two CPUs may report at once: an end is the latest one's."""
    begun: list[int] = []
    complete = []
    for number, line in enumerate(lines, 1):
        if report.begins(line):
            begun.append(number)
        elif report.ends(line) and begun:
            complete.append(begun.pop())
    return complete
