# SPDX-License-Identifier: GPL-2.0
"""The script ./ferry: the variables with which it starts the tool."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ferry import paths

#: Makes an environment whose Python installs nothing, and prints its variables in place of the tool.
PYTHON = """#!/bin/sh
case "$1 $2" in
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m ferry") env ;;
esac
"""


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    """The script in a clone that has nothing else but a list of no packages."""
    clone = tmp_path / "clone"
    clone.mkdir()
    shutil.copy2(paths.repo_root() / "ferry", clone)
    (clone / "requirements.txt").touch()
    (clone / "python").write_text(PYTHON)
    (clone / "python").chmod(0o755)
    return clone / "ferry"


def started(launcher: Path, *words: str, **variables: str) -> dict[str, str]:
    """The tool's variables if the script is called in the directory above the clone, with the cache "one" there."""
    env = {**os.environ, "FERRY_PYTHON": str(launcher.parent / "python"), "FERRY_CACHE": "one", **variables}
    done = subprocess.run([launcher, *words], cwd=launcher.parents[1], capture_output=True, text=True, check=True,
                          env=env)
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


@pytest.mark.parametrize(("words", "cache"), [
    ([], "one"), (["--cache", "two"], "two"), (["--cache=three"], "three"),
])
def test_a_relative_cache_is_found_from_every_directory(launcher: Path, words: list[str], cache: str) -> None:
    """ferry runs vng, which the environment has, in other directories."""
    found = started(launcher, *words)
    home = launcher.parents[1] / cache
    (made,) = home.glob("venv/*/bin")
    assert (found["FERRY_CACHE"], found["PATH"].split(":")[0]) == (str(home), str(made))


def test_variables_that_makefiles_obey_are_not_passed_on(launcher: Path) -> None:
    """No key of the cache has them."""
    names = {"LLVM", "LLVM_IAS", "KCFLAGS", "KAFLAGS", "KCPPFLAGS", "KCONFIG_CONFIG", "CROSS_COMPILE", "LOCALVERSION",
             "CFLAGS"}
    assert not names & started(launcher, **dict.fromkeys(names, "1")).keys()
