# SPDX-License-Identifier: GPL-2.0
"""Whether KVM can boot a kernel here: /dev/kvm may be there and useless, so a probe boot decides, once a host boot."""

from __future__ import annotations

import os
from pathlib import Path

from ferry import paths, proc, progress
from ferry.boards import Board
from ferry.errors import FerryError

PROBE_S = 15.0
"""A kernel that runs under KVM says so within a second; one that hangs never does."""


def works(image: Path) -> bool:
    """True when `image` says its first words under KVM on this host."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    record = paths.cache_dir() / f"kvm-{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"
    if not record.is_file():
        progress.note("probing KVM (once per boot of this host)")
        answer = "yes" if _probe(image) else "no"
        progress.note(f"KVM works: {answer}")
        record.write_text(answer)
    return record.read_text() == "yes"


def used(board: Board, image: Path) -> bool:
    """True when a boot of this board runs under KVM."""
    return board.kvm and works(image)


def _probe(image: Path) -> bool:
    """Boot without a root: a kernel that gets as far as the panic about it works."""
    command = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "256M", "-nodefaults", "-display", "none"]
    command += ["-serial", "stdio", "-no-reboot", "-kernel", str(image)]
    seen: list[str] = []
    try:
        proc.run([*command, "-append", "console=ttyS0 panic=-1"], timeout=PROBE_S, progress=seen.append)
    except FerryError:
        return False
    return any("Kernel panic" in line for line in seen)
