# SPDX-License-Identifier: GPL-2.0
"""Find the kernel's reports of problems (splats) in a console log; with one, a boot fails whatever its exit status."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry.errors import Splat

_STAMP = r"\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? "
"""printk's time stamp, which distinguishes the kernel's lines from those of programs. A program's output can precede it
in the line, because the console and the script's output are two streams into one file.
"""

_KINDS: list[tuple[str, str]] = [
    ("KASAN", r"BUG: KASAN:"),
    ("lockdep", r"WARNING: (?:possible|inconsistent|bad unlock|lock held|held lock|suspicious|Nested)"),
    ("lockdep", r"\[ BUG: |BUG: MAX_LOCK"),
    ("lockdep", r"INFO: (?:possible|trying to register non-static key)|DEBUG_LOCKS_WARN_ON"),
    ("lockdep", r"turning off the locking correctness validator"),
    ("page table check", r"kernel BUG at mm/page_table_check"),
    ("list corruption", r"list_(?:add|del) corruption"),
    ("soft lockup", r"(?:watchdog: )?(?:BUG: (?:soft|workqueue) lockup|CPU\d+: Watchdog detected hard LOCKUP)"),
    ("RCU stall", r"rcu: INFO: .*(?:stall|starved)|INFO: rcu\S* .*stall"),
    ("hung task", r"INFO: task .* blocked (?:in I/O wait )?for more than"),
    ("UBSAN", r"UBSAN: "),
    ("write to a free page", r"pagealloc: (?:single bit error|memory corruption)"),
    ("memory leak", r"kmemleak: \d+ new suspected memory leaks"),
    ("a check that ended", r"DMA-API: .*disabl|ODEBUG: Out of memory|kmemleak: .*detector disabled"),
    ("panic", r"Kernel panic - not syncing"),
    ("Oops", r"(?:Oops|Internal error): |general protection fault|Unable to handle kernel"),
    ("bad page table", r"\S+:\d+: bad p[gmu4]+d |get_swap_device: Bad swap (?:file|offset) entry"),
    ("damaged file system", r"EXT4-fs error "),
    ("double name in sysfs", r"sysfs: cannot create duplicate filename"),
    ("BUG", r"(?:kernel )?BUG(?: at |: )"),
    ("WARNING", r"WARNING: "),
]
_PATTERNS = [(kind, re.compile(_STAMP + "(?:" + pattern + ")")) for kind, pattern in _KINDS]
_PANIC = re.compile(r"Kernel panic - not syncing")
"""Accepted without a time stamp: User-Mode Linux and early consoles print none."""

_CRIPPLING = frozenset({"Oops", "hung task", "panic"})
"""A thread is dead or stuck with the locks that it held: other threads may wait for these for ever."""

CONTEXT_LINES = 40


@dataclass(frozen=True)
class Found:
    """One splat: its kind, its line number in the log (from 1), its first line, and the lines after it."""

    kind: str
    line: int
    text: str
    context: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"

    @property
    def crippling(self) -> bool:
        """Whether the kernel may never finish its command after it."""
        return self.kind in _CRIPPLING


def _kind(line: str) -> str | None:
    for kind, pattern in _PATTERNS:
        if pattern.search(line):
            return kind
    return "panic" if _PANIC.search(line) else None


def crippling(line: str) -> bool:
    """Whether a kernel that prints this line may never finish its command."""
    return _kind(line) in _CRIPPLING


@dataclass(frozen=True)
class Report:
    """A report that a test provokes: the beginnings of its first and its last line. It does not hide another splat."""

    first: str
    last: str

    def begins(self, line: str) -> bool:
        return _stripped(line).startswith(self.first)

    def ends(self, line: str) -> bool:
        return _stripped(line).startswith(self.last)


def _stripped(line: str) -> str:
    """A line of the kernel without its time stamp; "" for any other line."""
    found = re.search(_STAMP, line)
    return line[found.end() :] if found else ""


def scan(log: str, expected: Sequence[Report] = ()) -> list[Found]:
    """Every splat in a console log, in order, except for reports that are `expected` and complete.

    Only the first line of a report is exempt: a splat among its other lines counts, and so does a report without end.
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


def refuse(console: Path, expected: Sequence[Report] = ()) -> None:
    """Raises Splat, which names the first one, if the console log has one that is not expected."""
    found = scan(console.read_text(errors="replace"), expected) if console.is_file() else []
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise Splat(f"kernel splat: {found[0]}{more}, line {found[0].line}", hint="read the log", log=console)


def _complete(lines: Sequence[str], report: Report) -> list[int]:
    """The first lines (from 1) of complete reports. If two CPUs report at once, an end is that of the later report."""
    begun: list[int] = []
    complete = []
    for number, line in enumerate(lines, 1):
        if report.begins(line):
            begun.append(number)
        elif report.ends(line) and begun:
            complete.append(begun.pop())
    return complete
