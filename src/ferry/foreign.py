# SPDX-License-Identifier: GPL-2.0
"""Files of Debian packages for another architecture: fetched by apt, unpacked into the cache, never installed."""

from __future__ import annotations

from pathlib import Path

from ferry import apt, paths, proc

_DEBIAN = {"arm64": "arm64"}
"""Debian's name for an architecture, by the kernel's (ARCH=)."""
HINT = "./ferry doctor; apt must know a Debian mirror"


def unpacked(package: str, arch: str) -> Path:
    """The directory that a package of this machine's release, for `arch`, is unpacked in. Raises InfraError."""
    home = _home(package, arch)
    if not home.is_dir():
        with paths.lock(f"debian-{arch}"):
            if not home.is_dir():
                _fetch(package, arch, home)
    return home


def _home(package: str, arch: str) -> Path:
    return paths.cache_dir() / "debian" / f"{apt.release()}-{_DEBIAN[arch]}" / package


def _fetch(package: str, arch: str, home: Path) -> None:
    file = apt.download_foreign(package, _DEBIAN[arch], hint=HINT)
    with paths.publish(home) as scratch:
        proc.capture(["dpkg-deb", "-x", file, scratch])
    file.unlink()
