# SPDX-License-Identifier: GPL-2.0
"""migrc's suites: the tests of stale_tlb that they name exist; the scripts report what stand-ins for the kernel do."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from pathlib import Path

import pytest

from ferry import boards, paths
from ferry.suites import migrc
from ferry.suites.context import Context
from ferry.vm import guest_programs


def words() -> set[str]:
    """The words that the kernel accepts in fault_inject."""
    sources = (paths.repo_root() / "kernel/overlay/mm/migrc").glob("*.c")
    tables = [table for source in sources
              for table in re.findall(r'= \{\n((?:\t\[\w+\] = "\w+",\n)+)\};', source.read_text())]
    (faults,) = (table for table in tables if '"generation"' in table)
    return set(re.findall(r'"(\w+)"', faults))


def known_tests() -> set[str]:
    """The names in guest/stale_tlb."""
    sources = (paths.repo_root() / "guest/stale_tlb").glob("*.c")
    return {name for source in sources for name in re.findall(r'\.name = "(\w+)"', source.read_text())}


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {name: Path(f"/p/{name}") for name in ("stale_tlb", "integrity", "count", "movebench")}
    monkeypatch.setattr(guest_programs, "programs", lambda arch: made)


def context(tmp_path: Path, board: str = "x86-numa", *, thorough: bool = False) -> Context:
    return Context(boards.load(board), tmp_path, thorough=thorough)


def test_every_fault_has_a_test() -> None:
    assert set(migrc.FAULTS) == words() and len(words()) > 10
    assert all(cases for cases in migrc.FAULTS.values())


def test_a_foreign_board_has_the_same_faults(tmp_path: Path) -> None:
    here, there = (migrc.faults(context(tmp_path, board)) for board in ("x86-numa", "zcu102"))
    assert list(there) == list(here) and all(there.values())
    found = [[case.argument for case in board["entry"]] for board in (here, there)]
    assert found == [["!munmap", "!mremap", "!dontneed"], ["!munmap"]]


def test_tests_exist_and_fit_in_the_time() -> None:
    named = {case.test for cases in migrc.FAULTS.values() for case in cases}
    named |= {*migrc.FILES, *migrc.SWITCH.split(","), migrc.ZEROED, *migrc.FOREIGN_CHECKER_ONLY}
    assert named <= known_tests() and "control" in known_tests()
    assert 30 < len(known_tests()) <= migrc.MOST_TESTS


@pytest.mark.parametrize(("board", "adds"), [("x86-numa", False), ("zcu102", True)])
def test_memory_is_added_if_the_board_has_some(tmp_path: Path, board: str, *, adds: bool) -> None:
    here = context(tmp_path, board)
    every, *others = migrc.jobs(here)
    for job in (every, migrc.faults_job(here)):
        assert any("add-memory.sh" in line for line in job.setup) == adds
    assert not any("add-memory.sh" in line or "mount" in line for job in others for line in job.setup)


def test_every_test_also_runs_while_pages_move_in_runs(tmp_path: Path) -> None:
    every, _, runs, used, _, integrity = migrc.jobs(context(tmp_path))
    assert runs.command == every.command and runs.setup == ("echo 1 >/sys/kernel/mm/migration/runs",)
    assert "stats/runs/moved" in used.command and integrity.setup == ("echo 0 >/sys/kernel/mm/migration/runs",)


@pytest.mark.parametrize(("board", "thorough", "rounds"), [
    ("x86-numa", False, 8), ("x86-numa", True, 1000), ("zcu102", False, 8), ("zcu102", True, 200)])
def test_rounds(tmp_path: Path, board: str, thorough: bool, rounds: int) -> None:
    for job in migrc.jobs(context(tmp_path, board, thorough=thorough))[:2]:
        assert f"--rounds {rounds} " in job.command and "--machine" in job.command and "--ktap" in job.command
        assert job.seconds > rounds


def test_the_checker_is_read_in_each_boot_without_faults(tmp_path: Path) -> None:
    correct = context(tmp_path)
    assert "migrc.sh" in migrc.jobs(correct)[-1].command and "migrc.sh" in migrc.switch_job(correct).command


def test_the_switch_has_a_boot_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boots = []

    def run_jobs(context: Context, kernel: object, jobs: list[migrc.Job], name: str) -> list[object]:
        zeroes = migrc.ZEROING in context.board.append
        boots.append((name, "thread=single" in " ".join(context.board.qemu_options), zeroes, jobs[0].command))
        return []

    monkeypatch.setattr(migrc.guest_boot, "debug_kernel", lambda context: None)
    monkeypatch.setattr(migrc.guest_boot, "run_jobs", run_jobs)
    migrc.run(context(tmp_path))
    assert [boot[:-1] for boot in boots] == [("migrc", False, False), ("migrc-switch", True, True)]
    assert "--except kill_switch" in boots[0][-1] and "--test kill_switch" in boots[1][-1]
    assert ",reuse" in boots[1][-1]
    boots.clear()
    migrc.run(context(tmp_path, "zcu102"))
    assert [name for name, *_ in boots] == ["migrc"] and "--except" not in boots[0][-1]


class Machine:
    """A stand-in for the kernel's files, and a stale_tlb with the given results."""

    def __init__(
        self, home: Path, *, stale: bool = True, reported: bool = True, passes: bool = True, status: int = 0
    ) -> None:
        self.home = home
        self.sysfs, self.debug = home / "migrc", home / "debug"
        (self.sysfs / "counters").mkdir(parents=True)
        self.debug.mkdir()
        for name, text in {"enabled": "0", "drain": "", "quarantined_bytes": "0", "counters/ptes": "5"}.items():
            (self.sysfs / name).write_text(text + "\n")
        (self.debug / "violations").write_text("0\n")
        (self.debug / "fault_inject").write_text("\n")
        self._write_stale_tlb(stale, reported, passes, status)

    def _write_stale_tlb(self, stale: bool, reported: bool, passes: bool, status: int) -> None:
        self.stale_tlb = self.home / "stale_tlb"
        self.stale_tlb.write_text(f"""#!/bin/sh
debug={self.debug}
case "$*" in *control*) exit 0 ;; esac
[ {status} -eq 0 ] || {{ echo '{{"reason": "not here"}}'; exit {status}; }}
case "$*" in
*--until-stale*)
	[ -n "$(tr -d '[:space:]' <$debug/fault_inject)" ] || {{ echo '{{"reason": "no fault was injected"}}'; exit 1; }}
	[ {int(reported)} = 0 ] || echo 1 >$debug/violations
	[ {int(stale)} = 1 ] || {{ echo '{{"reason": "no stale data"}}'; exit 1; }} ;;
*) [ {int(passes)} = 1 ] || {{ echo '{{"reason": "stale: still"}}'; exit 1; }} ;;
esac
""")
        self.stale_tlb.chmod(0o755)

    def script(self, name: str, *arguments: str) -> list[str]:
        """The results that a script of guest/scripts prints; its kernel paths lead to this stand-in."""
        text = (paths.repo_root() / "guest/scripts" / name).read_text()
        text = text.replace("/sys/kernel/mm/migration/migrc", str(self.sysfs))
        text = text.replace("/sys/kernel/debug/migrc", str(self.debug))
        (self.home / name).write_text(text)
        (self.home / "ktap.sh").write_text((paths.repo_root() / "guest/scripts/ktap.sh").read_text())
        done = subprocess.run(["sh", self.home / name, *arguments], cwd=self.home, capture_output=True, text=True,
                              check=False)
        self.status = done.returncode
        return [line for line in done.stdout.splitlines() if line.startswith(("ok", "not ok", "1.."))]

    def inject(self, pair: str = "gup=gup_force") -> list[str]:
        return self.script("migrc-faults.sh", "9", str(self.stale_tlb), "/tmp", pair)


