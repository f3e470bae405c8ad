# SPDX-License-Identifier: GPL-2.0
"""The entries of the cache: their kind, size and last use; and the removal of old ones that are not in use."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ferry import paths

DAY_S = 86400
PATTERNS = {
    "source": "source/*", "downloads": "downloads/*", "trees": "trees/*/*", "objects": "objects/*/*",
    "kernels": "kernels/*", "packages": "packages/*", "steps": "steps/*", "guest": "guest/*",
    "tree-selftests": "tree-selftests/*", "disks": "disks/*", "plugin": "plugin/*", "debian": "debian/*/*",
    "qemu": "qemu", "apt": "apt*", "venv": "venv/*", "boots": "boots/*", "tests": "tests/*",
}
"""Where the entries of each kind are. The source comes first: trees share its files, which count once."""
_FILES = ("downloads",)
"""Kinds whose entries are files; those of the others are directories."""


@dataclass(frozen=True)
class Entry:
    """Something that ferry makes or fetches again when it needs it. `used` is the time of its last use (s)."""

    kind: str
    path: Path
    used: float

    @property
    def age_days(self) -> float:
        return max(time.time() - self.used, 0) / DAY_S


def entries() -> list[Entry]:
    """All entries, also what killed processes left behind: names with a dot in front."""
    cache = paths.cache_dir()
    found = []
    for kind, pattern in PATTERNS.items():
        for path in sorted(cache.glob(pattern)):
            if path.is_file() if kind in _FILES else path.is_dir() and not path.is_symlink():
                found.append(Entry(kind, path, path.stat().st_mtime))
    return found


def sizes(listed: Iterable[Entry]) -> list[int]:
    """The bytes of each entry on the disk; a file with many names counts in the first entry that has one of them."""
    seen: set[tuple[int, int]] = set()
    return [sum(_blocks(entry.path, seen)) for entry in listed]


def _blocks(path: Path, seen: set[tuple[int, int]]) -> Iterator[int]:
    """The bytes of each file below a path, the path itself included, that is not in `seen`."""
    below = (os.path.join(root, name) for root, directories, files in os.walk(path) for name in directories + files)
    for name in (str(path), *below):
        try:
            status = os.lstat(name)
        except FileNotFoundError:  # in use, and removed while we look
            continue
        if (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            yield status.st_blocks * 512


def in_use(entry: Entry) -> bool:
    """Whether a process uses the entry now; this one does not count."""
    with _exclusive(entry) as free:
        return not free


def remove(entry: Entry) -> bool:
    """Remove an entry; False if a process uses it. It leaves its name first: nothing half removed is ever found."""
    with _exclusive(entry) as free:
        if not free:
            return False
        gone = entry.path.with_name(f".gone-{os.getpid()}-{entry.path.name}")
        entry.path.rename(gone)
        if gone.is_dir():
            shutil.rmtree(gone, ignore_errors=True)
        else:
            gone.unlink()
        return True


@contextmanager
def _exclusive(entry: Entry) -> Iterator[bool]:
    """Hold an entry's lock alone; False if a process uses it."""
    handle = os.open(entry.path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = True
    except BlockingIOError:
        free = False
    try:
        yield free
    finally:
        os.close(handle)
