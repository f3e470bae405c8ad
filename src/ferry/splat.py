# SPDX-License-Identifier: GPL-2.0
"""Finds what a kernel complains of in its console log: a clean exit beside a splat is a failure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STAMP = r"^(?:<\d>)?\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? "
"""printk's time stamp, which tells the kernel's own lines from what a program prints on the same console."""

_KINDS: list[tuple[str, str]] = [
    ("KASAN", r"BUG: KASAN:"),
    ("lockdep", r"WARNING: (?:possible|inconsistent|bad unlock|lock held|held lock|suspicious|Nested)|BUG: MAX_LOCK"),
    ("lockdep", r"INFO: (?:possible|trying to register non-static key)|DEBUG_LOCKS_WARN_ON"),
    ("lockdep", r"turning off the locking correctness validator"),
    ("page table check", r"kernel BUG at mm/page_table_check"),
    ("list corruption", r"list_(?:add|del) corruption"),
    ("soft lockup", r"(?:watchdog: )?BUG: (?:soft|workqueue) lockup|Watchdog detected hard LOCKUP"),
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


def scan(log: str) -> list[Found]:
    """Every splat in a console log, in order."""
    lines = log.splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        if kind := _kind(line):
            text = re.sub(_STAMP, "", line).strip()
            found.append(Found(kind, number, text, tuple(lines[number : number + CONTEXT_LINES])))
    return found
