# SPDX-License-Identifier: GPL-2.0
"""`ferry bench tlb` from options to rows, with guests that are made up. None of these figures was ever measured."""

from __future__ import annotations

import argparse
import copy
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import golden
from ferry import boards
from ferry.bench import environment, experiment, tlb, tlb_plan, tlb_rows, tlbbench
from ferry.boards import Board
from ferry.commands import bench as bench_verb
from ferry.commands import compare as compare_verb
from ferry.errors import AllSkipped, UsageError
from ferry.kernel import build
from ferry.results import compare, formats, report, runs, table, tlb_events
from ferry.results.document import TlbRow, rows_of
from ferry.vm import boot, guest_programs, kvm, qemu

WOBBLE = (1.00, 1.01, 0.99, 1.02, 0.98)


def event(words: list[str], kernel: str, turn: int) -> dict[str, Any]:
    """A sample as the guest prints it; with migrc on there are a tenth of the interrupts."""
    on = "--defer-flush 1" in shlex.join(words)
    pages, share = 1000, 0.1 if on else 1.0
    made: dict[str, Any] = {
        "event": "sample", "round": turn, "elapsed_ns": round(1e8 * WOBBLE[turn % 5] * (0.8 if on else 1.0)),
        "pgmigrate_success": pages, "ipis": 3000 * share * 0.5, "nr_tlb_remote_flush": 1000 * share * 0.5,
    }
    if "xslookup" in words:
        made |= {"workload": "xslookup", "lookups": 500, "hash": f"{turn:016x}"}
    else:
        if "--processes" in words:
            made |= {"calls": 10 * int(words[words.index("--processes") + 1]), "calls_per_second": 900}
        made |= {"workload": words[2], "asked_pages": pages, "moved_pages": pages, "failed_pages": 0,
                 "settled_pgmigrate_success": pages, "settled_ipis": 3000 * share,
                 "settled_nr_tlb_remote_flush": 1000 * share, "before_free_kb": 5, "settled_free_kb": 4}
    if kernel == "ferry":
        made |= {"migrc_enabled": int(on), "migrc_max_bytes": 8 << 20, "migrc_peak_bytes": 4096 * on,
                 "migrc_folios": 900 * on, "settled_migrc_folios": 950 * on}
    return made


class Guest:
    """Stands in for the boots: runs the script's commands by making up what they print."""

    def __init__(self) -> None:
        self.booted: list[tuple[str, Board, str]] = []
        self.missing: dict[str, str] = {}
        self.dies: set[str] = set()
        self.spoil: dict[str, dict[str, Any]] = {}

    def boot(self, board: Board, kernel: build.Kernel, command: str, *, share: Path,
             on_line: Callable[[str], object] | None = None, **_: Any) -> boot.BootResult:
        script = (share / experiment.SCRIPT).read_text()
        self.booted.append((kernel.key, board, script))
        console = share / "made-up-console"
        console.write_text("made-up console\n")
        for line in script.splitlines():
            if line.startswith("{ "):
                self.run(shlex.split(line.removeprefix("{ ").partition(" 2>")[0]), kernel.key, share,
                         line.rpartition("/")[2].removesuffix(".jsonl"))
        return boot.BootResult(status=0, console=console, share=share)

    def run(self, words: list[str], kernel: str, share: Path, name: str) -> None:
        key = name.partition(".")[0]
        if key in self.dies:
            return
        missing = key in self.missing
        (share / f"{name}.stderr").write_text(self.missing.get(key, ""))
        (share / f"{name}.status").write_text("4\n" if missing else "0\n")
        turn = int(words[words.index("--round") + 1])
        events = [] if missing else [event(words, kernel, turn) | self.spoil.get(name, {})]
        (share / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [{"event": "start"}, *events]))


@pytest.fixture
def made_up_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guest:
    stand_in = Guest()

    def built(board: Board, name: str) -> build.Kernel:
        return build.Kernel(image=tmp_path, modules={}, config=tmp_path, key=name, log=tmp_path, version="made up",
                            tree=tmp_path)

    monkeypatch.setattr(boot, "boot", stand_in.boot)
    monkeypatch.setattr(kvm, "works", lambda image: False)
    monkeypatch.setattr(build, "build", built)
    monkeypatch.setattr(guest_programs, "programs", lambda arch: {name: Path("/made-up") / name
                                                         for name in ("tlbbench",)})
    monkeypatch.setattr(runs, "runs_dir", lambda: tmp_path / "runs")
    monkeypatch.setattr(environment, "capture", lambda **more: {"host": {"cpu": "made up", "busy_before": 0.0}, **more})
    return stand_in


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bench_verb.add_parser(parser.add_subparsers())
    return parser.parse_args(["bench", "tlb", *words])