def test_a_fault_that_is_detected(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert machine.inject() == [
        "1..4", "ok 1 control reads stale data", "ok 2 gup: gup_force reads stale data",
        "ok 3 gup: the checker reports gup_force", "ok 4 gup: gup_force passes without the fault"]
    assert machine.status == 0
    assert (machine.debug / "fault_inject").read_text() == "\n" and (machine.sysfs / "drain").read_text() == "1\n"


@pytest.mark.parametrize(("kind", "wrong"), [
    ({"stale": False}, "not ok 2 gup: gup_force reads stale data # no stale data"),
    ({"reported": False}, "not ok 3 gup: the checker reports gup_force # no violation in addition to 0"),
    ({"passes": False}, "not ok 4 gup: gup_force passes without the fault # stale: still"),
])
def test_a_fault_that_is_not_detected(tmp_path: Path, kind: dict[str, bool], wrong: str) -> None:
    machine = Machine(tmp_path, **kind)  # type: ignore[arg-type]
    assert [line for line in machine.inject() if line.startswith("not ok")] == [wrong]
    assert machine.status == 1


def test_a_fault_that_only_the_checker_must_detect(tmp_path: Path) -> None:
    machine = Machine(tmp_path, stale=False)
    found = machine.inject("gup=~gup_force")
    assert found[0] == "1..3" and found[2] == "ok 2 gup: the checker reports gup_force" and len(found) == 4
    assert machine.status == 0


def test_a_test_that_cannot_run_is_a_skip(tmp_path: Path) -> None:
    found = Machine(tmp_path, status=4).inject()
    assert len(found) == 5 and all(line.endswith("# SKIP not here") for line in found[2:])


@pytest.mark.parametrize(("command", "files", "wrong"), [
    ("echo 9 >migrc/counters/ptes", {}, 0),
    ("true", {}, 1),
    ("echo 9 >migrc/counters/ptes; exit 1", {}, 1),
    ("echo 9 >migrc/counters/ptes", {"debug/violations": "2"}, 1),
    ("echo 9 >migrc/counters/ptes", {"migrc/quarantined_bytes": "4096"}, 1),
])
def test_a_correct_kernel_and_others(tmp_path: Path, command: str, files: dict[str, str], wrong: int) -> None:
    machine = Machine(tmp_path)
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    found = machine.script("migrc.sh", "sh", "-c", command)
    assert len(found) == 6 and sum(line.startswith("not ok") for line in found) == wrong
    assert machine.status == min(wrong, 1)


def test_faults_expect_their_reports_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}
    monkeypatch.setattr(migrc.guest_boot, "debug_kernel", lambda context: None)
    monkeypatch.setattr(migrc.guest_boot, "run_jobs", lambda *words, **more: asked.update(more) or [])
    migrc.run_faults(dataclasses.replace(context(tmp_path), thorough=True))
    assert asked == {"expected": (migrc.CHECKER,)}
