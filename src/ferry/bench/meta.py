# SPDX-License-Identifier: GPL-2.0
"""The surroundings of a measurement, so that a result can be judged and repeated later."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ferry.paths import repo_root


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


def host() -> dict[str, Any]:
    """The machine, without its name."""
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": cpu_model(Path("/proc/cpuinfo")),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_1min": round(os.getloadavg()[0], 2),
    }


def cpu_model(cpuinfo: Path) -> str | None:
    """The CPU's name as /proc/cpuinfo gives it."""
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.exists() else None
    return found.group(1) if found else None


def commit() -> str | None:
    """The tool's commit, with `+` where the working tree differs from it."""
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
