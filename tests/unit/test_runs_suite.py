# SPDX-License-Identifier: GPL-2.0
"""The suite runs: what it loads, selects and enables before each load."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry import boards
from ferry.kernel.build import Kernel
from ferry.suites import runs
from ferry.suites.context import Context
from ferry.vm import guest_programs

KERNEL = Kernel(Path("/m/Image"), {"ferry_mtcopy": Path("/m/ferry_mtcopy.ko")}, Path("/m/config"), "debug",
                Path("/m/log"), "7.3.4", Path("/m/tree"))


@pytest.mark.parametrize("thorough", [False, True])
def test_each_load_has_its_migrator_and_migrc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, thorough: bool) -> None:
    monkeypatch.setattr(guest_programs, "programs", lambda arch="x86_64": {"integrity": Path("/g/integrity")})
    off, mtcopy, migrc, *more = runs.jobs(Context(boards.load("x86-numa"), tmp_path, thorough=thorough), KERNEL)
    assert "runs.sh 0 sh" in off.command and off.setup == () and not off.migrator
    assert mtcopy.setup[0].endswith("insmod /m/ferry_mtcopy.ko") and mtcopy.migrator == "mtcopy"
    assert "runs.sh 1 sh" in migrc.command and migrc.setup[-1] == "echo off >/sys/kernel/mm/migration/migrator"
    seconds = 30 if thorough else 7
    assert all(f"--seconds {seconds} " in job.command and job.seconds > seconds for job in (off, mtcopy, migrc))
    assert [f"--in-runs {runs.PAGES}" in job.command for job in more] == [True] * thorough
