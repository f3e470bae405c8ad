# SPDX-License-Identifier: GPL-2.0
"""KCSAN's reports: parsed from the console, and those in our code told from others."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry import boards
from ferry.suites import kcsan
from ferry.suites.context import Context
from ferry.suites.result import Outcome, failed

ENABLED = "[    0.000000] kcsan: enabled early"
REPORT = """\
[   12.000000][  T100] ==================================================================
[   12.000001][  T100] BUG: KCSAN: data-race in {outer} / list_del_entry
[   12.000002][  T100]
[   12.000003][  T100] write to 0xffff888000000008 of 8 bytes by task 100 on cpu 0:
[   12.000004][  T100]  {inner}+0x10/0x20
[   12.000005][  T100]  {outer}.constprop.0+0x30/0x40
[   12.000006][  T100]  ksys_move_pages+0x10/0x20
[   12.000007][  T100]
[   12.000008][  T100] read to 0xffff888000000008 of 8 bytes by task 101 on cpu 1:
[   12.000009][  T100]  list_del_entry+0x30/0x40
[   12.000010][  T100]
[   12.000011][  T100] Reported by Kernel Concurrency Sanitizer on:
[   12.000012][  T100] ==================================================================
"""


def report(inner: str, outer: str) -> str:
    return REPORT.format(inner=inner, outer=outer)


def judged(tmp_path: Path, console: str) -> list[tuple[Outcome, str]]:
    log = tmp_path / "console.log"
    log.write_text(console)
    return [(result.outcome, result.name) for result in kcsan._judged(log, 1.0)]


def test_a_race_has_two_stacks() -> None:
    (race,) = kcsan.parse(report("__list_add", "migrc_quarantine").splitlines())
    assert race.title == "data-race in migrc_quarantine / list_del_entry"
    assert race.stacks == (("__list_add", "migrc_quarantine", "ksys_move_pages"), ("list_del_entry",))


def test_functions_of_the_overlay_are_known() -> None:
    known = kcsan.overlay_functions()
    assert {"migrc_quarantine", "__migrc_drain", "mtcopy_copy", "ferry_eligible", "dcbm_copy"} <= known
    assert not known & {"list_del", "folio_put", "if", "while", "copy_page"}


@pytest.mark.parametrize(("inner", "outer", "ours"), [
    ("__list_add", "migrc_quarantine", True),
    ("migrc_quarantine", "anything", True),
    ("__list_add", "list_add_tail", False),
    ("const_folio_flags", "migrc_quarantine", False),
    ("folio_unlock", "migrc_quarantine", True),
])
def test_a_race_counts_if_our_code_is_innermost(tmp_path: Path, inner: str, outer: str, *, ours: bool) -> None:
    outcomes = [outcome for outcome, _ in judged(tmp_path, ENABLED + "\n" + report(inner, outer))]
    assert outcomes == [Outcome.FAILED if ours else Outcome.PASSED]


def test_a_kernel_without_the_detector_fails(tmp_path: Path) -> None:
    assert judged(tmp_path, "") == [(Outcome.FAILED, "no race in our code")]


def test_races_of_a_repeated_boot_and_of_the_first_one_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The consoles of both boots are judged, and each needs the detector."""
    monkeypatch.setattr(kcsan.guest_boot, "debug_kernel", lambda _: None)
    monkeypatch.setattr(kcsan, "jobs", lambda *_: [])
    monkeypatch.setattr(kcsan.guest_boot, "run_jobs", lambda *_, **__: [])
    context = Context(boards.load(kcsan.BOARD), tmp_path)

    def found(**consoles: str) -> list[str]:
        for name, console in consoles.items():
            (tmp_path / name.replace("_", "-")).mkdir(exist_ok=True)
            (tmp_path / name.replace("_", "-") / "console.log").write_text(console)
        return [result.name for result in kcsan.run(context) if result.outcome is Outcome.FAILED]

    race, title = f"{ENABLED}\n{report('migrc_quarantine', 'x')}", "data-race in x / list_del_entry"
    assert found(kcsan=ENABLED) == []
    assert found(kcsan=race) == [title]
    assert found(kcsan_again=ENABLED) == [title]
    assert found(kcsan=ENABLED, kcsan_again=race) == [title]
    assert found(kcsan_again="") == ["no race in our code"]


def test_the_loads_are_those_of_other_suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kcsan.selftests, "jobs", lambda *_: [])
    monkeypatch.setattr(kcsan.guest_boot, "load", lambda *_: "insmod m")
    made = {name: tmp_path / name for name in ("stale_tlb", "integrity", "count", "movebench")}
    monkeypatch.setattr(kcsan.integrity.guest_programs, "programs", lambda arch: made)
    jobs = kcsan.jobs(Context(boards.load(kcsan.BOARD), tmp_path), None)  # type: ignore[arg-type]
    names = [job.name for job in jobs]
    assert len(set(names)) == len(names) > 8
    named = kcsan.jobs(Context(boards.load(kcsan.BOARD), tmp_path, thorough=True), None)  # type: ignore[arg-type]
    assert [job.command for job in named] == [job.command for job in jobs]
    assert {job.suite for job in jobs} == {kcsan.NAME} and {job.migrator for job in jobs} >= {"kernel", "mtcopy"}


@pytest.mark.parametrize(("name", "outcome"), [
    ("selftests-ferry_thp.thp.one_flush_for_a_batch", Outcome.SKIPPED),
    ("selftests-ferry_thp.ktap", Outcome.FAILED),
    ("selftests-ferry_thp", Outcome.FAILED),
    ("integrity-mtcopy.content", Outcome.FAILED),
])
def test_a_case_of_a_selftest_is_only_a_load(name: str, outcome: Outcome) -> None:
    """A program that crashed, or has printed nothing, has failed, and so has a wrong byte."""
    assert kcsan.as_load(failed(kcsan.NAME, name, "too slow")).outcome is outcome
