# SPDX-License-Identifier: GPL-2.0
"""`ferry top`: rates and percentiles between two snapshots."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import migration_tree
import pytest

from ferry.commands import cli, top
from ferry.control import tree
from ferry.control.histogram import EMPTY, Histogram, difference, locked, percentile
from ferry.control.rates import Interval, copy_rates, reason_rates
from ferry.control.tree import Snapshot


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return migration_tree.make(tmp_path / "migration")


def after(root: Path, seconds: float, change: Callable[[], object]) -> Interval:
    """The interval in which `change` happened."""
    before = tree.snapshot(root)
    change()
    return Interval(before, Snapshot(before.at_s + seconds, tree.snapshot(root).values))


@pytest.mark.parametrize(("before", "now", "increase"), [(5, 12, 7), (5, 5, 0), (5, 3, 3), (5, 0, 0), (None, 4, 4)])
def test_a_counter_that_shrank_was_restarted(before: int | None, now: int, increase: int) -> None:
    start = Snapshot(10.0, {} if before is None else {"n": before})
    interval = Interval(start, Snapshot(14.0, {"n": now}))
    assert (interval.increase("n"), interval.rate("n")) == (increase, increase / 4)
    assert interval.rate("absent") == 0


def test_copies_by_migrator_and_reason(root: Path) -> None:
    migration_tree.count(root, bytes=1000, batches=1)
    interval = after(root, 2, lambda: migration_tree.count(root, bytes=8000, copy_ns=2000, batches=4, skipped_pinned=6))
    (one,) = copy_rates(interval)
    assert (one.of.migrator, one.of.reason, one.gbps) == ("mtcopy", "demotion", 4.0)
    assert (one.rates["bytes"], one.rates["batches"], one.rates["skipped_pinned"]) == (4000, 2, 3)


def test_a_kernel_without_reasons_has_one_row_a_migrator(root: Path) -> None:
    for reason in migration_tree.REASONS:
        shutil.rmtree(root / "stats/mtcopy" / reason)
    interval = after(root, 1, lambda: migration_tree.add(root, "stats/mtcopy/rejected", 3))
    (one,) = copy_rates(interval)
    assert (one.of.reason, one.rates["rejected"], one.gbps) == ("", 3, None)


def test_reasons_that_did_nothing_are_left_out(root: Path) -> None:
    def change() -> None:
        migration_tree.add(root, "stats/reasons/numa_misplaced/moved_pages", 512)
        migration_tree.add(root, "stats/reasons/damon/throttled_us", 3_000_000)
        migration_tree.lock(root, "numa_misplaced", 50, 60, 3000)
        migration_tree.store(root, "reasons/damon/max_bytes_per_s", "1000000")
        migration_tree.store(root, "reasons/contig_range/migrator", "off")

    damon_before_numa = {one.reason: one for one in reason_rates(after(root, 2, change))}
    assert list(damon_before_numa) == ["damon", "numa_misplaced"]
    damon, numa = damon_before_numa["damon"], damon_before_numa["numa_misplaced"]
    assert (damon.max_bytes_per_s, damon.throttled_share, damon.migrator) == (1_000_000, 1.5, "inherit")
    assert (numa.moved_pages, percentile(numa.locked, 0.5), percentile(numa.locked, 0.99)) == (256, 64, 4096)
    idle = after(root, 2, lambda: migration_tree.store(root, "runs", "1"))
    assert reason_rates(idle) == []


def test_copies_of_before_are_left_out(root: Path) -> None:
    migration_tree.count(root, bytes=1000, batches=1)
    assert copy_rates(after(root, 2, lambda: migration_tree.store(root, "runs", "1"))) == []


@pytest.mark.parametrize(("share", "bound"), [(0.5, 64), (0.51, 256), (0.75, 256), (0.76, 1024), (1.0, float("inf"))])
def test_a_percentile_is_the_bound_that_it_does_not_exceed(share: float, bound: float) -> None:
    assert percentile(Histogram({64: 50, 256: 75, 1024: 99}, 100, 0), share) == bound


def test_no_batch_has_no_percentile() -> None:
    assert percentile(EMPTY, 0.5) is None
    assert percentile(Histogram({64: 0}, 0, 0), 0.99) is None


def test_a_percentile_is_of_the_interval_alone() -> None:
    before, now = Histogram({64: 100, 256: 100}, 100, 5000), Histogram({64: 101, 256: 104}, 104, 6000)
    between = difference(before, now)
    assert between == Histogram({64: 1, 256: 4}, 4, 1000)
    assert percentile(between, 0.5) == 256
    for restarted in (Histogram({64: 1, 256: 2}, 2, 9000), Histogram({64: 100, 256: 200}, 200, 100)):
        assert difference(before, restarted) == restarted
    assert difference(EMPTY, now) == now


def test_buckets_are_read_by_their_bounds(root: Path) -> None:
    migration_tree.lock(root, "damon", 10, 5000)
    assert locked(tree.snapshot(root).values)["damon"] == Histogram(
        {64: 1, 256: 1, 1024: 1, 4096: 1, 16384: 2, 65536: 2}, 2, 5010)


def look(root: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Let `change` happen instead of the sleep, and one second pass."""
    clock = iter(range(100))
    monkeypatch.setattr(tree.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(top.time, "sleep", lambda seconds: change())


def test_one_look_is_printed(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def change() -> None:
        migration_tree.count(root, bytes=3_000_000, copy_ns=1_000_000, folios=40, fallbacks=2, skipped_small=5)
        migration_tree.lock(root, "demotion", 100_000)
        migration_tree.add(root, "migrc/quarantined_bytes", 12_000_000)
        migration_tree.add(root, "dcbm/counters/errors", 4)

    look(root, monkeypatch, change)
    assert cli.main(["top", "--root", str(root), "--once"]) == 0
    shown = capsys.readouterr().out
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.splitlines() if "demotion" in line]
    assert cells == [["mtcopy", "demotion", "3.00", "3", "40", "0", "2", "0", "5 small"],
                     ["demotion", "inherit", "0", "0", "> 65.536 ms", "> 65.536 ms", "-", "0.00"]]
    assert "migrc: 12.0 MB in quarantine" in shown and "4 failed descriptors/s" in shown


def test_ctrl_c_is_success_and_looks_follow_each_other(root: Path, monkeypatch: pytest.MonkeyPatch,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    looks = iter(range(3))

    def change() -> None:
        if next(looks) == 2:
            raise KeyboardInterrupt
        migration_tree.count(root, bytes=5_000_000)

    look(root, monkeypatch, change)
    assert cli.main(["top", "--root", str(root)]) == 0
    said = capsys.readouterr()
    assert said.out.count("copies, with off selected") == 2 and not said.err


def live(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], term: str) -> str:
    """What a terminal of 80 columns and 24 lines gets of one look, while all reasons are busy."""
    looks = iter(range(2))

    def change() -> None:
        if next(looks) == 1:
            raise KeyboardInterrupt
        migration_tree.add(root, "migrc/quarantined_bytes", 12_000_000)
        for reason in migration_tree.REASONS:
            migration_tree.add(root, f"stats/mtcopy/{reason}/folios", 1_234_567)
            migration_tree.add(root, f"stats/reasons/{reason}/moved_pages", 7_654_321)

    look(root, monkeypatch, change)
    for name, value in {"COLUMNS": "80", "LINES": "24", "TERM": term}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert cli.main(["top", "--root", str(root)]) == 0
    return re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)


