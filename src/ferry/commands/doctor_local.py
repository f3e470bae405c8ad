# SPDX-License-Identifier: GPL-2.0
"""The findings of `ferry doctor --board local`: what figures the machine can give, and what makes them worthless."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ferry import boards
from ferry.bench import environment
from ferry.commands.finding import Finding
from ferry.control import machine, tree
from ferry.errors import InfraError

MODULES = ("ferry_mtcopy", "ferry_dcbm")
NEXT = "ferry bench move_pages --board local --quick"


def findings() -> Iterator[Finding]:
    """The kernel and its modules, nodes, engines, KVM and huge pages; then the doubts."""
    release = os.uname().release
    yield Finding(not os.geteuid(), "root", "no: settings cannot be changed" if os.geteuid() else "yes",
                  "the same as root")
    there = tree.ROOT.is_dir()
    yield Finding(there, "kernel", release if there else f"{release} has no {tree.ROOT}",
                  "boot a kernel of Folio Ferry")
    yield from (_module(name) for name in MODULES)
    yield from _nodes()
    engines = [f"{one.device}, driver {one.driver}, node {one.node}, channels: {one.channels}"
               for one in machine.engines()]
    yield from (Finding(True, "DMA engine", engine) for engine in engines or ["none"])
    yield Finding(True, "KVM", "/dev/kvm exists" if Path("/dev/kvm").exists() else "none")
    for kind in ("THP", "hugetlb"):
        words = [f"{name.removeprefix(kind).strip()} {value}" for name, value in machine.huge_pages().items()
                 if name.startswith(kind) and value != "never"]
        yield Finding(True, kind, ", ".join(words) or "none")
    yield from _doubts()


def _module(name: str) -> Finding:
    modules = machine.modules()
    path = modules.get(name)
    found = f"not loaded: {path}" if path else "there" if name in modules else "none: its migrators cannot be measured"
    return Finding(True, name, found)


def _nodes() -> Iterator[Finding]:
    """Each node, then whether memory can move between two."""
    for node in machine.nodes():
        memory = f"{node.memory_mib} MiB" if node.memory_mib else "no memory"
        tier = [node.tier] if node.tier else []
        yield Finding(True, f"node {node.number}", ", ".join([memory, f"CPUs {node.cpus or 'none'}", *tier]))
    try:
        start, end = boards.two_nodes(boards.local())
        yield Finding(True, "two nodes", f"benchmarks move memory from node {start} to node {end} and back")
    except InfraError as error:
        yield Finding(False, "two nodes", error.cause, error.hint or "")


def _doubts() -> Iterator[Finding]:
    """What makes figures worthless."""
    share = environment.busy()
    if share > environment.BUSY:
        yield Finding(True, "busy", f"other programs use {share:.0%} of the CPUs", doubt=True)
    for doubt in machine.doubts():
        remedy = f"; remedy: {doubt.remedy}" if doubt.remedy else ""
        yield Finding(True, "figures", doubt.reason + remedy, doubt=True)
