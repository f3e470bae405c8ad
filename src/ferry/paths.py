# SPDX-License-Identifier: GPL-2.0
"""Directories: the clone, the cache outside of it, the runs; locks, and files that appear whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ferry import progress
from ferry.errors import InfraError

CONSOLE = "console.log"
"""In a run: the consoles of its boots."""
RAW = "raw"
"""In a run: the files that the guests wrote. It exists from the first boot on."""
LIBEXEC = Path("/usr/libexec/folio-ferry")
"""Of the installed package: the guest programs, and their scripts in scripts/."""
_ROOT = Path(__file__).resolve().parents[2]


def in_clone() -> bool:
    """Whether this code runs from a clone; otherwise it is installed, and measures only the machine itself."""
    return (_ROOT / "kernel/base.toml").is_file()


def repo_root() -> Path:
    """The clone this code runs from."""
    if not in_clone():
        raise InfraError(f"{_ROOT} is not a clone of Folio Ferry", hint="run ./ferry from a clone")
    return _ROOT


def kernel_dir() -> Path:
    """The kernel part of the clone: overlay, series, configs, base.toml."""
    return repo_root() / "kernel"


def cache_dir() -> Path:
    """The cache (--cache, $FERRY_CACHE, or ferry in $XDG_CACHE_HOME or ~/.cache), created on first use."""
    named = os.environ.get("FERRY_CACHE")
    cache = Path(named or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ferry")
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfraError(f"cannot make the cache {cache}: {error.strerror}", hint="--cache DIR") from error
    return cache.resolve()


def runs_dir() -> Path:
    """The directory of the results: $FERRY_RUNS, else runs/ of the clone, or of the current directory without one."""
    return Path(os.environ.get("FERRY_RUNS") or (_ROOT if in_clone() else Path.cwd()) / "runs")


def need_disk(where: Path, needed_bytes: int, purpose: str) -> None:
    """Raises InfraError before work starts for which the disk is too small."""
    free = shutil.disk_usage(where).free
    if free < needed_bytes:
        raise InfraError(
            f"{purpose} needs {needed_bytes / 1e9:.1f} GB in {where}, where {free / 1e9:.1f} GB are free",
            hint="free some space, or --cache DIR on another disk",
        )


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the cache's lock `name`, so that two ferry processes never write the same tree or file."""
    path = cache_dir() / f"{name.replace('/', '-')}.lock"
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.note(f"waiting for another ferry process that uses {name}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


_used: dict[Path, int] = {}
"""The entries of the cache that this process uses, each with the descriptor that holds its lock."""


def use(entry: Path) -> bool:
    """Whether an entry of the cache exists. If so, it counts as used now, and is not pruned while this process runs.

    Its time of modification is that of its last use. The lock is shared among its users; `ferry cache prune` removes
    an entry only under an exclusive one.
    """
    if entry not in _used:
        try:
            handle = os.open(entry, os.O_RDONLY)
        except FileNotFoundError:
            return False
        fcntl.flock(handle, fcntl.LOCK_SH)
        _used[entry] = handle
    # Pruned before we had the lock, or replaced since.
    if not entry.exists() or not os.path.samestat(os.fstat(_used[entry]), entry.stat()):
        release(entry)
        return use(entry)
    with contextlib.suppress(OSError):  # another user's cache
        os.utime(entry)
    return True


def release(entry: Path) -> None:
    """This process uses the entry no longer."""
    if entry in _used:
        os.close(_used.pop(entry))


@contextmanager
def publish(target: Path) -> Iterator[Path]:
    """A scratch directory, renamed to `target` when the block ends, or removed if the block raises.

    A directory under its final name is therefore always complete. From its creation on it is in use.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    use(scratch)
    try:
        yield scratch
        scratch.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        scratch.rename(target)
        release(target)
        _used[target] = _used.pop(scratch)
        use(target)  # an archive may have set another time
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        release(scratch)
        raise
