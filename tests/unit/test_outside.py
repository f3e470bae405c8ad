# SPDX-License-Identifier: GPL-2.0
"""The suite outside: what makes a case worse on our kernel than on the unpatched one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry import boards
from ferry.kernel import build, tree_selftests
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot, outside
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Outcome, Result, failed, passed, skipped

KERNEL = Kernel(Path("/m/bzImage"), {"ferry_mtcopy": Path("/m/ferry_mtcopy.ko")}, Path("/m/config"), "debug",
                Path("/m/log"), "7.3.4", Path("/m/tree"))
CASE = "rmap.migrate.anon"


def one(outcome: str, name: str = CASE) -> Result:
    if outcome == "passed":
        return passed(outside.NAME, name)
    return (failed if outcome == "failed" else skipped)(outside.NAME, name, "why")


@pytest.mark.parametrize(("ours", "stock", "expected"), [
    (["passed"], ["passed"], "passed"),
    (["passed"], ["failed"], "passed"),
    (["failed"], ["failed"], "skipped"),
    (["skipped"], ["skipped"], "skipped"),
    (["skipped"], ["failed"], "skipped"),
    (["failed"] * 3, ["passed"] * 3, "failed"),
    (["skipped"] * 3, ["passed"] * 3, "failed"),
    (["failed"] * 3, ["skipped"] * 3, "failed"),
    (["failed", "passed", "failed"], ["passed"] * 3, "skipped"),
    (["failed"] * 3, ["passed", "failed", "passed"], "skipped"),
])
def test_only_what_is_worse_each_time_fails(ours: list[str], stock: list[str], expected: str) -> None:
    turns = [{"stock": [one(other)], "runs": [one(own)]} for own, other in zip(ours, stock, strict=True)]
    result = outside.verdict(turns, "runs", CASE)
    assert (result.outcome, result.name) == (Outcome(expected), f"runs: {CASE}")
    assert ("why" in result.reason) == (expected != "passed")


def test_a_case_without_a_result_has_failed() -> None:
    turn = {"stock": [one("passed")], "runs": [failed(outside.NAME, "rmap", "crashed")]}
    assert outside.verdict([turn] * 3, "runs", CASE).outcome is Outcome.FAILED


class Guest:
    """Stands for the boots: each case passes, but for one of `rmap` on our kernel in the first `bad` boots."""

    def __init__(self, bad: int) -> None:
        self.bad = bad
        self.boots: list[tuple[str, list[Job]]] = []

    def __call__(self, context: Context, kernel: Kernel, jobs: list[Job], name: str) -> list[Result]:
        self.boots.append((name, jobs))
        results = [one("passed", f"{job.name}.case") for job in jobs]
        if "-runs-" in name and len([boot for boot, _ in self.boots if "-runs-" in boot]) <= self.bad:
            results = [one("failed", r.name) if r.name == "rmap.case" else r for r in results]
        return [*results, passed(outside.NAME, f"{name}: no splat")]


@pytest.fixture
def guest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Guest:
    fake = Guest(request.param)
    monkeypatch.setattr(guest_boot, "run_jobs", fake)
    monkeypatch.setattr(build, "build", lambda board, name, debug: KERNEL)
    monkeypatch.setattr(tree_selftests, "programs", lambda names: {name: Path("/t", name) for name in names})
    return fake


@pytest.mark.parametrize(("guest", "boots", "outcome"), [
    (0, 3, Outcome.PASSED), (1, 9, Outcome.SKIPPED), (3, 9, Outcome.FAILED),
], indirect=["guest"])
def test_a_program_that_is_worse_runs_three_times(guest: Guest, tmp_path: Path, boots: int, outcome: Outcome) -> None:
    results = outside.run(Context(boards.load("x86-numa"), tmp_path))
    assert len(guest.boots) == boots
    assert all([job.name for job in jobs] == ["rmap"] for _, jobs in guest.boots[3:])
    found = {result.name: result.outcome for result in results}
    assert found["runs: rmap.case"] is outcome
    assert found["all: rmap.case"] is found["runs: cow.case"] is Outcome.PASSED
    assert f"{outside.NAME}-all-1: no splat" in found


@pytest.mark.parametrize("guest", [0], indirect=True)
def test_each_side_has_its_features_on(guest: Guest, tmp_path: Path) -> None:
    outside.run(Context(boards.load("x86-numa"), tmp_path))
    (_, stock), (_, runs), (_, both) = guest.boots
    assert not any("migration" in line for job in stock for line in job.setup)
    assert runs[0].setup[-1] == "echo 1 >/sys/kernel/mm/migration/runs"
    assert not any("echo mtcopy" in line for line in runs[0].setup)
    assert "echo mtcopy >/sys/kernel/mm/migration/migrator" in both[0].setup
    assert "echo 1 >/sys/kernel/mm/migration/migrc/enabled" in both[0].setup
    assert [job.migrator for job in both if job.migrator] == ["mtcopy"] and both[0].name == "migration"
    assert "used.sh stats/runs/moved" in runs[-1].command and "migrc/counters/folios" in both[-1].command
