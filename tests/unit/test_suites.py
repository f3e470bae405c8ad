# SPDX-License-Identifier: GPL-2.0
"""The verb: which suites are run, what becomes of those that cannot be, how it ends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ferry import boards, proc, suites
from ferry.commands import cli, test
from ferry.errors import FerryError, InfraError, Splat, TimedOut, UsageError
from ferry.suites import Suite, guest_boot, render
from ferry.suites import pytest as pytest_suite
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.render import SuiteRun
from ferry.suites.result import Outcome, Result, error, exit_status, failed, passed, skipped
from ferry.vm import boot

GOOD = passed("a", "one", 1.5)
BAD = failed("a", "two", "a wrong byte in page 7", log=Path("log"))
SKIP = skipped("a", "three", "no such device")


def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *runs: Callable[[Context], list[Result]]) -> None:
    """Replace the suites by these, called s0, s1, ..."""
    fakes = tuple(Suite(f"s{number}", "", suites.HOST, run) for number, run in enumerate(runs))
    monkeypatch.setattr(suites, "ALL", fakes)
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path))


@pytest.mark.parametrize(("results", "status", "line"), [
    ([GOOD, SKIP], 0, "1 passed, 0 failed, 1 skipped"),
    ([GOOD, BAD, SKIP], 1, "1 passed, 1 failed, 1 skipped"),
    ([SKIP], 4, "0 passed, 0 failed, 1 skipped"),
    ([], 4, "0 passed, 0 failed, 0 skipped"),
    ([BAD, error("a", "boot", Splat("BUG"))], 5, "0 passed, 2 failed, 0 skipped"),
    ([GOOD, error("a", "boot", TimedOut("late"))], 124, "1 passed, 1 failed, 0 skipped"),
    ([GOOD, error("a", "run", InfraError("no disk"))], 3, "1 passed, 1 failed, 0 skipped"),
    ([BAD, error("a", "run", InfraError("no disk"))], 1, "0 passed, 2 failed, 0 skipped"),
])
def test_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                 results: list[Result], status: int, line: str) -> None:
    pretend(monkeypatch, tmp_path, lambda context: results)
    assert cli.main(["test"]) == status
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == line
    for result in results:
        named = [text for text in printed if text == f"{result.outcome}: a: {result.name}: {result.reason}"]
        assert bool(named) == (result.outcome is not Outcome.PASSED)


def test_a_suite_that_cannot_run_does_not_stop_the_next(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_source(context: Context) -> list[Result]:
        raise InfraError("no network", hint="--source")

    pretend(monkeypatch, tmp_path, no_source, lambda context: [GOOD])
    context = Context(boards.load("x86-numa"), tmp_path)
    first, second = (test.run_suite(suite, context) for suite in suites.ALL)
    assert first.results[0].reason == "no network; next: --source" and second.results == [GOOD]
    assert exit_status(first.results) == 3


def test_a_board_that_cannot_be_here_is_skipped_with_its_reason(monkeypatch: pytest.MonkeyPatch,
                                                                tmp_path: Path) -> None:
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path))
    monkeypatch.setattr(boards, "unavailable", lambda board: "no emulator")
    (suite,) = test.choose("arm64", "zcu102", False)
    found = test.run_suite(suite, Context(boards.load("x86-numa"), tmp_path)).results
    assert [(result.outcome, result.reason) for result in found] == [(Outcome.SKIPPED, "no emulator")]
    assert cli.main(["test", "--board", "zcu102"]) == 4
    assert cli.main(["boot", "--board", "zcu102"]) == 4


def test_suites_alongside_run_beside_the_others_and_keep_their_place(tmp_path: Path) -> None:
    meet = threading.Barrier(2, timeout=10)

    def meeting(context: Context) -> list[Result]:
        meet.wait()
        return [GOOD]

    chosen = [Suite("long", "", "", meeting, alongside=True), Suite("other", "", "", meeting)]
    done = test.run_suites(chosen, Context(boards.load("x86-numa"), tmp_path))
    assert [(suite.name, suite.results) for suite in done] == [("long", [GOOD]), ("other", [GOOD])]


def test_an_interruption_ends_what_runs_alongside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "_ended", threading.Event())
    started = threading.Event()

    def sleeps(context: Context) -> list[Result]:
        proc.run(["sh", "-c", "echo started; exec sleep 60"], progress=lambda line: started.set())
        proc.run(["sleep", "60"])
        return [GOOD]

    def interrupted(context: Context) -> list[Result]:
        assert started.wait(10)
        raise KeyboardInterrupt

    chosen = [Suite("long", "", "", sleeps, alongside=True), Suite("other", "", "", interrupted)]
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        test.run_suites(chosen, Context(boards.load("x86-numa"), tmp_path))
    assert time.monotonic() - before < 30


def test_the_logs_of_a_run_that_is_not_over_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "tests"

    def others(context: Context) -> list[Result]:
        for number in range(test.KEPT):
            (home / f"30000101T00000{number}Z").mkdir()
        assert cli.main(["test", "--suite", "s1"]) == 0
        return [GOOD if context.logs.is_dir() else BAD]

    pretend(monkeypatch, tmp_path, others, lambda context: [GOOD])
    assert cli.main(["test", "--suite", "s0"]) == 0
    assert cli.main(["test", "--suite", "s1"]) == 0
    assert len(list(home.iterdir())) == test.KEPT


def test_a_mistake_of_the_user_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def mistake(context: Context) -> list[Result]:
        raise UsageError("--source x does not exist")

    pretend(monkeypatch, tmp_path, mistake)
    assert cli.main(["test"]) == 2


def test_json_is_one_document(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                              capsys: pytest.CaptureFixture[str]) -> None:
    pretend(monkeypatch, tmp_path, lambda context: [GOOD, BAD, SKIP], lambda context: [GOOD])
    assert cli.main(["test", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["passed"], document["failed"], document["skipped"]) == (2, 2, 1, 1)
    assert document["exit_status"] == 1 and [suite["suite"] for suite in document["suites"]] == ["s0", "s1"]
    assert document["results"][1]["reason"] == "a wrong byte in page 7"


def test_markdown_and_csv_have_every_suite_and_result() -> None:
    finished = [SuiteRun("a", [GOOD, BAD, SKIP], 2)]
    assert "| a | 1 | 1 | 1 | 2 |" in render.render(finished, Path("logs"), "markdown").replace("|a", "| a")
    assert len(render.render(finished, Path("logs"), "csv").splitlines()) == 4


def test_choosing() -> None:
    def names(*choice: object) -> list[str]:
        return [suite.name for suite in test.choose(*choice)]  # type: ignore[arg-type]

    assert names("kunit,lint", None, False) == ["lint", "kunit"]
    assert names(None, "uml", False) == ["kunit"]
    assert names(None, "x86-numa", False) == [
        "kunit-numa", "selftests", "memmap", "integrity", "runs", "migrc", "migrc-faults", "bench-smoke",
        "control", "module_switch"]
    assert names(None, None, True) == ["pytest", "kunit", "smoke"]
    assert [(suite.name, suite.board) for suite in test.choose("migrc", "zcu102", False)] == [("migrc", "zcu102")]
    assert [suite.board for suite in test.choose("migrc", None, False)] == ["x86-numa"]
    for choice in (("nobody", None, False), ("", None, False), ("lint", "uml", False), (None, "x86-icount", False)):
        with pytest.raises(UsageError):
            names(*choice)


@pytest.mark.parametrize("error", [Splat("kernel splat: BUG: KASAN"), TimedOut("late"), InfraError("died")])
def test_a_boot_that_ends_badly_keeps_what_its_jobs_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                         error: FerryError) -> None:
    def dies(*args: object, share: Path, **rest: object) -> None:
        (share / "one.ktap").write_text("KTAP version 1\n1..1\nok 1 read\n")
        (share / "one.status").write_text("0\n")
        raise error

    monkeypatch.setattr(boot, "boot", dies)
    monkeypatch.setattr(guest_boot.ktap, "parse", lambda suite, name, lines, log: [passed(suite, f"{name}.read")])
    context = Context(boards.load("x86-numa"), tmp_path)
    jobs = [Job("s", "one", "true", 1), Job("s", "two", "true", 1)]
    found = guest_boot.run_jobs(context, None, jobs, "s")  # type: ignore[arg-type]
    assert [(result.name, str(result.outcome)) for result in found] == [
        ("one.read", "passed"), ("two", "failed"), ("s: boot", "failed")]
    assert exit_status(found) == (1 if error.status in (3, 124) else 5)


JUNIT = """<testsuites><testsuite>
<testcase classname="tests.unit.test_a" name="test_good" time="0.5"/>
<testcase classname="tests.unit.test_a" name="test_bad[x]" time="0.1"><failure message="assert 1 == 2&#10;more">
trace</failure></testcase>
<testcase classname="tests.unit.test_a" name="test_skip"><skipped message="no KVM"/></testcase>
<testcase classname="" name="tests.unit.test_b"><error message="collection failure"/></testcase>
</testsuite></testsuites>"""


def test_pytest_results(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(JUNIT)
    read = pytest_suite.read("pytest", report, Path("log"))
    assert [(result.name, str(result.outcome), result.reason) for result in read] == [
        ("unit.test_a.test_good", "passed", ""), ("unit.test_a.test_bad[x]", "failed", "assert 1 == 2"),
        ("unit.test_a.test_skip", "skipped", "no KVM"), ("unit.test_b", "failed", "collection failure")]
