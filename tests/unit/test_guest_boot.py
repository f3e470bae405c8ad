# SPDX-License-Identifier: GPL-2.0
"""Jobs of a boot: their shell lines run by this machine's own shell, and what is made of what they leave."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ferry import boards
from ferry.errors import Splat
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Outcome, Result, exit_status, failed
from ferry.vm import kvm

GOOD = "printf 'KTAP version 1\\n1..1\\nok 1 read\\n'"
BAD = "printf 'KTAP version 1\\n1..1\\nnot ok 1 read\\n'"


@pytest.fixture(autouse=True)
def own_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's parser has its own tests; here one result line is one result."""

    def parse(suite: str, prefix: str, lines: list[str], log: Path) -> list[Result]:
        words = {"ok": Outcome.PASSED, "not": Outcome.FAILED}
        return [Result(suite, f"{prefix}.{line.split()[-1]}", words[line.split()[0]])
                for line in lines if line.startswith(("ok", "not ok"))]

    monkeypatch.setattr(guest_boot.ktap, "parse", parse)


def results(share: Path, command: str, *, setup: tuple[str, ...] = ()) -> list[Result]:
    """What comes of one job after its lines have run in `share`."""
    job = Job("suite", "job", command, 1, setup)
    subprocess.run(["sh", "-c", guest_boot.script([job])], cwd=share, capture_output=True, check=False, env=os.environ)
    return guest_boot.results(job, share)


def test_a_job_that_ends_well_is_its_results(tmp_path: Path) -> None:
    assert [(result.name, str(result.outcome)) for result in results(tmp_path, GOOD)] == [("job.read", "passed")]
    assert (tmp_path / "job.status").read_text() == "0\n"


@pytest.mark.parametrize(("command", "setup", "says"), [
    pytest.param(BAD + "; exit 1", (), "", id="a failed test"),
    pytest.param(GOOD + "; echo wrong byte >&2; exit 1", (), "status 1, after 1 results: wrong byte", id="a bad end"),
    pytest.param("true", (), "status 0, after 0 results: it printed nothing", id="no result"),
    pytest.param(GOOD, ("echo cannot >&2; false",), "status 1, after 0 results: cannot", id="no setup"),
    pytest.param("exit 4", (), "status 4, after 0 results", id="skipped without a word"),
    pytest.param(GOOD + "; sh -c 'kill -9 $PPID'", (), "did not end, after 1 results", id="its shell killed"),
])
def test_any_other_end_is_a_failure(tmp_path: Path, command: str, setup: tuple[str, ...], says: str) -> None:
    found = results(tmp_path, command, setup=setup)
    assert exit_status(found) == 1
    assert says in next(result for result in found if result.outcome is Outcome.FAILED).reason


def test_nothing_left_behind_is_a_failure(tmp_path: Path) -> None:
    assert exit_status(guest_boot.results(Job("suite", "job", "true", 1), tmp_path)) == 1


def test_the_next_job_runs_after_a_failed_one(tmp_path: Path) -> None:
    lines = guest_boot.script([Job("suite", "one", "false", 1), Job("suite", "two", GOOD, 1)])
    subprocess.run(["sh", "-c", lines], cwd=tmp_path, capture_output=True, check=False)
    assert (tmp_path / "one.status").read_text() == "1\n" and "ok 1 read" in (tmp_path / "two.ktap").read_text()


@pytest.mark.parametrize(("before", "after", "status"), [("3", "9", 0), ("3", "3", 1), ("3", "", 1), (None, None, 1)])
def test_a_migrator_that_copied_nothing_fails(tmp_path: Path, before: str | None, after: str | None,
                                              status: int) -> None:
    (tmp_path / "job.ktap").write_text("ok 1 read\n")
    (tmp_path / "job.status").write_text("0\n")
    for when, number in (("before", before), ("after", after)):
        if number is not None:
            (tmp_path / f"job.{when}").write_text(number + "\n")
    found = guest_boot.results(Job("suite", "job", "true", 1, migrator="mtcopy"), tmp_path)
    assert exit_status(found) == status
    assert exit_status([*found, failed("suite", "x", "y")]) == 1


