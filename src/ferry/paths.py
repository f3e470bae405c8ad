# SPDX-License-Identifier: GPL-2.0
"""Where things live: the clone, the cache outside it, the runs."""

from __future__ import annotations

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
RAW = "raw"
"""The directory of what the guests left: a run has one from its first boot on."""


def repo_root() -> Path:
    """The clone this code runs from."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "kernel/base.toml").is_file():
        raise InfraError(f"{root} is not a clone of Folio Ferry", hint="run ./ferry from a clone")
    return root


def kernel_dir() -> Path:
    """The out-of-tree kernel: overlay, patches, configs, base.toml."""
    return repo_root() / "kernel"


def cache_dir() -> Path:
    """The cache (--cache, $FERRY_CACHE, ~/.cache/ferry), made on first use."""
    named = os.environ.get("FERRY_CACHE")
    cache = Path(named) if named else Path.home() / ".cache/ferry"
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfraError(f"cannot make the cache {cache}: {error.strerror}", hint="--cache DIR") from error
    return cache.resolve()


def runs_dir() -> Path:
    """Where results are kept: runs/ of the clone, or $FERRY_RUNS."""
    return Path(os.environ.get("FERRY_RUNS") or repo_root() / "runs")


def need_disk(where: Path, needed_bytes: int, purpose: str) -> None:
    """Fail before the work rather than in its middle when the disk cannot hold it."""
    free = shutil.disk_usage(where).free
    if free < needed_bytes:
        raise InfraError(
            f"{purpose} needs {needed_bytes / 1e9:.1f} GB in {where}, where {free / 1e9:.1f} GB are free",
            hint="free some space, or --cache DIR on another disk",
        )


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the cache's lock `name`: two ferries never write one tree or one artefact at once."""
    path = cache_dir() / f"{name.replace('/', '-')}.lock"
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.note(f"waiting for another ferry that works on {name}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def publish(target: Path) -> Iterator[Path]:
    """A scratch directory that becomes `target` in one rename when the block ends well, and vanishes when it does not.

    A directory under its final name is therefore always whole.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield scratch
        scratch.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        scratch.rename(target)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
