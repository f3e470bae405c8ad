# SPDX-License-Identifier: GPL-2.0
"""Whether KVM can boot a kernel on this host. /dev/kvm can exist and not work, so a probe boot decides."""

from __future__ import annotations

import os
from pathlib import Path

from ferry import paths, proc, progress
from ferry.boards import Board
from ferry.errors import FerryError

PROBE_S = 15.0
"""Under KVM the probe prints within a second, if KVM works."""


def works(image: Path) -> bool:
    """True if `image` boots under KVM on this host."""
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
    """True if a boot of this board runs under KVM."""
    return board.kvm and works(image)


def _probe(image: Path) -> bool:
    """Boot without a root file system: KVM works if the kernel gets to the panic about that."""
    command = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "256M", "-nodefaults", "-display", "none"]
    command += ["-serial", "stdio", "-no-reboot", "-kernel", str(image)]
    seen: list[str] = []
    try:
        proc.run([*command, "-append", "console=ttyS0 panic=-1"], timeout=PROBE_S, progress=seen.append)
    except FerryError:
        return False
    return any("Kernel panic" in line for line in seen)
