# SPDX-License-Identifier: GPL-2.0
"""The surroundings of a measurement, so that a result can be judged and repeated later."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ferry.boards import LOCAL, Board
from ferry.control import machine
from ferry.debian import packages
from ferry.kernel.toolchain import compiler
from ferry.paths import in_clone, repo_root
from ferry.vm import kvm

#: An idle host's own housekeeping stays well below this share of its CPUs.
BUSY = 0.1


def capture(**more: Any) -> dict[str, Any]:
    """Host, tools, commit and command line; a thing that cannot be found out is None. `more` is added as it is."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "host": host(),
        "python": platform.python_version(),
        "qemu": first_line(["qemu-system-x86_64", "--version"]),
        "gcc": first_line(["gcc", "--version"]),
        "commit": commit(),
        **more,
    }


def tools(board: Board) -> dict[str, str | None]:
    """The emulator of this board and the compiler of its kernel, for capture(), which otherwise names those of x86."""
    emulator = str(packages.qemu_with_vfio_user()) if board.devices else board.emulator
    return {"qemu": first_line([emulator, "--version"]), "gcc": first_line([compiler(board.arch), "--version"])}


def accelerator(board: Board, image: Path) -> str:
    """KVM, TCG or none; figures with different accelerators do not compare."""
    if board.runner == LOCAL:
        found = machine.hypervisor()
        return "TCG" if found == machine.EMULATOR else found.upper() or "none"
    if board.runner != "qemu":
        return "none"
    return "KVM" if kvm.used(board, image) else "TCG"


def host() -> dict[str, Any]:
    """The machine, without its name."""
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": cpu_model(Path("/proc/cpuinfo")),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "busy_before": round(busy(), 3),
    }


def machine_found() -> dict[str, Any]:
    """Nodes, engines and huge pages of this machine, for runs of the board `local`."""
    return {"nodes": [asdict(node) for node in machine.nodes()], "huge_pages": machine.huge_pages(),
            "engines": [asdict(engine) for engine in machine.engines()], "kernel": platform.version()}


def busy(seconds: float = 0.5) -> float:
    """The share of the host's CPU time that others use, watched for `seconds` of doing nothing."""
    before = _jiffies()
    time.sleep(seconds)
    idle, total = (now - then for now, then in zip(_jiffies(), before, strict=True))
    return 1 - idle / total if total else 0.0


def _jiffies() -> tuple[int, int]:
    """Idle and total time since boot, of all CPUs; proc_stat(5)."""
    fields = [int(word) for word in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return fields[3] + fields[4], sum(fields)


def warnings(captured: dict[str, Any]) -> list[str]:
    """Reasons to doubt figures that were measured in these surroundings."""
    share = captured["host"]["busy_before"]
    return [f"the host was busy with other things before this started ({share:.0%} of its CPUs)"] * (share > BUSY)


def cpu_model(cpuinfo: Path) -> str | None:
    """The CPU's name as /proc/cpuinfo gives it."""
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.exists() else None
    return found.group(1) if found else None


def commit() -> str | None:
    """The tool's commit, with `+` where the working tree differs from it; None without a clone."""
    if not in_clone():
        return None
    git = ["git", "-C", str(repo_root())]
    found = first_line([*git, "rev-parse", "HEAD"])
    return found and found + "+" * bool(first_line([*git, "status", "--porcelain"]))


def first_line(command: list[str]) -> str | None:
    """The first line a command prints; None when it fails, prints nothing or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.partition("\n")[0].strip() or None
