# SPDX-License-Identifier: GPL-2.0
"""The tutorial shows the files that the suite selftests builds and loads."""

from __future__ import annotations

import re

import pytest

from ferry import boards, paths


@pytest.mark.parametrize("name", ["plain.c", "Kbuild"])
def test_the_tutorial_shows_the_file_that_is_built(name: str) -> None:
    text = (paths.repo_root() / "docs/tutorials/write-a-migrator.md").read_text()
    block = rf"`samples/migrator/{re.escape(name)}`[^\n]*\n\n```c?\n(.*?)^```"
    shown = re.search(block, text, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert shown[1] == (paths.repo_root() / "samples/migrator" / name).read_text()


def test_it_is_built_with_our_kernel_only() -> None:
    board = boards.load("x86-numa")
    assert "samples/migrator" in board.ferry_external and "samples/migrator" not in board.external
