# SPDX-License-Identifier: GPL-2.0
"""The phases of a migration, and the functions that begin them (phases.toml)."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

from ferry.profile.calltree import Node
from ferry.profile.trace import USER

#: What is in no phase of phases.toml: interrupts and other tasks, or the program and the system call's entry.
OTHER = "interrupts and other tasks"
CALL = "system call"
#: The system call's own functions: into which of them the others are inlined, depends on the kernel.
_MOVE_PAGES = frozenset({"__x64_sys_move_pages", "__do_sys_move_pages", "kernel_move_pages", "do_pages_move"})


def load() -> dict[str, str]:
    """The phase of each function, or "caller > function", that begins one; phases in the order of phases.toml."""
    table = tomllib.loads(Path(__file__).with_name("phases.toml").read_text())
    return {function: phase for phase, functions in table.items() for function in functions}


def names() -> list[str]:
    """All phases, in the order of a migration."""
    return [CALL, *dict.fromkeys(load().values()), OTHER]


def split(root: Node) -> dict[str, int]:
    """Instructions by phase, in order. A function belongs to the phase of its nearest caller that has one."""
    begins = load()
    found: Counter[str] = Counter()

    def visit(node: Node, caller: str, phase: str) -> None:
        name = node.function.split(".")[0]
        name = "move_pages" if name in _MOVE_PAGES else name
        phase = begins.get(f"{caller} > {name}") or begins.get(name, phase)
        found[phase] += node.insns
        for child in node.children.values():
            visit(child, name, phase)

    for child in root.children.values():
        visit(child, root.function, CALL if child.function == USER else OTHER)
    return {phase: found[phase] for phase in names()}
