# SPDX-License-Identifier: GPL-2.0
"""The base kernel's source: fetched once, verified, unpacked into the cache, never edited there.

It comes from Debian's mirror by an apt configuration of its own, which leaves the system's alone, or from the addresses
in kernel/base.toml; or from --source: a tarball, a Debian package, a directory or a git tree whose Makefile says a
supported version.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferry import paths, proc, progress
from ferry.debian import apt
from ferry.errors import InfraError, UsageError

_OTHER_SOURCE = "--source PATH with a tarball, a linux-source .deb, a directory or a git tree of Linux {version}"


@dataclass(frozen=True)
class Base:
    """kernel/base.toml."""

    version: str
    oldest: str
    newest: str
    series: dict[str, list[str]]
    """The series of kernel/series, each with its prerequisites."""
    debian: dict[str, Any]

    @property
    def hint(self) -> str:
        return _OTHER_SOURCE.format(version=self.version)


@dataclass(frozen=True)
class Source:
    """An unpacked base kernel; `key` names its content."""

    path: Path
    version: str
    key: str


def base() -> Base:
    """Read kernel/base.toml."""
    raw = tomllib.loads((paths.kernel_dir() / "base.toml").read_text())
    kernel = raw["kernel"]
    return Base(kernel["version"], kernel["oldest"], kernel["newest"], raw["series"], raw["debian"])


def is_debians(source: Source) -> bool:
    """Whether this is the source of kernel/base.toml, which has Debian's own patches."""
    return source.key == str(base().debian["tarball_sha256"])[:16]


def describe(source: Source) -> str:
    """The source in words: "Linux 7.3.4 with Debian's patches (7.3.4-1~bpo13+1)"."""
    return f"Linux {source.version} " + (
        f"with Debian's patches ({base().debian['version']})" if is_debians(source) else "of --source")


def makefile_version(tree: Path) -> str:
    """The version in a tree's Makefile, such as "7.3.4" or "7.4.0-rc1". Raises UsageError if it has none."""
    makefile = tree / "Makefile"
    text = makefile.read_text(errors="replace") if makefile.is_file() else ""
    words = dict(re.findall(r"^(\w+) =[ \t]*(\S*)$", text, re.MULTILINE))
    if not words.get("VERSION") or not (tree / "Kbuild").is_file():
        raise UsageError(f"{tree} is not a kernel tree", hint=base().hint)
    return "{VERSION}.{PATCHLEVEL}.{SUBLEVEL}{EXTRAVERSION}".format_map(
        {"PATCHLEVEL": "0", "SUBLEVEL": "0", "EXTRAVERSION": "", **words}
    )


def check_version(version: str) -> None:
    """Raises UsageError, naming both versions, unless the series supports `version`."""
    wanted = base()

    def numbers(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in re.match(r"[\d.]+", text)[0].strip(".").split("."))  # type: ignore[index]

    if not numbers(wanted.oldest) <= numbers(version) <= numbers(wanted.newest):
        raise UsageError(
            f"the source is Linux {version}; the series supports {wanted.oldest} to {wanted.newest}", hint=wanted.hint
        )


def obtain() -> Source:
    """The base kernel named by --source, or Debian's; fetched and unpacked unless it is in the cache."""
    named = os.environ.get("FERRY_SOURCE")
    return _from_path(Path(named).expanduser()) if named else _from_debian()


def _from_debian() -> Source:
    wanted = base()
    key = str(wanted.debian["tarball_sha256"])[:16]

    def unpack(into: Path) -> None:
        name = f"{wanted.debian['package']}_{wanted.debian['version']}_all.deb"
        hint = f"./ferry source --source {name} (once; a copy of it from anywhere)"
        _unpack_deb(apt.download(wanted.debian, hint=hint), into, str(wanted.debian["tarball_sha256"]))

    return _cached(key, unpack, int(wanted.debian["unpacked_bytes"]) + 2 * int(wanted.debian["download_bytes"]))


def _from_path(path: Path) -> Source:
    if not path.exists():
        raise UsageError(f"--source {path} does not exist", hint=base().hint)
    if path.is_file():
        key = _tarball_key(path) if path.suffix == ".deb" else _sha256(path)[:16]
        unpack = _unpack_deb if path.suffix == ".deb" else _unpack_tarball
        return _cached(key, lambda into: unpack(path, into, None), path.stat().st_size * 13)
    check_version(makefile_version(path))
    if (path / ".git").exists():
        return _from_git(path)
    return _cached(_stat_key(path), lambda into: _copy_directory(path, into), 2_000_000_000)


def _from_git(path: Path) -> Source:
    if proc.capture(["git", "status", "--porcelain", "--untracked-files=no"], cwd=path).strip():
        raise UsageError(f"--source {path} has changes that are not committed", hint=f"git -C {path} stash")
    key = proc.capture(["git", "rev-parse", "HEAD^{tree}"], cwd=path).strip()[:16]

    def export(into: Path) -> None:
        command = 'git archive HEAD | tar -x -C "$1"'
        proc.capture(["bash", "-o", "pipefail", "-c", command, "export", into], cwd=path)

    return _cached(key, export, 2_000_000_000)


