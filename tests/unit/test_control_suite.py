# SPDX-License-Identifier: GPL-2.0
"""The suite control: what is short, and what only its name asks for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ferry import boards
from ferry.debian import packages
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.suites import control, guest_boot, selftests
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs, tcg

KERNEL = Kernel(Path("/m/Image"), {"ferry_mtcopy": Path("/m/ferry_mtcopy.ko")}, Path("/m/config"), "debug",
                Path("/m/log"), "7.3.4", Path("/m/tree"))
RELEASE = dataclasses.replace(KERNEL, modules={"ferry_mtcopy": Path("/r/ferry_mtcopy.ko")})


@pytest.fixture
def boots(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Context, list[Job]]]:
    made: list[tuple[Context, list[Job]]] = []

    def run_jobs(context: Context, kernel: Kernel, jobs: list[Job], name: str) -> list[Result]:
        made.append((context, jobs))
        return []

    monkeypatch.setattr(guest_boot, "debug_kernel", lambda context: KERNEL)
    monkeypatch.setattr(build, "build", lambda board, kernel: RELEASE)
    monkeypatch.setattr(guest_boot, "run_jobs", run_jobs)
    monkeypatch.setattr(guest_programs, "programs", lambda arch="x86_64": {"integrity": Path("/g/integrity")})
    monkeypatch.setattr(packages, "with_libraries", Path)
    monkeypatch.setattr(packages, "run_unpacked", lambda home, program: ["/p/promtool"])
    monkeypatch.setattr(selftests, "jobs", lambda context, kernel: [
        Job(selftests.NAME, name, name, 1) for name in ("ferry_other", control.SELFTEST)])
    return made


def test_it_is_short_unless_named(boots: list[tuple[Context, list[Job]]], tmp_path: Path) -> None:
    control.run(Context(boards.load("x86-numa"), tmp_path))
    (single, verbs), (context, jobs) = boots
    assert [job.name for job in verbs + jobs] == ["ctl", "warm-up", "random-values"]
    assert "promtool" not in verbs[0].command and jobs[1].command.endswith(f"--seconds {control.SHORT_SECONDS}")
    assert set(tcg.SINGLE_THREAD) <= set(context.board.qemu_options) and not context.board.kvm
    assert context == single
    assert "/r/ferry_mtcopy.ko" in verbs[0].setup[0]
    assert all("/m/ferry_mtcopy.ko" in job.setup[0] for job in jobs)


def test_if_named_it_is_longer_and_has_promtool_and_the_limits(boots: list[tuple[Context, list[Job]]],
                                                               tmp_path: Path) -> None:
    control.run(Context(boards.load("x86-numa"), tmp_path, thorough=True))
    (_, verbs), (_, jobs), (context, limits) = boots
    assert verbs[0].command.endswith("/p/promtool") and jobs[1].command.endswith(f"--seconds {control.SECONDS}")
    assert [(job.suite, job.name) for job in limits] == [(control.NAME, control.SELFTEST)]
    assert context.board == boards.load("x86-numa")
