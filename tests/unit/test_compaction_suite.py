# SPDX-License-Identifier: GPL-2.0
"""The suite compaction: what it asks of the script, and for how long."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ferry import boards
from ferry.kernel.build import Kernel
from ferry.suites import compaction, guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs


@pytest.mark.parametrize(("thorough", "seconds"), [(True, compaction.SECONDS), (False, compaction.SHORT_SECONDS)])
def test_all_migrators_share_the_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, thorough: bool,
                                      seconds: int) -> None:
    def run_jobs(context: Context, kernel: Kernel, jobs: list[Job], name: str,
                 append: tuple[str, ...]) -> list[Result]:
        assert [shlex.split(job.command)[2:] for job in jobs] == [
            ["/g/compactbench"], [], [str(seconds), "/g/integrity", *compaction.MIGRATORS]]
        assert "/m/alloc_blocks.ko" in jobs[0].setup[0]
        assert jobs[2].seconds > seconds and append == (compaction.REGION,)
        return []

    modules = {name: Path(f"/m/{name}.ko") for name in ("ferry_mtcopy", "alloc_blocks")}
    kernel = Kernel(Path("/m/Image"), modules, Path("/m/config"), "debug", Path("/m/log"), "7.3.4", Path("/m/tree"))
    monkeypatch.setattr(guest_boot, "debug_kernel", lambda context: kernel)
    monkeypatch.setattr(guest_programs, "programs", lambda arch="x86_64": {
        name: Path(f"/g/{name}") for name in ("integrity", "compactbench")})
    monkeypatch.setattr(guest_boot, "run_jobs", run_jobs)
    assert compaction.run(Context(boards.load("x86-tier"), tmp_path, thorough=thorough)) == []