def _cached(key: str, unpack: Callable[[Path], None], needed_bytes: int) -> Source:
    """The tree of that key, unpacked by `unpack(directory)` unless it is in the cache."""
    home = paths.cache_dir() / "source" / key
    with paths.lock("source"):
        if not paths.use(home):
            paths.need_disk(paths.cache_dir(), needed_bytes, "unpacking the kernel's source")
            with paths.publish(home) as scratch:
                unpack(scratch)
                check_version(makefile_version(scratch))
            _stamp(home).unlink(missing_ok=True)
        if not _stamp(home).is_file():
            _stamp(home).touch()
            newest = max(time.time_ns(), *(ns for _, ns in _times(home)))
            os.utime(_stamp(home), ns=(newest, newest))
    return Source(home, makefile_version(home), key)


def check_unchanged(source: Source) -> None:
    """Raises InfraError if a file of the source was edited in place: trees have hard links to the same file."""
    if not _stamp(source.path).is_file():
        return
    unpacked = _stamp(source.path).stat().st_mtime_ns
    if edited := sorted(name for name, ns in _times(source.path) if ns > unpacked):
        trees = paths.cache_dir() / "trees" / source.key
        raise InfraError(f"{edited[0]} was edited in the cache" + f" (and {len(edited) - 1} more)" * (len(edited) > 1)
                         + f": {source.path} must stay as it was unpacked",
                         hint=f"./ferry series checkout DIR makes a tree to edit; rm -r {source.path} {trees}")


def _stamp(home: Path) -> Path:
    """A file with the time after which no file of the source changes."""
    return home.with_name(f"{home.name}.unpacked")


def _times(home: Path) -> Iterator[tuple[str, int]]:
    """The name and the time of modification (ns) of each file."""
    for root, _, files in os.walk(home):
        for name in files:
            path = os.path.join(root, name)
            yield os.path.relpath(path, home), os.lstat(path).st_mtime_ns


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _tarball_key(package: Path) -> str:
    """A Debian package has the key of its tarball: fetched or given by --source, it is the same source."""
    remembered = paths.cache_dir() / f"deb-{_sha256(package)[:16]}"
    if not remembered.is_file():
        with tempfile.TemporaryFile(dir=paths.cache_dir()) as tarball:
            _pipe_member(package, tarball.fileno())
            tarball.seek(0)
            remembered.write_text(hashlib.file_digest(tarball, "sha256").hexdigest()[:16])
    return remembered.read_text()


def _stat_key(path: Path) -> str:
    """A directory's identity: every file's name, size and time. Reading 1.5 GB at each start would be too slow."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        status = file.lstat()
        digest.update(f"{file.relative_to(path)}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]


def _copy_directory(path: Path, into: Path) -> None:
    """A copy without the files of an in-tree build, because make O= refuses a tree with them."""
    with progress.stage(f"copying {path}"):
        shutil.copytree(path, into, symlinks=True, dirs_exist_ok=True)
        if (into / ".config").exists() or (into / "include/config").exists():
            proc.capture(["make", "-s", "mrproper"], cwd=into)


def _unpack_deb(package: Path, into: Path, sha256: str | None) -> None:
    tarball = into.parent / f"{into.name}.tar.xz"
    try:
        with progress.stage(f"reading {package.name}"), tarball.open("wb") as out:
            _pipe_member(package, out.fileno())
        _unpack_tarball(tarball, into, sha256)
    finally:
        tarball.unlink(missing_ok=True)


def _pipe_member(package: Path, out: int) -> None:
    """Write the tarball inside the package to the descriptor `out`."""
    member = "./" + str(base().debian["tarball"])
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as deb:
        took = subprocess.run(["tar", "-xO", member], stdin=deb.stdout, stdout=out, stderr=subprocess.PIPE, check=False)
    if took.returncode or deb.returncode:
        raise InfraError(f"{package.name} holds no {member}: {took.stderr.decode().strip()[-300:]}", hint=base().hint)


def _unpack_tarball(tarball: Path, into: Path, sha256: str | None) -> None:
    """Unpack without the archive's top directory. Raises InfraError before it unpacks if the hash is wrong."""
    if sha256 and _sha256(tarball) != sha256:
        raise InfraError(
            f"the source's SHA-256 is {_sha256(tarball)}, kernel/base.toml expects {sha256}", hint=base().hint
        )
    if not tarfile_like(tarball):
        raise UsageError(f"{tarball} is neither a tarball nor a Debian package", hint=base().hint)
    with progress.stage("unpacking the kernel's source"):
        proc.capture(["tar", "-x", "--strip-components=1", "-C", into, "-f", tarball])


def tarfile_like(path: Path) -> bool:
    """Whether tar can unpack the file; zstd is detected by its magic, because Python's tarfile cannot read it."""
    with path.open("rb") as handle:
        if handle.read(4) == b"\x28\xb5\x2f\xfd":
            return True
    return tarfile.is_tarfile(path)
