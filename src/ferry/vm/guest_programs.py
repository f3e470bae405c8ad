# SPDX-License-Identifier: GPL-2.0
"""Build the programs of guest/ into the cache, keyed by their content."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from ferry import paths, proc, progress
from ferry.debian import packages
from ferry.errors import InfraError
from ferry.kernel import toolchain


def programs(arch: str = "x86_64", *, static: bool = False) -> dict[str, Path]:
    """Every guest program by its name, for `arch` (ARCH= of the kernel's make); static if that is not this machine's.

    A `static` one for this machine has no debug information either: it is for a package, and holds no directory of
    ours. Without a clone they are those of the installed package. Raises InfraError with the compiler's first error.
    """
    if not paths.in_clone():
        return _in(paths.LIBEXEC)
    variables = ["LDFLAGS=-static", "CFLAGS=-O2"] if static else _cross_variables(arch)
    home = paths.cache_dir() / "guest" / (_key(paths.repo_root() / "guest", arch) + ("-static" if static else ""))
    if not paths.use(home):
        with paths.lock("guest"):
            if not paths.use(home):
                _build(paths.repo_root() / "guest", home, variables)
    return _in(home)


def _in(directory: Path) -> dict[str, Path]:
    return {path.name: path for path in sorted(directory.iterdir()) if os.access(path, os.X_OK) and path.is_file()}


def script_line(name: str, *arguments: object) -> str:
    """The shell line that runs a script of guest/scripts."""
    return shlex.join(script_words(name, *arguments))


def script_words(name: str, *arguments: object) -> list[str]:
    """The words of script_line()."""
    home = paths.repo_root() / "guest" if paths.in_clone() else paths.LIBEXEC
    return ["sh", str(home / "scripts" / name), *map(str, arguments)]


def _sources(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.name == "Makefile" or path.suffix in (".c", ".h"))


def _key(directory: Path, arch: str) -> str:
    digest = hashlib.sha256(toolchain.version(arch).encode())
    for path in _sources(directory):
        digest.update(str(path.relative_to(directory)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _cross_variables(arch: str) -> list[str]:
    """Variables of guest/Makefile for a guest without this machine's libraries."""
    if not toolchain.is_foreign(arch):
        return []
    numa = packages.unpacked("libnuma-dev", arch) / "usr"
    (library,) = numa.glob("lib/*/libnuma.a")
    return [f"CC={toolchain.compiler(arch)}", f"CPPFLAGS=-I{numa / 'include'}", f"LDFLAGS=-static -L{library.parent}"]


def _build(directory: Path, home: Path, variables: Sequence[str]) -> None:
    """Build a copy of the sources, so that the clone stays clean, and keep only the programs."""
    log = paths.cache_dir() / "guest.log"
    with progress.stage("building the guest programs"), paths.publish(home) as scratch:
        work = scratch / "src"
        for path in _sources(directory):
            target = work / path.relative_to(directory)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
        done = proc.run(["make", "-j2", *variables], cwd=work, log=log, timeout=300)
        if done.status:
            reason = toolchain.first_error(done.tail)
            raise InfraError(f"guest/ does not build: {reason}", hint="./ferry setup (libnuma-dev?)", log=log)
        for path in list(work.rglob("*")):
            if path.is_file() and not path.suffix and os.access(path, os.X_OK):
                shutil.move(path, scratch / path.name)
        shutil.rmtree(work)
