# SPDX-License-Identifier: GPL-2.0
"""The kernel configurations that there are packages of: the board's, and two of Debian's with our options added."""

from __future__ import annotations

import lzma
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ferry import boards, paths, proc
from ferry.debian import apt
from ferry.errors import InfraError
from ferry.kernel import config
from ferry.series import source

BOARD = "x86-numa"


@dataclass(frozen=True)
class Configuration:
    """One kernel configuration. `flavour` is Debian's name of the one that it begins with, "" for the board's own."""

    name: str
    summary: str
    flavour: str
    fragments: tuple[str, ...]
    """Of kernel/configs, over the board's or over Debian's."""
    steps: int
    """Lines of make's output in a whole build, for the first progress bar only."""
    needed_bytes: int
    """Disk space for the objects and the packages."""
    timeout_s: int


_DEBIANS = ("ferry", "package", "package-debian")
ALL = {configuration.name: configuration for configuration in (
    Configuration("board", f"the release kernel of the board {BOARD}, with what a machine with a disk needs", "",
                  ("package", "package-board"), 3200, 3_000_000_000, 3600),
    Configuration("cloud", "Debian's for virtual machines", "cloud-amd64", _DEBIANS, 6500, 6_000_000_000, 3 * 3600),
    Configuration("distribution", "Debian's for any machine (hours)", "amd64", _DEBIANS, 30_000, 25_000_000_000,
                  24 * 3600),
)}


def fragments(configuration: Configuration) -> list[Path]:
    """The fragment files, in the order they are merged."""
    of_board = [] if configuration.flavour else config.fragments(boards.load(BOARD), "ferry", False)
    return of_board + [paths.kernel_dir() / "configs" / f"{name}.config" for name in configuration.fragments]


def debians(flavour: str) -> bytes:
    """Debian's configuration of that name, from the package that base.toml names. Raises InfraError."""
    package = apt.download(source.base().debian["config"])
    with tempfile.TemporaryDirectory(dir=paths.cache_dir()) as scratch:
        proc.capture(["dpkg-deb", "-x", package, scratch])
        found = next(Path(scratch).glob(f"usr/src/*/config.amd64_none_{flavour}.xz"), None)
        if found is None:
            raise InfraError(f"{package.name} has no configuration {flavour}", hint="correct kernel/base.toml")
        return lzma.decompress(found.read_bytes())
