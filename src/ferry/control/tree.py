# SPDX-License-Identifier: GPL-2.0
"""The files of /sys/kernel/mm/migration and their values."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry.errors import FerryError

ROOT = Path("/sys/kernel/mm/migration")
_COPIES = re.compile(r"(stats/(?!runs/|reasons/)(?P<migrator>[^/]+)(?:/(?P<reason>[^/]+))?)/batches")


@dataclass(frozen=True)
class Choice:
    """A file that lists the words it accepts, the selected one in brackets."""

    selected: str
    words: tuple[str, ...]


Value = int | str | Choice


@dataclass(frozen=True)
class File:
    """A file; its name is its path below the root. The text of a file that can only be written is None."""

    name: str
    text: str | None
    writable: bool

    @property
    def value(self) -> Value:
        """A number, a choice or other text."""
        text = self.text or ""
        words = [word.strip("[]") for word in text.split()]
        selected = [word[1:-1] for word in text.split() if re.fullmatch(r"\[.+\]", word)]
        if len(selected) == 1:
            return Choice(selected[0], tuple(words))
        return int(text) if re.fullmatch(r"-?\d+", text) else text

    @property
    def setting(self) -> str:
        """The text whose write selects the present value."""
        value = self.value
        return value.selected if isinstance(value, Choice) else str(value)


@dataclass(frozen=True)
class Snapshot:
    """All values at one time, in seconds of the monotonic clock."""

    at_s: float
    values: Mapping[str, Value]


@dataclass(frozen=True)
class Copies:
    """A directory of a migrator's counters. The reason is "" in a kernel that does not count by reason."""

    path: str
    migrator: str
    reason: str


def files(root: Path, prefixes: Sequence[str] = ("",)) -> list[File]:
    """The files whose names begin with one of the prefixes, sorted by name within each directory.

    Raises FerryError if the directory does not exist. Leaves out a file that vanishes, because its module is unloaded.
    """
    if not root.is_dir():
        raise FerryError(f"{root} does not exist: the running kernel was built without CONFIG_FERRY",
                         hint="boot a kernel of Folio Ferry, or name another directory: --root DIR")
    found = []
    for directory, below, names in os.walk(root):
        below.sort()
        for path in (Path(directory, name) for name in sorted(names)):
            name = path.relative_to(root).as_posix()
            if name.startswith(tuple(prefixes)) and (file := _read(path, name)):
                found.append(file)
    return found


def _read(path: Path, name: str) -> File | None:
    """The mode decides, and not access(2): root may open every file, but sysfs then fails."""
    try:
        mode = path.stat().st_mode
        return File(name, path.read_text().strip() if mode & 0o444 else None, bool(mode & 0o222))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV):
            return None
        raise


def write(path: Path, text: str) -> None:
    """Write in one call, with the newline of echo. Raises OSError with the error of the kernel."""
    handle = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(handle, f"{text}\n".encode())
    finally:
        os.close(handle)


def snapshot(root: Path) -> Snapshot:
    """The values of all files that can be read. Raises FerryError as files() does."""
    return Snapshot(time.monotonic(), {file.name: file.value for file in files(root) if file.text is not None})


def copies(names: Mapping[str, object]) -> list[Copies]:
    """The directories that count copies: for each migrator those of its reasons, otherwise that of all together."""
    found = [Copies(match[1], match["migrator"], match["reason"] or "") for name in names
             if (match := _COPIES.fullmatch(name))]
    by_reason = {one.migrator for one in found if one.reason}
    return [one for one in found if one.reason or one.migrator not in by_reason]
