# SPDX-License-Identifier: GPL-2.0
"""The command line of User-Mode Linux, whose root file system is the host's, read-only."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from ferry.boards import Board
from ferry.kernel.build import Kernel

SOCKETS = Path("/dev/shm/ferry-uml")


def command_line(board: Board, kernel: Kernel, share: Path, append: Sequence[str], script: str) -> list[str | Path]:
    """UML's init is a script: it mounts the share over the host's root, runs the command and powers off."""
    init = share / ".ferry-init"
    quoted = shlex.quote(str(share))
    init.write_text(
        "#!/bin/sh\nmount -t proc proc /proc\nmount -t sysfs sysfs /sys\nmount -t debugfs none /sys/kernel/debug\n"
        "mount -t tmpfs tmpfs /dev/shm 2>/dev/null\n"
        f"mount -t hostfs -o {quoted} none {quoted}\nsh {quoted}/{script}\n"
        # Powering off by sysrq needs no program of an init system.
        "sync\nexec poweroff -f 2>/dev/null || echo o >/proc/sysrq-trigger\nsleep 5\n"
    )
    init.chmod(0o755)
    line: list[str | Path] = [kernel.image, f"mem={board.memory_mib}M", f"ncpus={board.cpus}", "root=/dev/root"]
    line += ["rootfstype=hostfs", "ro", f"init={init}", "con=null", "con0=null,fd:1", "console=tty0", "panic=-1"]
    # UML panics if it cannot make the directory of its socket, by default ~/.uml.
    line.append(f"uml_dir={SOCKETS}")
    return [*_confined(share), *line, *board.append, *append]


def _confined(share: Path) -> list[str | Path]:
    """The words before UML's own that let root's UML write to the share only.

    The guest's kernel alone enforces that its root is read-only, and that kernel is under test; QEMU enforces it by
    itself. An ordinary user's UML may write no more than the user.
    """
    if os.geteuid():
        return []
    return ["bwrap", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--bind", share, share]
