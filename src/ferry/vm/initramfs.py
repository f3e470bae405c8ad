# SPDX-License-Identifier: GPL-2.0
"""A guest that sees nothing of the host, for machines without a bus that could carry a file system.

All it needs goes in as an initramfs: the share, the kernel's modules, the guest programs and scripts, and what else the
caller names, each at the path it has here, so that a command need not know where it runs; and a static busybox. What it
writes into the share comes back over a second serial line, as a compressed archive whose end carries a checksum: one
that was cut short is none.
"""

from __future__ import annotations

import gzip
import shlex
import shutil
import stat
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ferry import paths
from ferry.boards import Board
from ferry.debian import packages
from ferry.errors import UsageError
from ferry.kernel.build import Kernel
from ferry.vm import devicetree, guest_programs

LARGEST_BYTES = 256 << 20
"""Of all that goes in: at first the guest holds it twice, packed and unpacked."""
_COVERED = ("/dev", "/proc", "/sys")
"""Where init mounts something: a file packed there would vanish."""
_LINE = "/dev/ttyPS1"
_NOT_CARRIED = ("console.log",)
"""Of the share: what the host writes meanwhile."""

_INIT = """\
#!/bin/busybox sh
# Everything packed here is of the year 1970, so what a command wrote is what is newer than that.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm /tmp
mount -t tmpfs tmpfs /dev/shm
mount -t debugfs debugfs /sys/kernel/debug
date -u -s @{now} >/dev/null
touch -d @1 /tmp/.ferry-begun
stty -F {line} raw -echo
sh {share}/{command}
cd {share}
find . ! -type d ! \\( -type f -newer /tmp/.ferry-begun \\) -exec rm -f {{}} +
tar -c . | gzip -1 | cat >{line}
poweroff -f
"""


@dataclass(frozen=True)
class Guest:
    """What to start, and where its answer will lie."""

    line: list[str | Path]
    answer: Path
    share: Path

    def bring_back(self) -> str:
        """Put what the guest wrote into the share; else say why there is nothing, and leave the share as it is."""
        return unpack(self.answer, self.share)


@contextmanager
def prepared(
    board: Board, kernel: Kernel, share: Path, command: str, append: Sequence[str], carry: Iterable[Path]
) -> Iterator[Guest]:
    """A guest with the files `carry` whose init runs the share's `command`; what is made for it lasts as the block."""
    scratch = paths.cache_dir() / "boots"
    scratch.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{board.name}-guest-", dir=scratch) as name:
        home = Path(name)
        devicetree.compile_to(board, home / "board.dtb")
        write_initramfs(home / "initramfs", board, kernel, share, command, carry)
        yield Guest(_qemu_line(board, kernel, home, append), home / "answer", share)


def _qemu_line(board: Board, kernel: Kernel, home: Path, append: Sequence[str]) -> list[str | Path]:
    line: list[str | Path] = [board.emulator, "-M", board.machine, "-m", f"{devicetree.machine_mib(board)}M"]
    line += ["-smp", str(board.cpus)]
    line += ["-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot"]
    line += ["-serial", "stdio", "-serial", f"file:{home / 'answer'}"]
    line += ["-kernel", kernel.image, "-dtb", home / "board.dtb", "-initrd", home / "initramfs"]
    # QEMU adds a node of its own to the device tree, which has the machine's memory in one piece from address 0 on.
    own = f"mem={board.memory_mib}M"
    return [*line, "-append", " ".join((*board.append, own, *append)), *board.qemu_options]


def write_initramfs(
    target: Path, board: Board, kernel: Kernel, share: Path, command: str, carry: Iterable[Path]
) -> None:
    """Pack all that the guest needs. Raises UsageError when that is too much for its memory, or in a wrong place."""
    if any(share.is_relative_to(directory) for directory in _COVERED):
        raise UsageError(f"{board.name} cannot have its share in {share}", hint="--share DIR, on a disk")
    busybox = packages.unpacked("busybox-static", board.arch) / "bin/busybox"
    programs = guest_programs.programs(board.arch)
    carried = [*kernel.modules.values(), *programs.values(), *_scripts(), *_shared(share), *carry]
    size = sum(path.stat().st_size for path in carried)
    if size > LARGEST_BYTES:
        raise UsageError(f"{share} and the kernel's modules are {size >> 20} MiB; {board.name} takes "
                         f"{LARGEST_BYTES >> 20} MiB of files", hint="--share DIR with less in it")
    init = _INIT.format(now=int(time.time()), line=_LINE, share=shlex.quote(str(share)), command=command)
    with target.open("wb") as out:
        archive = Writer(out)
        # Where init says what goes wrong before it has mounted /dev.
        archive.character_device("/dev/console", 5, 1)
        for directory in (*_COVERED, str(share)):
            archive.directory(directory)
        archive.file("/bin/busybox", busybox.read_bytes(), 0o755)
        archive.file("/init", init.encode(), 0o755)
        for path in carried:
            archive.file(path, path.read_bytes(), path.stat().st_mode & 0o777)
        archive.close()


def _scripts() -> list[Path]:
    return sorted((paths.repo_root() / "guest/scripts").glob("*.sh"))


def _shared(share: Path) -> list[Path]:
    return sorted(path for path in share.rglob("*") if path.is_file() and path.name not in _NOT_CARRIED)


def unpack(answer: Path, share: Path) -> str:
    """Put an archive's files into the share, all or none; what kept that from happening, or "" when all is well."""
    if not answer.is_file() or not answer.stat().st_size:
        return "it sent no results"
    try:
        with tempfile.TemporaryDirectory(prefix=".ferry-answer-", dir=share) as name:
            scratch = Path(name)
            _extract(answer, scratch)
            _move_all(scratch, share)
    except (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError) as error:
        return f"its results, {answer.stat().st_size} bytes, are cut short or garbled: {error}"
    return ""


def _extract(answer: Path, scratch: Path) -> None:
    """Regular files and directories only, and none outside of `scratch`; to the checksum behind the last of them."""
    with gzip.open(answer) as plain, tarfile.open(fileobj=plain, mode="r|") as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts or not (member.isfile() or member.isdir()):
                raise tarfile.ExtractError(f"it holds {member.name!r}")
            if member.isdir():
                (scratch / name).mkdir(parents=True, exist_ok=True)
                continue
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None
            with (scratch / name).open("wb") as out:
                shutil.copyfileobj(content, out)
            (scratch / name).chmod(member.mode & 0o777)
        while plain.read(1 << 20):
            pass


def _move_all(scratch: Path, share: Path) -> None:
    for path in sorted(scratch.rglob("*")):
        target = share / path.relative_to(scratch)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            path.replace(target)


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
