# SPDX-License-Identifier: GPL-2.0
"""A guest without access to the host's files, for machines without a bus that could carry a file system.

An initramfs holds all files that it needs: the share, the kernel's modules, the guest programs and scripts, and the
files that the caller names, each at its path on the host, so that a command is the same on every board; and a static
busybox. The files that the guest writes into the share return over a second serial line, as a compressed archive that
ends with a checksum, so that an incomplete archive is rejected.
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
"""Limit for the files of the initramfs: at boot the guest holds them twice, packed and unpacked."""
_COVERED = ("/dev", "/proc", "/sys")
"""Mount points of init: they would hide a file packed there."""
_LINE = {True: "/dev/ttyPS1", False: "/dev/hvc0"}
"""The guest's side of the line for the files, of zcu102 and of QEMU's virt machine."""
_NOT_CARRIED = ("console.log",)
"""Files of the share that the host writes during the boot."""

_INIT = """\
#!/bin/busybox sh
# All packed files have times of 1970, so newer files are those that a command wrote.
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
    """The command that runs the guest, and the file that receives its answer."""

    line: list[str | Path]
    answer: Path
    share: Path

    def bring_back(self) -> str:
        """Put the files that the guest wrote into the share; if that fails, return the reason and change nothing."""
        return unpack(self.answer, self.share)


@contextmanager
def prepared(
    board: Board, kernel: Kernel, share: Path, command: str, append: Sequence[str], carry: Iterable[Path]
) -> Iterator[Guest]:
    """A guest with the files `carry` whose init runs the share's `command`; its files exist until the block ends."""
    scratch = paths.cache_dir() / "boots"
    scratch.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{board.name}-guest-", dir=scratch) as name:
        home = Path(name)
        paths.use(home)
        try:
            if _has_tree(board):
                devicetree.compile_to(board, home / "board.dtb")
            write_initramfs(home / "initramfs", board, kernel, share, command, carry)
            yield Guest(_qemu_line(board, kernel, home, append), home / "answer", share)
        finally:
            paths.release(home)


def _qemu_line(board: Board, kernel: Kernel, home: Path, append: Sequence[str]) -> list[str | Path]:
    line: list[str | Path] = [board.emulator, "-M", board.machine, "-m", f"{devicetree.machine_mib(board)}M"]
    line += ["-smp", str(board.cpus)]
    line += ["-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot"]
    line += ["-serial", "stdio", *_line_for_files(board, home)]
    line += ["-kernel", kernel.image, "-initrd", home / "initramfs"]
    line += ["-dtb", home / "board.dtb"] if _has_tree(board) else []
    # QEMU adds a node to the device tree with the machine's memory in one piece from address 0 on: mem= limits it.
    own = f"mem={board.memory_mib}M"
    return [*line, "-append", " ".join((*board.append, own, *append)), *board.qemu_options]


def _has_tree(board: Board) -> bool:
    """Whether the board has a device tree of ours; QEMU's virt machine makes one."""
    return not board.machine.startswith("virt")


def _line_for_files(board: Board, home: Path) -> list[str]:
    """QEMU's options for the line over which the guest's files return."""
    answer = home / "answer"
    if _has_tree(board):
        return ["-serial", f"file:{answer}"]
    return ["-chardev", f"file,id=answer,path={answer}", "-device", "virtio-serial-device",
            "-device", "virtconsole,chardev=answer"]


def write_initramfs(
    target: Path, board: Board, kernel: Kernel, share: Path, command: str, carry: Iterable[Path]
) -> None:
    """Pack the files that the guest needs. Raises UsageError if they are too large or under a mount point."""
    if any(share.is_relative_to(directory) for directory in _COVERED):
        raise UsageError(f"{board.name} cannot have its share in {share}", hint="--share DIR, on a disk")
    busybox = packages.unpacked("busybox-static", board.arch) / "bin/busybox"
    programs = guest_programs.programs(board.arch)
    scripts = sorted((paths.repo_root() / "guest/scripts").glob("*.sh"))
    shared = sorted(path for path in share.rglob("*") if path.is_file() and path.name not in _NOT_CARRIED)
    carried = [*kernel.modules.values(), *programs.values(), *scripts, *shared, *carry]
    size = sum(path.stat().st_size for path in carried)
    if size > LARGEST_BYTES:
        raise UsageError(f"{share} and the kernel's modules are {size >> 20} MiB; {board.name} takes "
                         f"{LARGEST_BYTES >> 20} MiB of files", hint="--share DIR with less in it")
    init = _INIT.format(now=int(time.time()), line=_LINE[_has_tree(board)], share=shlex.quote(str(share)),
                        command=command)
    with target.open("wb") as out:
        archive = Writer(out)
        # init prints errors to it before it has mounted /dev.
        archive.character_device("/dev/console", 5, 1)
        for directory in (*_COVERED, str(share)):
            archive.directory(directory)
        archive.file("/bin/busybox", busybox.read_bytes(), 0o755)
        archive.file("/init", init.encode(), 0o755)
        for path in carried:
            archive.file(path, path.read_bytes(), path.stat().st_mode & 0o777)
        archive.close()


def unpack(answer: Path, share: Path) -> str:
    """Put an archive's files into the share, all or none; returns the reason if none, otherwise ""."""
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
    """Extract regular files and directories, none outside of `scratch`; read on to the checksum after the last one."""
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
    """Writes a "newc" archive: each entry once, after its parent directories.

    cpio(1) would take names, owners and times from the disk, and needs root for device nodes; gen_init_cpio of the
    kernel takes no path with a space. Every time is 0, so that files which the guest changes are newer.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._seen: set[str] = {"."}

    def directory(self, path: str | Path) -> None:
        """A directory and its parents."""
        self._entry(str(path), stat.S_IFDIR | 0o755, b"")

    def file(self, path: str | Path, data: bytes, mode: int = 0o644) -> None:
        """A regular file."""
        self._entry(str(path), stat.S_IFREG | mode, data)

    def character_device(self, path: str | Path, major: int, minor: int) -> None:
        """A device node."""
        self._entry(str(path), stat.S_IFCHR | 0o600, b"", (major, minor))

    def close(self) -> None:
        """End the archive; the stream stays open."""
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
