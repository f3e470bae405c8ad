# SPDX-License-Identifier: GPL-2.0
"""The command line of virtme-ng and QEMU for a board."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from ferry import proc
from ferry.boards import Board, Node
from ferry.debian import packages
from ferry.errors import UsageError
from ferry.kernel.build import Kernel
from ferry.vm import kvm

ENVIRONMENT = {"VIRTME_NG_CONFIG": os.devnull, "QEMU_AUDIO_DRV": "none"}
"""Without it, virtme-ng would read the user's configuration file and QEMU would look for a sound card."""
NVDIMM_IMAGE = "nvdimm"
"""The NVDIMM's file in the run's directory, while a guest runs."""
GUEST_MIB = 1024
"""Memory of each node beside the struct pages of the private device: 64 bytes for every 4096."""


def command_line(board: Board, kernel: Kernel, share: Path, append: Sequence[str],
                 script: str | None) -> list[str | Path]:
    """The line that runs a script of the share, or a shell on the terminal, with QEMU's monitor, if there is none."""
    newer = packages.qemu_with_vfio_user() if board.devices else None
    # virtme-ng's own error message does not name it.
    if not newer and not shutil.which(packages.QEMU):
        raise proc.missing_program(packages.QEMU)
    use_kvm = kvm.used(board, kernel.image)
    line: list[str | Path] = ["vng", "--verbose", "--disable-microvm", "--force-9p"]
    line += [] if script is None else ["--disable-monitor"]
    line += [] if use_kvm else ["--disable-kvm"]
    line += ["--qemu", newer] if newer else []
    # A socket for each node with CPUs: the kernel warns if nodes share a last-level cache.
    sockets = sum(bool(node.cpus) for node in board.nodes)
    line += ["--run", kernel.image, "--cpus", f"{board.cpus},sockets={sockets}", "--memory", f"{board.memory_mib}M"]
    line += [word for node in board.nodes for word in ("--numa", _numa_node(board, node))]
    line += ["--numa-distance", "0,1=20"] if len(board.nodes) > 1 else []
    line += ["--user", "root", "--cwd", share, "--rwdir", f"{share}={share}"]
    for word in (*board.append, *append):
        line += ["--append", word]
    options = [*([] if use_kvm or not board.qemu_cpu else ["-cpu", board.qemu_cpu]), *_tier_options(board)]
    options += board.qemu_options
    line += [f"--qemu-opts={shlex.join(options)}"] if options else []
    return line if script is None else [*line, "--exec", f"sh {shlex.quote(str(share / script))}"]


def _numa_node(board: Board, node: Node) -> str:
    """A node in virtme-ng's syntax; it passes the words after the size to QEMU."""
    near = _cpu_nodes(board)[0] if _tiered(board) and not node.cpus else None
    return f"{node.memory_mib}M" + (f",cpus={node.cpus}" if node.cpus else "") + (
        f",initiator={near}" if near is not None else "")


def _tiered(board: Board) -> bool:
    return any(node.latency_ns for node in board.nodes)


def _cpu_nodes(board: Board) -> list[int]:
    return [number for number, node in enumerate(board.nodes) if node.cpus]


def _tier_options(board: Board) -> list[str]:
    """The ACPI table (HMAT) of each node's latency and bandwidth, from which the kernel makes memory tiers."""
    if not _tiered(board):
        return []
    options = ["-machine", "hmat=on"]
    for target, node in enumerate(board.nodes):
        for initiator in _cpu_nodes(board):
            path = f"hmat-lb,initiator={initiator},target={target},hierarchy=memory"
            options += ["-numa", f"{path},data-type=access-latency,latency={node.latency_ns}"]
            options += ["-numa", f"{path},data-type=access-bandwidth,bandwidth={node.bandwidth_mibps}M"]
    return options


def with_gigantic(board: Board, count: int) -> Board:
    """The board with memory on each node for `count` hugetlb folios of 1 GiB, which the kernel reserves at boot.

    Raises UsageError if `count` is not 0 and the board is not an x86 machine of virtme-ng.
    """
    if not count:
        return board
    if board.runner != "qemu" or board.arch != "x86_64":
        raise UsageError(f"{board.name} has no memory for folios of 1g", hint="--board x86-numa")
    # Each is an aligned GiB that nothing else is in. The last GiB of each node has memory that the kernel takes before
    # it reserves; the first two of node 0 have the kernel at one end, the firmware's tables at the other.
    nodes = tuple(dataclasses.replace(node, memory_mib=(count + (1 if number else 3)) << 10)
                  for number, node in enumerate(board.nodes))
    reserved = ",".join(f"{number}:{count}" for number in range(len(nodes)))
    return dataclasses.replace(board, nodes=nodes, append=(*board.append, "hugepagesz=1G", f"hugepages={reserved}"))


def with_nvdimm(board: Board, gib: int, run_dir: Path) -> Board:
    """The board with an NVDIMM, and with memory for the struct pages of a device that has none."""
    pages_mib = (gib << 10) // 64
    nodes = tuple(Node(GUEST_MIB + pages_mib, node.cpus) for node in board.nodes)
    memory = sum(node.memory_mib for node in nodes)
    # share=off: the guest's stores go to private copies of the file's zeros. reserve=off: the guest writes few of the
    # pages, so the host does not need that much memory.
    backing = f"memory-backend-file,id=pmem,share=off,reserve=off,mem-path={run_dir / NVDIMM_IMAGE},size={gib}G"
    options = ("-machine", "nvdimm=on", "-m", f"slots=1,maxmem={memory + ((gib + 1) << 10)}M",
               "-object", backing, "-device", "nvdimm,id=nvdimm,memdev=pmem")
    return dataclasses.replace(board, nodes=nodes, qemu_options=(*board.qemu_options, *options))
