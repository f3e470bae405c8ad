# SPDX-License-Identifier: GPL-2.0
"""The kernel that this machine runs, in place of a built one: for the board `local`."""

from __future__ import annotations

import os
from pathlib import Path

from ferry.control import machine, tree
from ferry.errors import InfraError
from ferry.kernel.build import Kernel


def kernel() -> Kernel:
    """The running kernel; those of its modules that are not loaded are beside it, the others need no file.

    Raises InfraError without root's rights, and if the kernel is none of ours.
    """
    if os.geteuid():
        raise InfraError("the board local needs root: it changes settings of the running kernel",
                         hint="the same command as root")
    system = os.uname()
    if not tree.ROOT.is_dir():
        raise InfraError(f"{tree.ROOT} does not exist: the running kernel, {system.release}, has no CONFIG_FERRY",
                         hint="boot a kernel of Folio Ferry, or choose another board")
    found = machine.modules()
    return Kernel(
        image=Path("/boot", f"vmlinuz-{system.release}"),
        modules={name: path for name, path in found.items() if path},
        config=Path("/boot", f"config-{system.release}"), key=f"{system.release} {system.version}",
        log=Path("/dev/kmsg"), version=system.release, tree=Path("/lib/modules", system.release, "build"),
        present=frozenset(name for name, path in found.items() if not path))
