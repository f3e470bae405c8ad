# SPDX-License-Identifier: GPL-2.0
"""The suite outside: what is worse on our kernel than on the unpatched one, and what each boot runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferry import boards
from ferry.debian import packages
from ferry.errors import Splat, TimedOut
from ferry.kernel import build, tree_selftests
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot, outside, render
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.render import SuiteRun
from ferry.suites.result import Outcome, Result, error, failed, passed, skipped
from ferry.vm import guest_programs

KERNEL = Kernel(Path("/m/bzImage"), {name: Path(f"/m/{name}.ko") for name in ("ferry_mtcopy", "test_hmm")},
                Path("/m/config"), "debug", Path("/m/log"), "7.3.4", Path("/m/tree"))
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
    record = json.loads(render.render([SuiteRun("outside", [result], 1)], Path("logs"), "json"))["results"][0]
    assert (record["ours"].split(), record["stock"].split()) == (ours, stock)


def test_a_case_without_a_result_has_failed() -> None:
    turn = {"stock": [one("passed")], "runs": [failed(outside.NAME, "rmap", "crashed")]}
    assert outside.verdict([turn] * 3, "runs", CASE).outcome is Outcome.FAILED


@pytest.mark.parametrize("end", ["rmap", "rmap.ktap"])
def test_a_program_that_only_ends_badly_is_worse(end: str) -> None:
    turn = {"stock": [one("passed")], "runs": [one("passed"), failed(outside.NAME, end, "status 1")]}
    assert outside.verdict([turn] * 3, "runs", end).outcome is Outcome.FAILED
    assert outside.verdict([{"stock": turn["runs"], "runs": turn["stock"]}], "runs", end).outcome is Outcome.PASSED


def test_a_measured_number_in_a_name_keeps_no_case_from_its_partner() -> None:
    names = ["fio-ext4.wrote 12.5 of 64", "fio-ext4.4 KiB", "fio-ext4.64 KiB", "booted 7"]
    found = outside.paired([passed("outside", name) for name in names])
    assert [result.name for result in found] == ["fio-ext4.wrote N of N", *names[1:]]


def test_a_case_whose_name_differs_each_time_is_unstable() -> None:
    turns = [{"stock": [one("passed", f"rmap.at {number}")], "runs": []} for number in range(3)]
    assert [outside.verdict(turns, "runs", f"rmap.at {number}").outcome for number in range(3)] == [Outcome.SKIPPED] * 3


WARNING = "[   10.5] WARNING: mm/rmap.c:{line} at try_to_unmap+0x{line}/0x2b0, CPU#1: rmap/7{line}\n"
OTHER = "[   11.5] WARNING: mm/ferry_runs/move.c:12 at move+0x1/0x2, CPU#1: rmap/7\n"
OOPS = "[   12.5] Oops: general protection fault, probably for non-canonical address 0x3\n"


@pytest.mark.parametrize(("stock", "ours", "expected"), [
    ("", WARNING, ["passed", "failed"]),
    (WARNING, "", ["skipped", "passed"]),
    (WARNING, WARNING, ["skipped", "skipped"]),
    (WARNING, WARNING + OTHER, ["skipped", "failed"]),
    (WARNING, OOPS, ["skipped", "failed"]),
    (WARNING + OOPS, WARNING, ["failed", "skipped"]),
])
def test_only_a_splat_that_is_ours_fails(tmp_path: Path, stock: str, ours: str, expected: list[str]) -> None:
    boots = {}
    for number, (side, text) in enumerate((("stock", stock), ("all", ours)), 1):
        log = tmp_path / side
        log.write_text(text.format(line=number))
        name = f"outside-{side}-1"
        boots[side] = [error(outside.NAME, f"{name}: boot", Splat("kernel splat: x", log=log)) if text
                       else passed(outside.NAME, f"{name}: no splat")]
    assert [str(result.outcome) for result in outside.judged(boots)] == expected


def test_a_guest_that_never_ends_fails_also_on_the_unpatched_kernel(tmp_path: Path) -> None:
    late = error(outside.NAME, "outside-stock-1: boot", TimedOut("x86-numa: late", log=tmp_path / "log"))
    assert outside.judged({"stock": [late]}) == [late]


class Guest:
    """Stands for the boots: each case passes, but for one of `rmap` on our kernel in the first `bad` boots."""

    def __init__(self, bad: int) -> None:
        self.bad = bad
        self.boots: list[tuple[str, list[Job]]] = []

    def __call__(self, context: Context, kernel: Kernel, jobs: list[Job], name: str, silence_s: float) -> list[Result]:
        assert silence_s > max(job.seconds for job in jobs)
        self.boots.append((name, jobs))
        results = [one("passed", f"{job.name}.case") for job in jobs]
        if name.startswith("outside-all-") and int(name[-1]) <= self.bad:
            results = [one("failed", r.name) if r.name == "rmap.case" else r for r in results]
        return [*results, passed(outside.NAME, f"{name}: no splat")]


@pytest.fixture
def guest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Guest:
    fake = Guest(request.param)
    monkeypatch.setattr(guest_boot, "run_jobs", fake)
    monkeypatch.setattr(build, "build", lambda board, name, debug: KERNEL)
    monkeypatch.setattr(tree_selftests, "programs", lambda names: {name: Path("/t", name) for name in names})
    monkeypatch.setattr(guest_programs, "programs", lambda: {"moveall": Path("/g/moveall")})
    monkeypatch.setattr(packages, "with_libraries", lambda package: Path("/p", package))
    monkeypatch.setattr(packages, "run_unpacked", lambda home, program: ["/p/ld.so", str(home / program)])
    return fake


@pytest.mark.parametrize(("guest", "boots", "outcome"), [
    (0, 4, Outcome.PASSED), (1, 8, Outcome.SKIPPED), (3, 8, Outcome.FAILED),
], indirect=["guest"])
def test_a_program_that_is_worse_runs_three_times(guest: Guest, tmp_path: Path, boots: int, outcome: Outcome) -> None:
    results = outside.run(Context(boards.load("x86-numa"), tmp_path))
    assert len(guest.boots) == boots
    assert all([job.name for job in jobs] == ["rmap"] for _, jobs in guest.boots[4:])
    found = {result.name: result.outcome for result in results}
    assert found["all: rmap.case"] is outcome
    assert found["all: cow.case"] is found["all: trinity.case"] is Outcome.PASSED
    assert f"{outside.NAME}-all-1: no splat" in found and f"{outside.NAME}-trinity-all-1: no splat" in found


@pytest.mark.parametrize("guest", [0], indirect=True)
def test_each_side_has_its_features_on(guest: Guest, tmp_path: Path) -> None:
    outside.run(Context(boards.load("x86-numa"), tmp_path))
    boots = dict(guest.boots)
    assert not any("migration" in line for name in ("outside-stock-1", "outside-trinity-stock-1")
                   for job in boots[name] for line in job.setup)
    for name in ("outside-all-1", "outside-trinity-all-1"):
        jobs = boots[name]
        assert all("echo mtcopy >/sys/kernel/mm/migration/migrator" in job.setup for job in jobs[:-1])
        assert all("echo 1 >/sys/kernel/mm/migration/migrc/enabled" in job.setup for job in jobs[:-1])
        assert [job.migrator for job in jobs] == ["mtcopy", *[""] * (len(jobs) - 1)]
        assert "echo 1 >/sys/kernel/mm/migration/runs" in jobs[0].setup
        assert "used.sh stats/runs/moved migrc/counters/folios" in jobs[-1].command


@pytest.mark.parametrize("guest", [0], indirect=True)
def test_what_a_boot_runs(guest: Guest, tmp_path: Path) -> None:
    outside.run(Context(boards.load("x86-numa"), tmp_path))
    boots = dict(guest.boots)
    jobs = {job.name: job for job in boots["outside-stock-1"]}
    assert len(jobs) == len(boots["outside-stock-1"])
    assert [job.name for job in boots["outside-trinity-stock-1"]] == ["trinity"]
    assert "./ksm_tests -M -p 10" in jobs["ksm_tests-merge"].command
    assert [name for name, job in jobs.items() if "insmod /m/test_hmm.ko" in " ".join(job.setup)] == ["hmm-tests"]
    limits = {job.seconds: job.command.split()[:4] for job in jobs.values()}
    assert all(words[0] == "timeout" and int(words[3]) < seconds for seconds, words in limits.items())
    for name in ("stress-ng", "fio-ext4", "fio-tmpfs"):
        assert "/g/moveall sh " in jobs[name].command
    assert "with-disk.sh" in jobs["fio-ext4"].command and "/dev/shm" in jobs["fio-tmpfs"].command