def test_a_screen_has_the_parts_whole_figures_and_what_is_missing(root: Path, monkeypatch: pytest.MonkeyPatch,
                                                                  capsys: pytest.CaptureFixture[str]) -> None:
    screen = live(root, monkeypatch, capsys, "xterm").split("\x1b[H")[-1].partition("\x1b[?")[0]
    lines = [line.rstrip() for line in screen.splitlines()]
    assert len(lines) == 24 and max(map(len, lines)) <= 80
    assert lines[0].startswith("migrc: 12.0 MB in quarantine")
    assert len([line for line in lines if line.split()[2:5] == ["-", "0", "1,234,567"]]) == 10 and "…" not in screen
    more = re.fullmatch(r"(\d+) lines more: make the terminal larger, or see ferry top --once", lines[-1])
    assert more and int(more[1]) > 10


def test_a_dumb_terminal_gets_the_texts(root: Path, monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    said = live(root, monkeypatch, capsys, "dumb")
    assert said.count("7,654,321") == 10 and "\x1b" not in said and "lines more" not in said


@pytest.mark.parametrize("interval", ["0", "-1", "nan", "inf"])
def test_an_interval_is_a_time(root: Path, capsys: pytest.CaptureFixture[str], interval: str) -> None:
    assert cli.main(["top", "--root", str(root), f"--interval={interval}", "--once"]) == 2
    assert f"--interval {interval}" in capsys.readouterr().err
