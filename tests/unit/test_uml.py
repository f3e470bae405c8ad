# SPDX-License-Identifier: GPL-2.0
"""User-Mode Linux: what root's may write to."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ferry import boards
from ferry.kernel.build import Kernel
from ferry.vm import uml

WRITES = """
echo x >"$1/in-share"
echo x >"$1/../beside" && exit 9
mkdir "$2" || exit 7
for device in /dev/*; do test -b "$device" && exit 8; done
test ! -e /dev/kmsg
"""


def line(share: Path, image: str, *append: str) -> list[str]:
    kernel = Kernel(Path(image), {}, Path(), "key", Path(), "7.3.4", Path())
    return [str(word) for word in uml.command_line(boards.load("uml"), kernel, share, append, "script")]


def test_an_ordinary_user_runs_it_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    words = line(tmp_path, "/linux")
    assert words[:2] == ["/linux", "mem=1024M"] and f"uml_dir={uml.SOCKETS}" in words


def test_the_program_of_root_cannot_write_beside_the_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A program in place of the kernel tries to: on the host itself, as a kernel that has gone wrong might."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    share = tmp_path / "share"
    share.mkdir()
    words = line(share, "/linux")
    prefix = words[:words.index("/linux")]
    if not shutil.which("bwrap") or subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode:
        pytest.skip("bwrap is missing, or may make no namespace here")
    words = [*prefix, "sh", "-c", WRITES, "@", str(share), str(uml.SOCKETS)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Read-only file system" in done.stderr and not (tmp_path / "beside").exists()
    assert (share / "in-share").is_file()
