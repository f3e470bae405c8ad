# SPDX-License-Identifier: GPL-2.0
"""Debian archives whose bytes depend on what is in them alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ferry import proc
from ferry.package import naming


def write(root: Path, deb: Path, seconds: int) -> None:
    """Make the package `deb` of a directory; each file in it has the time `seconds`.

    dpkg-deb only lowers times that are later. A file of an older checkout, or of a build that an earlier commit began,
    would keep its own.
    """
    for path in (root, *root.rglob("*")):
        os.utime(path, (seconds, seconds), follow_symlinks=False)
    proc.capture(["dpkg-deb", "--root-owner-group", "--build", root, deb], env=naming.environment(seconds))


def rewrite(deb: Path, seconds: int) -> None:
    """Give all files in a package the time `seconds`."""
    with tempfile.TemporaryDirectory(dir=deb.parent) as scratch:
        root = Path(scratch) / "root"
        proc.capture(["dpkg-deb", "--raw-extract", deb, root])
        write(root, deb, seconds)
