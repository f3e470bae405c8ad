# SPDX-License-Identifier: GPL-2.0
"""Boards: the machines that a kernel runs on. One TOML file each, beside this one; `inherits` names another board.

LOCAL has no file, and no kernel is built for it: it is the machine itself, which runs the kernel already.
"""

from __future__ import annotations

import os
import platform
import shutil
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ferry.control import machine
from ferry.debian import packages
from ferry.errors import AllSkipped, InfraError, UsageError
from ferry.results import document

_HERE = Path(__file__).parent
LOCAL = document.LOCAL


@dataclass(frozen=True)
class Node:
    """A memory node: its size, and its CPUs in QEMU's syntax ("0-1"; empty for a memory-only node)."""

    memory_mib: int
    cpus: str = ""
    latency_ns: int = 0
    """Latency from any CPU as the firmware reports it, with `bandwidth_mibps`; 0: the firmware reports none."""
    bandwidth_mibps: int = 0


@dataclass(frozen=True)
class Board:
    """How to build and to run one board's kernel."""

    name: str
    summary: str
    arch: str
    """ARCH= of the kernel's make."""
    runner: str
    """"qemu" (booted by virtme-ng), "initramfs" (QEMU, without the host's file system), "uml" or LOCAL."""
    kind: str
    """The kind of its figures: "emulated", "native" or "instructions"; never mixed."""
    build: str
    """Boards with the same `build` and fragments share their kernels."""
    image: str
    """The built image, relative to the object directory."""
    targets: tuple[str, ...]
    configs: tuple[str, ...]
    ferry_configs: tuple[str, ...]
    """Added for the ferry kernel only; stock has the same configuration without them."""
    debug_configs: tuple[str, ...]
    cpus: int
    nodes: tuple[Node, ...]
    append: tuple[str, ...]
    """Kernel command line."""
    boot_timeout_s: int
    """From the start to the end of an empty command."""
    build_steps: int
    """Lines of make's output in a whole build, for the first progress bar only."""
    ends: tuple[int, ...] = (0, 1)
    """The nodes between which memory moves."""
    added_mib: int = 0
    """Memory near the last node that belongs to a driver at boot, and can be added at run time (hotplug)."""
    ferry_debug_configs: tuple[str, ...] = ()
    """Added for the ferry kernel's debug variant only: its tests."""
    external: tuple[str, ...] = ()
    """Directories of the clone with modules for both kernels, built by make M=."""
    ferry_external: tuple[str, ...] = ()
    """The same for the ferry kernel only: they use its symbols."""
    emulator: str = "qemu-system-x86_64"
    machine: str = ""
    """QEMU's name of the machine, if the runner does not choose it."""
    qemu_cpu: str = ""
    qemu_options: tuple[str, ...] = ()
    kvm: bool = False
    """Use KVM if it works on this host."""
    devices: tuple[str, ...] = ()
    """Device models (ferry.devices) that QEMU attaches to."""
    device_node: int = 0
    """The memory node of the device models."""
    channels: int = 0
    """DMA channels that copy memory, once `drivers` are loaded, unless a bench asks for another number."""
    drivers: tuple[str, ...] = ()
    """Driver modules with their parameters, in the order in which to load them."""
    needs: tuple[str, ...] = ()
    """Programs that not every host can have: without them the board is skipped."""
    packages: tuple[str, ...] = ()
    """Debian packages for the board's architecture that its guest needs: fetched, never installed."""

    @property
    def memory_mib(self) -> int:
        return sum(node.memory_mib for node in self.nodes)


def names() -> list[str]:
    """Those that a kernel can be built for."""
    return sorted(path.stem for path in _HERE.glob("*.toml"))


def load(name: str) -> Board:
    """The board called `name`. Raises UsageError that lists the known ones."""
    if name == LOCAL:
        return local()
    if name not in names():
        raise UsageError(f"no board is called {name!r}", hint=f"--board {'|'.join(names())}")
    raw = _raw(name)
    unknown = set(raw) - {field.name for field in fields(Board)}
    if unknown:
        raise UsageError(f"{name}.toml: unknown key {', '.join(sorted(unknown))}")
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()}
    values["nodes"] = tuple(Node(**node) for node in raw["nodes"])
    return Board(name=name, **values)


def local() -> Board:
    """The machine itself, as it is now. Its engines count if the kernel has dcbm."""
    nodes = tuple(Node(node.memory_mib, node.cpus) for node in machine.nodes())
    channels = sum(engine.channels for engine in machine.engines()) if "ferry_dcbm" in machine.modules() else 0
    return Board(
        name=LOCAL, summary="this machine, booted into the kernel", arch=platform.machine(), runner=LOCAL,
        kind="emulated" if machine.hypervisor() == machine.EMULATOR else "native", build="", image="", targets=(),
        configs=(), ferry_configs=(), debug_configs=(), cpus=len(os.sched_getaffinity(0)), nodes=nodes,
        ends=machine.ends(), append=(), boot_timeout_s=60, build_steps=0, channels=channels)


def two_nodes(board: Board) -> tuple[int, ...]:
    """The nodes between which memory moves. Raises InfraError if the machine has not so many."""
    if len(board.ends) < 2:
        raise InfraError(f"{board.name}: memory is to move between two nodes, and only {len(board.ends)} has memory",
                         hint="ferry test --board local --suite selftests; or boot with numa=fake=2, for two nodes of "
                              "the same memory")
    return board.ends


def _raw(name: str) -> dict[str, Any]:
    """The keys of NAME.toml over those of the board that it inherits from."""
    own = tomllib.loads((_HERE / f"{name}.toml").read_text())
    inherited = own.pop("inherits", None)
    return {**(_raw(inherited) if inherited else {}), **own}


def unavailable(board: Board) -> str | None:
    """Why the board cannot run on this machine; None if it can. May fetch packages that the board needs."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [program for program in board.needs if not shutil.which(program, path=search)]
    if missing:
        return f"{', '.join(missing)} not installed"
    try:
        for package in board.packages:
            packages.unpacked(package, board.arch)
        if board.devices:
            packages.qemu_with_vfio_user()
    except InfraError as error:
        return str(error)
    return None


def require(board: Board) -> None:
    """Raises AllSkipped if the board cannot run on this machine: that is no failure, but it is reported."""
    if reason := unavailable(board):
        hint = "./ferry doctor, then ./ferry setup (as root)"
        raise AllSkipped(f"skipped: {board.name} cannot run here: {reason}", hint=hint)
