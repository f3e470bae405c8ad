# SPDX-License-Identifier: GPL-2.0
"""Debian packages that are fetched and unpacked into the cache, never installed.

They are packages for another architecture; a QEMU with vfio-user from backports, with all its libraries, because the
host may have older ones; and programs that run only in a guest, such as redis-server or fio.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from ferry import paths, proc, progress
from ferry.debian import apt
from ferry.errors import InfraError

QEMU = "qemu-system-x86_64"
PACKAGE = "qemu-system-x86"
SUITES = ("trixie", "trixie-backports")
"""The last one has the package, the first its dependencies."""
DEVICE = "vfio-user-pci"
"""In QEMU since 10.1."""
UNPACKED_BYTES = 400_000_000
"""With the .deb files."""
_QEMU_HINT = "check the network and apt's mirrors, or install QEMU 10.1"

# The loader of the same Debian release as the libraries, and firmware and modules of the same build as the program.
_WRAPPER = f"""#!/bin/sh
# Debian's {QEMU} with the libraries it was built for.
root=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)/unpacked/usr
QEMU_MODULE_DIR=$root/lib/x86_64-linux-gnu/qemu
export QEMU_MODULE_DIR
exec "$root/lib64/ld-linux-x86-64.so.2" --library-path "$root/lib/x86_64-linux-gnu" "$root/bin/{QEMU}" \\
	-L "$root/share/qemu" -L "$root/share/seabios" "$@"
"""


def qemu_at_hand() -> Path | None:
    """A QEMU with vfio-user: the host's own, or the one in the cache; None if there is neither."""
    installed = shutil.which(QEMU)
    if installed and _has_device(Path(installed)):
        return Path(installed)
    return _qemu_home() / QEMU if paths.use(_qemu_home()) else None


def qemu_with_vfio_user() -> Path:
    """A QEMU with vfio-user; fetched on first use if the host's own is too old. Raises InfraError."""
    if found := qemu_at_hand():
        return found
    with paths.lock("qemu"):
        if not paths.use(_qemu_home()):
            _fetch_qemu(_qemu_home())
    return _qemu_home() / QEMU


def _qemu_home() -> Path:
    return paths.cache_dir() / "qemu"


def _has_device(program: Path) -> bool:
    """Ask the program itself: its version does not tell how it was built."""
    try:
        return f"{DEVICE} options" in proc.capture([program, "-M", "none", "-device", f"{DEVICE},help"])
    except (InfraError, OSError):
        return False


def _fetch_qemu(home: Path) -> None:
    paths.need_disk(paths.cache_dir(), UNPACKED_BYTES, "unpacking QEMU")
    packages = apt.download_all(PACKAGE, SUITES, hint=_QEMU_HINT)
    with paths.publish(home) as scratch:
        _unpack(packages, scratch / "unpacked", "QEMU")
        wrapper = write_wrapper(scratch)
        if not _has_device(wrapper):
            raise InfraError(f"Debian's {PACKAGE} does not run here, or has no {DEVICE}", hint=_QEMU_HINT)


def _unpack(files: Sequence[Path], into: Path, name: str) -> None:
    """Unpack the .deb files that apt.download_all() left, and remove them."""
    with progress.stage(f"unpacking {name}") as stage:
        for number, file in enumerate(files):
            stage.update(number, len(files), file.name)
            proc.capture(["dpkg-deb", "-x", file, into])
    shutil.rmtree(files[0].parent)


def with_libraries(package: str) -> Path:
    """The directory with an unpacked package of this machine's release and all that it depends on. Raises InfraError.

    run_unpacked() runs a program of it.
    """
    home = paths.cache_dir() / "debian" / f"{apt.release()}-with-libraries" / package
    if not paths.use(home):
        with paths.lock("debian-with-libraries"):
            if not paths.use(home):
                files = apt.download_all(package, [apt.release()], hint=HINT)
                with paths.publish(home) as scratch:
                    _unpack(files, scratch, package)
    return home


def run_unpacked(home: Path, program: str) -> list[str]:
    """The words that run a program of with_libraries(), by the loader that fits its libraries. Raises InfraError.

    Debian 12 has some programs in /sbin that Debian 13 has in /usr/sbin, so the name is without a directory.
    """
    loader = next(home.glob("**/ld-linux-*.so.*"), None)
    path = next(home.glob(f"**/*bin/{program}"), None)
    if loader is None or path is None:
        raise InfraError(f"{home} has no {program if loader else 'loader of shared libraries'}", hint=HINT)
    libraries = [str(path) for path in sorted({path.parent for path in home.glob("**/*.so.*")})]
    return [str(loader), "--library-path", ":".join(libraries), str(path)]


def write_wrapper(home: Path) -> Path:
    """Write the script that runs the QEMU unpacked beside it, wherever that is."""
    wrapper = home / QEMU
    wrapper.write_text(_WRAPPER)
    wrapper.chmod(0o755)
    return wrapper


_DEBIAN = {"arm64": "arm64"}
"""The kernel's name of an architecture (ARCH=) -> Debian's."""
HINT = "./ferry doctor; apt must know a Debian mirror"


def unpacked(package: str, arch: str) -> Path:
    """The directory with an unpacked package of this machine's release for `arch`. Raises InfraError."""
    home = _home(package, arch)
    if not paths.use(home):
        with paths.lock(f"debian-{arch}"):
            if not paths.use(home):
                _fetch(package, arch, home)
    return home


def _home(package: str, arch: str) -> Path:
    return paths.cache_dir() / "debian" / f"{apt.release()}-{_DEBIAN[arch]}" / package


def _fetch(package: str, arch: str, home: Path) -> None:
    file = apt.download_foreign(package, _DEBIAN[arch], hint=HINT)
    with paths.publish(home) as scratch:
        proc.capture(["dpkg-deb", "-x", file, scratch])
    file.unlink()
