# SPDX-License-Identifier: GPL-2.0
"""The suite soak: what it loads and asks of the script on each board, and how long it takes."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ferry import boards
from ferry.commands import test
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot, soak
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs


def kernel(*modules: str) -> Kernel:
    return Kernel(Path("/m/Image"), {name: Path(f"/m/{name}.ko") for name in modules}, Path("/m/config"), "debug",
                  Path("/m/log"), "7.3.4", Path("/m/tree"))


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_programs, "programs", lambda arch="x86_64": {"integrity": Path("/g/integrity")})


def words(job: Job) -> list[str]:
    return shlex.split(job.command)[2:]


def test_x86_has_no_channels_but_device_memory(tmp_path: Path) -> None:
    made = kernel("ferry_mtcopy", "ferry_dcbm", "memmap_watch")
    job = soak.job(Context(boards.load("x86-numa"), tmp_path), made, 3600)
    assert words(job) == ["3600", "100", "/g/integrity", "/m/memmap_watch.ko", "off", "kernel", "mtcopy"]
    assert [line.split("/")[-1] for line in job.setup] == ["ferry_mtcopy.ko"] and job.seconds > 3600


def test_a_board_with_channels_has_dcbm_and_memory_that_was_added(tmp_path: Path) -> None:
    job = soak.job(Context(boards.load("zcu102"), tmp_path), kernel("ferry_mtcopy", "ferry_dcbm"), 3600)
    assert words(job)[3:] == ["-", "off", "kernel", "mtcopy", "dcbm", "auto"]
    assert [line.split("/")[-1] for line in job.setup] == ["ferry_mtcopy.ko", "ferry_dcbm.ko", "add-memory.sh"]


@pytest.mark.parametrize(("quick", "seconds"), [(False, soak.SECONDS), (True, soak.QUICK_SECONDS)])
def test_quick_is_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, quick: bool, seconds: int) -> None:
    def run_jobs(context: Context, kernel: Kernel, jobs: list[Job], name: str) -> list[Result]:
        assert [words(job)[0] for job in jobs] == [str(seconds)]
        return []

    monkeypatch.setattr(guest_boot, "debug_kernel", lambda context: kernel("ferry_mtcopy"))
    monkeypatch.setattr(guest_boot, "run_jobs", run_jobs)
    assert soak.run(Context(boards.load("x86-numa"), tmp_path, quick=quick)) == []


@pytest.mark.parametrize("quick", [False, True])
def test_it_runs_only_by_name(*, quick: bool) -> None:
    assert [suite.board for suite in test.choose("soak", None, quick)] == ["x86-numa"]
    assert "soak" not in [suite.name for suite in test.choose(None, None, quick)]