def bench(*words: str) -> int:
    return bench_verb.run(parsed(*words))


def rows_of_work(workload: str) -> list[TlbRow]:
    """The baseline's row and those of the others."""
    return [row for row in rows_of(runs.load("latest")[0]) if row["device"] == workload]


def test_rows_beside_stock(made_up_guest: Guest, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--quick", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["baseline"] == "stock" and document["board"] == "x86-numa" and document["kind"] == "emulated"
    assert document["schema"] == 2
    works = ("hinting", "compaction", "kcompactd order 3", "kcompactd order 9", "move_pages", "active 1 process",
             "active 4 processes", "active 16 processes")
    assert [row["device"] for row in document["rows"][::3]] == list(works)
    for name in works:
        base, off, row = (one for one in document["rows"] if one["device"] == name)
        assert [one["kernel"] for one in (base, off, row)] == ["stock", "ferry", "ferry"]
        assert off["path"] == "off" and row["path"] == "migrc"
        assert row["ipis"] == pytest.approx(300) and base["ipis"] == 3000
        assert row["flushes"] == pytest.approx(100) and base["flushes"] == 1000
        assert row["ipi_reduction"] == pytest.approx(0.9) and row["flush_reduction"] == pytest.approx(0.9)
        assert row["moved_pages"] == base["moved_pages"] == 1000
        assert row["unit"] == "ipis_per_1000_pages" and row["median"] == pytest.approx(300) and base["median"] == 3000
        assert row["ratio_to_baseline"] == row["ratios"]["ipis"] and base["ratio_to_baseline"] is None
        assert row["ratios"]["flushes"]["median"] == pytest.approx(10) and off["ratios"]["ipis"]["median"] == 1
        assert row["ratios"]["flushes"]["ci95"] == pytest.approx([10, 10])
        assert row["migrc"] == {"folios": 9500} and row["max_bytes"] == 8 << 20 and row["peak_bytes"] == 4096
        assert "migrc" not in base and "migrc" not in off and "ipi_reduction" not in base
        assert all(len(one["samples"]) == len(one["events"]) == 10 and not one["failures"] for one in (base, off, row))
    assert document["warnings"] == [] and document["skipped"] == []


def test_active_readers_are_a_row_for_each_number_of_processes(made_up_guest: Guest) -> None:
    assert bench("--quick", "--workload", "active") == 0
    rows = rows_of(runs.load("latest")[0])
    assert [row["processes"] for row in rows] == [1, 1, 1, 4, 4, 4, 16, 16, 16]
    assert [row["calls"] for row in rows[::3]] == [10, 40, 160] and rows[0]["calls_per_second"] == 900
    script = made_up_guest.booted[1][2]
    assert "--moves 512 --processes 1 " in script
    assert "--workload active --moves 128 --processes 16 --calls-per-second 40 --limit-s 180 --round 0 " in script


def test_kcompactd_is_a_row_for_each_order(made_up_guest: Guest) -> None:
    assert bench("--quick", "--workload", "kcompactd") == 0
    assert [row["compaction_order"] for row in rows_of(runs.load("latest")[0])[::3]] == [3, 9]
    _, machine, script = made_up_guest.booted[0]
    assert "--workload kcompactd --moves 2048 --from 1 --to 0 --order 9" in script and not machine.nodes[1].cpus


def test_only_kvm_gives_a_speed(made_up_guest: Guest, capsys: pytest.CaptureFixture[str],
                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "accelerator", lambda board, image: "KVM")
    assert bench("--quick", "--workload", "move_pages,active,xslookup", "--ratio", "1:4", "--format", "json") == 0
    base, _, row = (one for one in json.loads(capsys.readouterr().out)["rows"] if one["workload"] == "move_pages")
    assert row["unit"] == "moves_per_second" and row["median"] == pytest.approx(12500) and base["median"] == 10000
    assert row["ratio_to_baseline"]["median"] == pytest.approx(1.25)
    assert row["ratios"]["ipis"]["median"] == pytest.approx(10)
    assert rows_of_work("active 4 processes")[2]["unit"] == "ipis_per_1000_pages"
    lookups = rows_of_work("xslookup 1:4")[2]
    assert lookups["unit"] == "lookups_per_second" and lookups["median"] == pytest.approx(6250)
    table_text = formats.render(table.output(runs.load("latest")), "table")
    assert "12,500 page moves/s · 1.250 [1.250, 1.250]" in table_text


def test_events_that_are_all_gone_have_a_share_and_no_ratio(made_up_guest: Guest) -> None:
    made_up_guest.spoil = {f"move_pages.migrc.{turn}": {"settled_ipis": 0} for turn in range(5)}
    assert bench("--quick", "--workload", "move_pages") == 0
    _, off, row = rows_of_work("move_pages")
    assert row["ratios"]["ipis"] is None and row["ratio_to_baseline"] is None and row["ipi_reduction"] == 1
    assert row["ratios"]["flushes"] is not None and off["ratios"]["ipis"] is not None
    (document,) = runs.load("latest")
    assert {entry["verdict"] for entry in compare.compare(document, document, 0.03)["rows"]} == {"same"}


def test_boots_of_both_kernels_alternate_on_the_machine_that_a_workload_needs(made_up_guest: Guest) -> None:
    assert bench("--quick") == 0
    assert [kernel for kernel, _, _ in made_up_guest.booted] == ["stock", "ferry"] * 8
    (_, tiered, hinting), (_, lone, compaction), (_, small, kcompactd), (_, flat, others) = made_up_guest.booted[:7:2]
    assert "--workload hinting" in hinting and not tiered.nodes[1].cpus and tiered.nodes[1].latency_ns
    assert "--workload compaction" in compaction and not lone.nodes[1].cpus
    assert "--workload kcompactd" in kcompactd and small.nodes[1].memory_mib < lone.nodes[1].memory_mib
    assert "--workload active" in others and flat.nodes[1].cpus == "2-3"
    assert "--defer-flush" not in hinting
    assert "--defer-flush 0" in made_up_guest.booted[1][2] and "--defer-flush 1" in made_up_guest.booted[1][2]


def test_readers_are_told_and_make_a_row_of_their_own(made_up_guest: Guest,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--quick", "--workload", "move_pages", "--readers", "2", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["workload"] == "move_pages, 2 readers"
    assert all("--readers 2" in line for line in made_up_guest.booted[0][2].splitlines() if "--workload" in line)
    for other in ("xslookup", "active"):
        with pytest.raises(UsageError, match=f"{other}, which has readers of its own"):
            tlb.plan_for(parsed("--workload", other, "--readers", "2"))


def test_lookups_by_ratio(made_up_guest: Guest, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--workload", "xslookup", "--ratio", "1:4,1:8,1:99", "--quick", "--format", "json")
    assert bench(*words) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["ratio"] for row in document["rows"]] == ["1:4"] * 3 + ["1:8"] * 3 + ["1:99"] * 3
    assert {row["unit"] for row in document["rows"]} == {"ipis_per_1000_pages"}
    for row in document["rows"]:
        fast, slow = (node["memory_mib"] for node in row["nodes"])
        assert f"1:{slow // fast}" == row["ratio"] and fast % 128 == 0


def test_lookups_that_find_something_else_are_failed_samples(made_up_guest: Guest) -> None:
    made_up_guest.spoil = {"xslookup-1-4.migrc.3": {"hash": "bad"}}
    assert bench("--workload", "xslookup", "--ratio", "1:4", "--quick") == 1
    base, _, row = rows_of_work("xslookup 1:4")
    assert len(row["samples"]) == 8 and len(base["samples"]) == 10 and not base["failures"]
    assert [(failure["boot"], failure["round"]) for failure in row["failures"]] == [(0, 3), (1, 3)]
    assert all("gave bad" in failure["reason"] for failure in row["failures"])


def test_what_a_guest_cannot_do_is_skipped_with_its_reason(made_up_guest: Guest,
                                                           capsys: pytest.CaptureFixture[str]) -> None:
    made_up_guest.missing = {"hinting": "tlbbench: node 1 is in no lower tier\n"}
    assert bench("--quick", "--workload", "hinting,move_pages") == 0
    assert "hinting skipped: stock: tlbbench exited with 4: tlbbench: node 1 is in no lower" in capsys.readouterr().out
    with pytest.raises(AllSkipped, match="no lower tier"):
        bench("--quick", "--workload", "hinting")


def test_a_run_that_died_is_a_failed_sample(made_up_guest: Guest) -> None:
    made_up_guest.dies = {"move_pages"}
    assert bench("--quick", "--workload", "move_pages") == 1
    base, _, row = rows_of_work("move_pages")
    assert len(base["failures"]) == len(row["failures"]) == 10 and row["ipis"] is None and row["ipi_reduction"] is None


def test_a_migrc_that_does_nothing_is_pointed_out(made_up_guest: Guest) -> None:
    quiet = {"migrc_folios": 0, "settled_migrc_folios": 0, "moved_pages": 999}
    made_up_guest.spoil = {f"move_pages.migrc.{turn}": quiet for turn in range(5)}
    assert bench("--quick", "--workload", "move_pages") == 0
    assert [text.partition(": ")[2] for text in runs.load("latest")[0]["warnings"]] == [
        "nothing was deferred, so this row shows the baseline once more",
        "10 samples moved fewer pages than they were to"]


@pytest.mark.parametrize("form", ["table", "csv"])
def test_golden(made_up_guest: Guest, form: str) -> None:
    made_up_guest.missing = {"compaction": "tlbbench: no compact (CONFIG_COMPACTION)\n"}
    assert bench("--quick", "--workload", "move_pages,compaction,active,xslookup", "--ratio", "1:4") == 0
    golden.check(f"tlb.{form}", formats.render(table.output(runs.load("latest")), form))


def test_the_report_holds_both_sides(made_up_guest: Guest, tmp_path: Path) -> None:
    assert bench("--quick", "--workload", "move_pages", "--report") == 0
    page = (tmp_path / "runs/latest/report.html").read_text()
    assert "stock (baseline)" in page and "<svg" in page and "move_pages" in page
    assert [name for name, _ in report.section(runs.load("latest")[0])["rows"]] == ["stock (baseline)", "off", "migrc"]


def test_two_runs_compare_by_their_ratios(made_up_guest: Guest) -> None:
    assert bench("--quick", "--workload", "move_pages") == 0
    (before,) = runs.load("latest")
    entries = compare.compare(before, before, 0.03)["rows"]
    assert [entry["config"] for entry in entries] == ["off: IPIs", "off: flushes", "migrc: IPIs", "migrc: flushes"]
    assert {entry["verdict"] for entry in entries} == {"same"} and entries[2]["ratio"]["median"] == 1


def verdict_of_ipis(guest: Guest, *counts: list[float]) -> dict[str, Any]:
    """The entry of migrc's IPIs of two runs with these counts in the five rounds of each boot; stock has 3,000."""
    for one in counts:
        guest.spoil = {f"move_pages.migrc.{turn}": {"settled_ipis": count} for turn, count in enumerate(one)}
        assert bench("--quick", "--workload", "move_pages") == 0
    before, after = (runs.load(name)[0] for name in runs.names())
    return next(entry for entry in compare.compare(before, after, 0.03)["rows"] if entry["config"] == "migrc: IPIs")


def test_four_times_as_many_events_are_a_regression_though_most_are_gone(made_up_guest: Guest) -> None:
    """From 99 % to 96.2 % gone."""
    found = verdict_of_ipis(made_up_guest, [30, 31, 29, 30, 30], [114, 115, 112, 114, 116])
    assert found["verdict"] == "regression" and found["ratio"]["median"] == pytest.approx(30 / 114)


def test_events_that_vary_as_much_as_they_differ_are_the_same(made_up_guest: Guest) -> None:
    """The median is four points of stock's worse."""
    found = verdict_of_ipis(made_up_guest, [1300, 1500, 1700, 1400, 1600], [1300, 1620, 1700, 1400, 1630])
    assert found["verdict"] == "same"


@pytest.mark.parametrize(("after", "verdict"), [([0, 2, 1, 0, 2], "same"), ([90, 91, 90, 93, 90], "regression"),
                                                ([0, 0, 0, 0, 0], "same")])
def test_where_a_sample_has_no_event_the_part_that_is_left_is_compared(made_up_guest: Guest, after: list[float],
                                                                       verdict: str) -> None:
    found = verdict_of_ipis(made_up_guest, [0, 1, 1, 0, 2], after)
    assert (found["verdict"], found["ratio"]) == (verdict, None)
    assert found["share_a"] == pytest.approx(1 - 1 / 3000)


def test_events_that_are_back_are_a_regression_however_fast(made_up_guest: Guest,
                                                            capsys: pytest.CaptureFixture[str]) -> None:
    assert verdict_of_ipis(made_up_guest, [0] * 5, [3000] * 5)["verdict"] == "regression"
    before, after = runs.names()
    capsys.readouterr()
    assert compare_verb.run(argparse.Namespace(before=before, after=after, threshold=0.03, format="table")) == 1
    printed = capsys.readouterr().out
    assert "migrc: IPIs" in printed and "100.00% gone, then 0.00%" in printed and "regression" in printed


def test_a_baseline_that_failed_is_not_left_out(made_up_guest: Guest) -> None:
    assert bench("--quick", "--workload", "move_pages") == 0
    (before,) = runs.load("latest")
    after = copy.deepcopy(before)
    for row in after["rows"]:
        row.update(ipi_reduction=None, flush_reduction=None)  # type: ignore[call-arg]
    assert {entry["verdict"] for entry in compare.compare(before, after, 0.03)["rows"]} == {"failed"}


def test_figures_under_kvm_and_without_are_told_apart(made_up_guest: Guest) -> None:
    assert bench("--quick", "--workload", "move_pages") == 0
    (before,) = runs.load("latest")
    assert before["meta"]["accelerator"] == "TCG"
    after = copy.deepcopy(before)
    after["meta"]["accelerator"] = "KVM"
    assert compare.compare(before, after, 0.03)["warnings"] == ["not measured in the same way: TCG; KVM"]
    assert compare.compare(before, before, 0.03)["warnings"] == []


def test_a_cut_line_is_no_sample() -> None:
    whole = '{"event": "start"}\n[1]\n{"event": "sample", "round": 1}\n'
    assert tlbbench.sample(whole) == {"event": "sample", "round": 1}
    assert tlbbench.sample('{"event": "start"}\n{"event": "sam') is None


def test_counts_reach_to_the_end_of_the_wait() -> None:
    assert tlb_events.counted("ipis")({"ipis": 1, "settled_ipis": 3}) == 3
    assert tlb_events.counted("ipis")({"ipis": 1}) == 1 and tlb_events.counted("ipis")({}) is None
    assert tlb_events.per_1000("ipis")({"ipis": 6, "pgmigrate_success": 0}) is None
    assert tlb_rows.reduction(1.0, 0.0) is None


@pytest.mark.parametrize(("ratio", "sizes"), [("1:4", (256, 1024)), ("1:8", (256, 2048)), ("1:99", (256, 25344)),
                                              ("1:1", (256, 256)), ("2:3", (256, 384)), ("3:4", (256, 384))])
def test_sizes_of_tiers(ratio: str, sizes: tuple[int, int]) -> None:
    assert tlb_plan.sizes(ratio) == sizes


@pytest.mark.parametrize("words", [("--ratio", "1:4"), ("--samples", "9")])
def test_options_that_do_not_go_together(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        tlb.plan_for(parsed(*words))


@pytest.mark.parametrize("words", [("--ratio", "4"), ("--ratio", "8:1"), ("--readers", "0"), ("--max-bytes", "0"),
                                   ("--max-bytes", "5q"), ("--workload", "nothing"), ("--board", "zcu102"),
                                   ("--baseline", "on")])
def test_nonsense_is_a_usage_error(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed(*words)
    assert caught.value.code == 2


def test_the_bar_is_as_long_as_the_sweep() -> None:
    assert tlb.samples(tlb.plan_for(parsed("--quick"))) == 2 * 5 * 8 * 3


def test_tiers_are_what_the_firmware_says(tmp_path: Path) -> None:
    kernel = build.Kernel(tmp_path, {}, tmp_path, "key", tmp_path, "7.3.4", tmp_path)
    words = shlex.join(map(str, qemu.command_line(boards.load("x86-tier"), kernel, tmp_path, [], "script")))
    assert "--numa 1024M,cpus=0-3 --numa 1024M,initiator=0 " in words and "hmat=on" in words
    assert "hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=300" in words
    flat = shlex.join(map(str, qemu.command_line(boards.load("x86-numa"), kernel, tmp_path, [], "script")))
    assert "hmat" not in flat and "initiator" not in flat