def test_a_failure_quotes_what_the_harness_printed_of_that_test(tmp_path: Path) -> None:
    said = "# file.c:7:read:1 is 2", "# file.c:9:write:other", "# read: Test terminated by timeout"
    lines = "\\n".join(said)
    found = results(tmp_path, f"printf '{lines}\\n' >&2; {BAD}")
    assert [result.reason for result in found] == [f"; {said[0]}; {said[2]}"]


def test_every_boot_poisons_free_pages_and_looks_for_leaks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, object] = {}
    monkeypatch.setattr(guest_boot.boot, "boot",
                        lambda board, kernel, script, **options: seen.update(script=script, **options))
    guest_boot.run_jobs(Context(boards.load("x86-numa"), tmp_path), Kernel(
        tmp_path, {}, tmp_path, "key", tmp_path, "7.3.4", tmp_path), [Job("suite", "job", GOOD, 1)], "suite")
    assert "page_poison=1" in str(seen["append"]) and "echo scan >$leaks" in str(seen["script"])


@pytest.mark.parametrize(("console", "boots"), [
    ("Oops: int3: 0000 [#1] SMP\nCode: 00 0f <1f> 44 00 00", ["suite", "suite-again"]),
    ("Oops: int3: 0000 [#1] SMP\nCode: 00 cc <1f> 44 00 00", ["suite"]),
    ("BUG: KASAN: made up", ["suite"]),
])
def test_jobs_that_a_stale_int3_stopped_run_once_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, console: str,
                                                      boots: list[str]) -> None:
    booted = []

    def dies(*_: object, share: Path, **__: object) -> None:
        booted.append(share.name)
        (share / "console.log").write_text("".join(f"[    1.234567] {line}\n" for line in console.splitlines()))
        raise Splat("kernel splat")

    monkeypatch.setattr(kvm, "works", lambda _: False)
    monkeypatch.setattr(guest_boot.boot, "boot", dies)
    found = guest_boot.run_jobs(Context(boards.load("x86-numa"), tmp_path), Kernel(
        tmp_path, {}, tmp_path, "key", tmp_path, "7.3.4", tmp_path), [Job("suite", "job", GOOD, 1)], "suite")
    assert booted == boots and found[-1].name == f"{boots[-1]}: boot" and exit_status(found) != 0


@pytest.mark.parametrize(("begun", "kept"), [
    pytest.param(["one"], [], id="during the first job"),
    pytest.param(["one", "two"], ["one.read"], id="during the second"),
    pytest.param(["one", "two", "end"], ["one.read", "two.read"], id="after the last"),
    pytest.param([], [], id="before the first"),
])
def test_failures_before_a_stale_int3_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, begun: list[str],
                                               kept: list[str]) -> None:
    """The first boot dies, and the second one, in which all pass, does not hide what had failed in it."""
    def boots(*_: object, share: Path, **__: object) -> None:
        first = share.name == "suite"
        for name in ("one", "two"):
            (share / f"{name}.ktap").write_text(f"ok 1 write\n{'not ok' if first else 'ok'} 2 read\n")
            (share / f"{name}.status").write_text("1\n" if first else "0\n")
        marks = "".join(f"ferry-test-job {name}\n" for name in begun)
        oops = "[    1.234567] Oops: int3: 0000 [#1] SMP\n"
        (share / "console.log").write_text(f"{marks}{oops}ferry-test-job two\nferry-test-job end\n" if first else "")
        if first:
            raise Splat("kernel splat")

    monkeypatch.setattr(kvm, "works", lambda _: False)
    monkeypatch.setattr(guest_boot.boot, "boot", boots)
    jobs = [Job("suite", name, "true", 1) for name in ("one", "two")]
    found = guest_boot.run_jobs(Context(boards.load("x86-numa"), tmp_path), Kernel(
        tmp_path, {}, tmp_path, "key", tmp_path, "7.3.4", tmp_path), jobs, "suite")
    bad = [result for result in found if result.outcome is Outcome.FAILED]
    assert [result.name for result in bad] == kept and len(found) == 5 + len(kept)
    assert all("before a stale int3" in result.reason for result in bad)


def test_the_search_for_leaks_is_no_part_of_the_last_job() -> None:
    lines = guest_boot.script([Job("suite", "job", GOOD, 1)]).splitlines()
    marks = [line for line in lines if "ferry-test-job" in line]
    assert marks == ["echo ferry-test-job job", "echo ferry-test-job end"]
    assert lines.index(marks[1]) > lines.index("echo off >/sys/kernel/mm/migration/migrator")
