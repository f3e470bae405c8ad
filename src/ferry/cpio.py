# SPDX-License-Identifier: GPL-2.0
"""Archives in cpio's "newc" format, which is what a kernel unpacks as its first root directory.

Written here rather than by cpio(1): that takes names, owners and times from the disk, and makes device nodes as root
only. Every time is 0: what the guest has changed is then simply what is newer.
"""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath
from typing import BinaryIO

_MAGIC = "070701"
_END = "TRAILER!!!"


class Writer:
    """Writes entries one after another, each once, its parent directories before it."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._seen: set[str] = {"."}

    def directory(self, path: str | Path) -> None:
        """A directory and those it is in."""
        self._entry(str(path), stat.S_IFDIR | 0o755, b"")

    def file(self, path: str | Path, data: bytes, mode: int = 0o644) -> None:
        """A regular file."""
        self._entry(str(path), stat.S_IFREG | mode, data)

    def character_device(self, path: str | Path, major: int, minor: int) -> None:
        """A device node, which a Python that is not root could not make on the disk."""
        self._entry(str(path), stat.S_IFCHR | 0o600, b"", (major, minor))

    def close(self) -> None:
        """End the archive; what it is written to stays open."""
        self._write(_END, 0, b"", (0, 0))

    def _entry(self, path: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)) -> None:
        name = path.strip("/")
        if name in self._seen:
            return
        parent = str(PurePosixPath(name).parent)
        if parent not in self._seen:
            self.directory(parent)
        self._seen.add(name)
        self._write(name, mode, data, device)

    def _write(self, name: str, mode: int, data: bytes, device: tuple[int, int]) -> None:
        """One header of 13 numbers of 8 hexadecimal digits, then the name and the data, each padded to 4 bytes."""
        encoded = name.encode() + b"\0"
        links = 2 if stat.S_ISDIR(mode) else 1
        numbers = (len(self._seen), mode, 0, 0, links, 0, len(data), 0, 0, *device, len(encoded), 0)
        header = (_MAGIC + "".join(f"{number:08X}" for number in numbers)).encode()
        for part in (header + encoded, data):
            self._out.write(part + b"\0" * (-len(part) % 4))
