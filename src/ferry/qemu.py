# SPDX-License-Identifier: GPL-2.0
"""A QEMU that can attach to device models by vfio-user: the host's own, or Debian's from backports, in the cache.

The packages are unpacked, not installed, with all the libraries they name: the host may have older ones.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from ferry import apt, paths, proc, progress
from ferry.errors import InfraError

PROGRAM = "qemu-system-x86_64"
PACKAGE = "qemu-system-x86"
SUITES = ("trixie", "trixie-backports")
"""The last one has it; the first has what it depends on."""
DEVICE = "vfio-user-pci"
"""In QEMU since 10.1."""
UNPACKED_BYTES = 400_000_000
"""With the packages it comes from."""
_HINT = "check the network and apt's mirrors, or install QEMU 10.1"

# The loader of the same Debian release as the libraries, and firmware and modules of the same build as the program.
_WRAPPER = f"""#!/bin/sh
# Debian's {PROGRAM} with the libraries it was built for.
root=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)/unpacked/usr
QEMU_MODULE_DIR=$root/lib/x86_64-linux-gnu/qemu
export QEMU_MODULE_DIR
exec "$root/lib64/ld-linux-x86-64.so.2" --library-path "$root/lib/x86_64-linux-gnu" "$root/bin/{PROGRAM}" \\
	-L "$root/share/qemu" -L "$root/share/seabios" "$@"
"""


def at_hand() -> Path | None:
    """The program to run, when it is the host's own or was fetched before."""
    installed = shutil.which(PROGRAM)
    if installed and _has_device(Path(installed)):
        return Path(installed)
    return _home() / PROGRAM if _home().is_dir() else None


def with_vfio_user() -> Path:
    """The program to run; fetched on first use where the host's own is too old. Raises InfraError."""
    if found := at_hand():
        return found
    with paths.lock("qemu"):
        if not _home().is_dir():
            _fetch(_home())
    return _home() / PROGRAM


def _home() -> Path:
    return paths.cache_dir() / "qemu"


def _has_device(program: Path) -> bool:
    """Asked of the program itself: its version says little about how it was built."""
    try:
        return f"{DEVICE} options" in proc.capture([program, "-M", "none", "-device", f"{DEVICE},help"])
    except (InfraError, OSError):
        return False


def _fetch(home: Path) -> None:
    paths.need_disk(paths.cache_dir(), UNPACKED_BYTES, "unpacking QEMU")
    packages = apt.download_all(PACKAGE, SUITES, hint=_HINT)
    with progress.stage("unpacking QEMU") as stage, paths.publish(home) as scratch:
        for number, package in enumerate(packages):
            stage.update(number, len(packages), package.name)
            proc.capture(["dpkg-deb", "-x", package, scratch / "unpacked"])
        wrapper = write_wrapper(scratch)
        if not _has_device(wrapper):
            raise InfraError(f"Debian's {PACKAGE} does not run here, or has no {DEVICE}", hint=_HINT)
    shutil.rmtree(packages[0].parent)


def write_wrapper(home: Path) -> Path:
    """The script that runs what is unpacked beside it, wherever that is."""
    wrapper = home / PROGRAM
    wrapper.write_text(_WRAPPER)
    wrapper.chmod(0o755)
    return wrapper
