# SPDX-License-Identifier: GPL-2.0
"""`ferry bench compaction` from options to rows, with made-up guests. None of these figures was ever measured."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, cast

import pytest
from matplotlib.figure import Figure

from ferry import boards
from ferry.bench import compactbench, compaction, compaction_plan, compaction_rows
from ferry.bench.compactbench import Outcome
from ferry.bench.compaction_plan import Group, Plan, Work
from ferry.boards import load
from ferry.errors import UsageError
from ferry.kernel.build import Kernel
from ferry.results import formats, plots, table
from ferry.results.compare import compare
from ferry.results.document import SCHEMA, CompactionRow, Document, column, label
from ferry.vm import guest_programs

TIMES = {"stock": 200.0, "off": 200.0, "mtcopy2": 100.0, "runs": 50.0}
WORDS = ("--quick", "--workload", "busy", "--migrator", "mtcopy")


def event(config: str, turn: int, wall_ms: float, workload: str = "busy", **more: Any) -> dict[str, Any]:
    """A sample as the guest prints it."""
    made = {"event": "sample", "config": config, "round": turn, "warmup": False, "workload": workload, "order": 9,
            "wall_ns": round(wall_ms * 1e6), "blocks_got": 32, "blocks_wanted": 32, "blocks_more": 8,
            "user_ms": 40, "system_ms": 50, "idle_ms": 10, "thread_ns": 60_000_000, "pgmigrate_success": 9000}
    if workload == "busy":
        made["hog_iterations"] = 1000 + turn
    if config != "stock":
        made |= {"moved_in_runs": 9000 * ("runs" in config), "copied_off_pages": 0, "copied_kernel_pages": 0,
                 "copied_mtcopy_pages": 8000 * ("mtcopy" in config)}
    return made | more


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    compaction.add_parser(parser.add_subparsers())
    return parser.parse_args(["compaction", *words])


def chosen(*words: str, board: str = "x86-numa") -> Plan:
    return compaction.plan_for(parsed(*words), load(board))


def left(share: Path, group: Group, plan: Plan, times: dict[str, float], status: int = 0,
         **spoil: Any) -> dict[tuple[Group, Work], Outcome]:
    """What compactbench leaves of a boot: wall times by configuration; `spoil` overrides keys of each sample."""
    share.mkdir(parents=True)
    for work in group.works:
        events = [event(config.label, turn, times[config.label] * (1 + turn / 100), work.workload, **spoil)
                  for turn in range(plan.samples_per_boot) for config in group.configs if config.label in times]
        events.insert(0, event(group.configs[0].label, 0, 1.0) | {"warmup": True})
        (share / f"{work.key}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events))
        (share / f"{work.key}.stderr").write_text("compactbench: made up\n" if status else "")
        (share / f"{work.key}.status").write_text(f"{status}\n")
    return {(group, work): compactbench.outcome(share, work) for work in group.works}


def filled(tmp_path: Path, plan: Plan, times: dict[str, float], kind: str = "emulated",
           of_ours: dict[str, Any] | None = None, **spoil: Any) -> Document:
    """The document of a whole run; `of_ours` spoils the samples of our kernel only."""
    outcomes: dict[tuple[Group, Work], Outcome] = {}
    for group in plan.groups():
        more = spoil | ((of_ours or {}) if group.kernel == "ferry" else {})
        outcomes |= left(tmp_path / group.name, group, plan, times, **more)
    document = Document(schema=SCHEMA, bench="compaction", board="x86-numa", kind=kind,
                        baseline="stock" if plan.vs_stock else "off", rows=[],
                        meta={"config": {"shared": plan.shared}, "base": "made up"})
    compaction_rows.fill(document, plan, outcomes)
    return document


def by_label(document: Document) -> dict[str, CompactionRow]:
    return {label(row): cast(CompactionRow, row) for row in document["rows"]}


def ratios_of(row: CompactionRow) -> dict[str, float]:
    return {key: round(ratio["median"], 2) for key, ratio in row["ratios"].items() if ratio}


def test_rows_have_figures_and_ratios_that_are_above_1_when_better(tmp_path: Path) -> None:
    rows = by_label(filled(tmp_path, chosen(*WORDS), TIMES))
    assert list(rows) == ["stock", "off", "mtcopy 2", "runs"]
    stock, mtcopy, runs = rows["stock"], rows["mtcopy 2"], rows["runs"]
    assert mtcopy["wall_ms"] == pytest.approx(102) and stock["wall_ms"] == pytest.approx(204)
    assert mtcopy["workload"] == "busy" and mtcopy["order"] == 9 and mtcopy["migrated"] == 9000
    assert mtcopy["copied_by_migrator"] == 8000 and stock["copied_by_migrator"] == runs["copied_by_migrator"] == 0
    assert runs["moved_in_runs"] == 9000 and stock["moved_in_runs"] == mtcopy["moved_in_runs"] == 0
    assert (mtcopy["user_percent"], mtcopy["sys_percent"], mtcopy["idle_percent"]) == (40, 50, 10)
    assert mtcopy["thread_ms"] == 60 and mtcopy["hog_iterations"] == 1002 and mtcopy["allocated"] == 40
    assert mtcopy["unit"] == "ns_per_block" and mtcopy["median"] == pytest.approx(102e6 / 32)
    assert mtcopy["hog_iterations_per_second"] == pytest.approx(9824, abs=1) and mtcopy["success_percent"] == 100
    assert ratios_of(mtcopy) == {"wall_ms": 2.0, "sys_ms": 1.0, "thread_ms": 1.0, "hog_iterations": 1.0,
                                 "hog_iterations_per_second": 2.0, "success_percent": 1.0, "allocated": 1.0}
    assert mtcopy["figures"]["hog_iterations"] == [1000 + number for number in range(5)] * 2
    assert mtcopy["ratio_to_baseline"] == mtcopy["ratios"]["wall_ms"] and stock["ratio_to_baseline"] is None
    assert "ratios" not in stock and len(mtcopy["events"]) == len(mtcopy["samples"]) == 10


def test_more_hog_iterations_and_blocks_and_less_time_of_the_system_are_better(tmp_path: Path) -> None:
    better = {"hog_iterations": 2004, "system_ms": 25, "thread_ns": 30_000_000, "blocks_more": 48}
    row = by_label(filled(tmp_path, chosen(*WORDS), TIMES, of_ours=better))["off"]
    assert ratios_of(row) == {"wall_ms": 1.0, "sys_ms": 2.0, "thread_ms": 2.0, "hog_iterations": 2.0,
                              "hog_iterations_per_second": 2.0, "success_percent": 1.0, "allocated": 2.0}


def test_the_figure_of_a_clock_that_counts_is_instructions_for_each_page(tmp_path: Path) -> None:
    plan = chosen("--quick", "--migrator", "off", board="x86-icount")
    document = filled(tmp_path, plan, TIMES, kind="instructions")
    stock, _, runs = document["rows"]
    assert stock["unit"] == "instructions_per_page" and stock["median"] == pytest.approx(204e6 / 9000)
    assert runs["ratio_to_baseline"] is not None and runs["ratio_to_baseline"]["median"] == pytest.approx(4)
    assert [plot.caption.partition(":")[0] for plot in plots.all_of(document)] == [
        "Ratio to stock", "idle, order 9, 128 MiB at a time", "idle, order 9, 128 MiB at a time",
        "instructions a page of each sample (dots) and their median (bar). Lower is better.",
        "Every sample over the rounds, relative to its row's median"]


def test_a_kernel_that_makes_fewer_blocks_is_not_faster(tmp_path: Path) -> None:
    document = filled(tmp_path, chosen(*WORDS), TIMES, of_ours={"blocks_got": 16})
    off = by_label(document)["off"]
    assert off["median"] == pytest.approx(204e6 / 16)
    assert off["success_percent"] == 50 and ratios_of(off)["success_percent"] == 0.5
    assert "busy, order 9, off: in 10 samples some allocations failed" in document["warnings"]


def test_kcompactd_is_asked_for_no_number_of_blocks(tmp_path: Path) -> None:
    plan = chosen("--quick", "--workload", "proactive", "--migrator", "off")
    row = by_label(filled(tmp_path, plan, TIMES, blocks_wanted=0))["off"]
    assert row["success_percent"] is None and row["ratios"]["success_percent"] is None


@pytest.mark.parametrize(("spoil", "said"), [
    ({"pgmigrate_success": 0}, "no page moved"), ({"blocks_got": 0}, "no block was made"),
    ({"wall_ns": 0}, "no block was made"), ({"hog_iterations": 0}, "the hog did not run"),
    ({"status": 1}, "compactbench exited with 1: compactbench: made up"),
])
def test_a_sample_that_shows_nothing_is_a_failure(tmp_path: Path, spoil: dict[str, Any], said: str) -> None:
    rows = filled(tmp_path, chosen(*WORDS), TIMES, **spoil)["rows"]
    assert [len(row["failures"]) for row in rows] == [10] * 4 and rows[0]["median"] is None
    assert {failure["reason"] for row in rows for failure in row["failures"]} == {said}


def test_a_sample_that_did_not_come_is_a_failure(tmp_path: Path) -> None:
    rows = by_label(filled(tmp_path, chosen(*WORDS), {key: TIMES[key] for key in ("stock", "off", "runs")}))
    assert len(rows["mtcopy 2"]["failures"]) == 10 and not rows["off"]["failures"]
    assert rows["mtcopy 2"]["failures"][0]["reason"] == "compactbench printed no such sample"
    assert rows["mtcopy 2"]["wall_ms"] is None and rows["mtcopy 2"]["ratios"]["wall_ms"] is None


def test_rows_that_show_the_fallback_are_pointed_out(tmp_path: Path) -> None:
    document = filled(tmp_path, chosen(*WORDS), TIMES, of_ours={"copied_mtcopy_pages": 0, "moved_in_runs": 0})
    assert document["warnings"] == [
        "busy, order 9, mtcopy 2: the migrator copied no page, so this row shows the fallback",
        "busy, order 9, runs: no page was moved in a run"]


def test_a_guest_that_lacks_something_is_a_skip(tmp_path: Path) -> None:
    document = filled(tmp_path, chosen(*WORDS), TIMES, status=4)
    assert document["rows"] == [] and document["skipped"][0]["workload"] == "busy, order 9"


def test_percentages_of_no_time_are_none(tmp_path: Path) -> None:
    row = by_label(filled(tmp_path, chosen(*WORDS), TIMES, user_ms=0, system_ms=0, idle_ms=0))["off"]
    assert row["sys_percent"] is None and row["ratios"]["sys_ms"] is None and row["wall_ms"] is not None


def test_the_first_table_is_that_of_the_mailing_list_and_the_second_is_ours(tmp_path: Path) -> None:
    document = filled(tmp_path, chosen("--quick", "--migrator", "mtcopy", "--order", "3,9"), TIMES)
    text = formats.render(table.output([document]), "markdown")
    listed, ours = (next(line for line in part.splitlines() if line.startswith("|  |"))
                    for part in text.split("\n\n**"))
    assert listed == ("|  | wall time, ms | migrated, pages | copied by, a migrator | hog, iterations | user % | sys % "
                      "| idle % | ns a block |")
    assert "sys time, ms" in ours and "hog, iterations/s" in ours and "succeeded, % of allocations" in ours
    busy = [line for line in text.splitlines() if line.startswith("| busy, order 9 · mtcopy 2 |")]
    assert [line.count("[") for line in busy] == [3, 5] and "8,000" in busy[0]
    idle = [line for line in text.splitlines() if line.startswith("| idle, order 9 · mtcopy 2 |")]
    assert all("| - |" in line for line in idle) and "samples share boots" in text
    assert text.count("| busy, order 3 · stock (baseline) |") == 2


def test_csv_and_plots_have_each_figure(tmp_path: Path) -> None:
    document = filled(tmp_path, chosen("--quick", "--migrator", "mtcopy", "--order", "3,9"), TIMES)
    head, *records = formats.render(table.output([document]), "csv").splitlines()
    assert {"hog_iterations", "sys_ms", "sys_ms_ratio_ci95_low"} <= set(head.split(",")) and len(records) == 16
    assert formats.column_name(("idle, order 9", "", 4096, 1 << 26, 0, "9", 0.0)) == "idle, order 9\n64 MiB at a time"
    drawn = plots.all_of(document)
    assert sum("CPU that allocates" in plot.caption for plot in drawn) == 4 and len(drawn) == 10
    (busy,) = [plot for plot in drawn if plot.caption.startswith("busy, order 9, 128 MiB at a time: ratio of each")]
    assert ">iterations/s<" in busy.svg and ">allocations<" in busy.svg and ">worse than stock<" in busy.svg
    (idle,) = [plot for plot in drawn if plot.caption.startswith("idle, order 9, 128 MiB at a time: ratio of each")]
    assert "hog" not in idle.svg and ">iterations<" not in busy.svg


def test_a_bar_has_the_parts_of_the_cpus_time(tmp_path: Path) -> None:
    document = filled(tmp_path, chosen(*WORDS), TIMES, of_ours={"system_ms": 10, "idle_ms": 50})
    axes = Figure().add_subplot()
    plots.cpu_time(axes, document, column(document["rows"][0]))
    assert [text.get_text() for text in axes.get_xticklabels()] == ["stock", "off", "mtcopy 2", "runs"]
    heights = {bars.get_label(): [bar.get_height() for bar in bars] for bars in axes.containers}
    assert heights == {"user %": [40] * 4, "sys %": [50, 10, 10, 10], "idle %": [10, 50, 50, 50]}


def test_a_run_that_leaves_less_to_others_is_a_regression(tmp_path: Path) -> None:
    before = filled(tmp_path / "a", chosen(*WORDS), TIMES)
    after = filled(tmp_path / "b", chosen(*WORDS), TIMES, of_ours={"hog_iterations": 700})
    found = {entry["config"]: entry["verdict"] for entry in compare(before, after, 0.03)["rows"]}
    assert found["runs"] == found["runs: wall time ms"] == found["runs: sys time ms"] == "same"
    # The hog of a faster run has less time for its iterations, so these are not judged.
    assert found["runs: hog iterations/s"] == "regression" and "runs: hog iterations" not in found
    assert {entry["verdict"] for entry in compare(before, before, 0.03)["rows"]} == {"same"}
    # A run of an older ferry has no such figures.
    for row in before["rows"]:
        del cast(dict[str, Any], row)["figures"]
    assert [entry["config"] for entry in compare(before, after, 0.03)["rows"]] == ["off", "mtcopy 2", "runs"]


def test_each_sample_is_from_a_boot_of_its_own_unless_quick(tmp_path: Path) -> None:
    plan = chosen("--migrator", "off", "--runs", "off")
    groups = list(plan.groups())
    assert len(groups) == 10 * 2 * 2 and plan.samples_per_boot == 1
    assert [group.name for group in groups[:4]] == ["0-idle-9-stock", "0-idle-9-off", "0-busy-9-stock", "0-busy-9-off"]
    assert [group.name for group in groups[4:6]] == ["1-idle-9-off", "1-idle-9-stock"]
    assert len({group.name for group in groups}) == len(groups)
    document = filled(tmp_path, plan, TIMES)
    assert [row["sample_ids"] for row in document["rows"]] == [[[number, 0] for number in range(10)]] * 4
    assert "boot of its own" in formats.render(table.output([document]), "table")


def test_quick_boots_are_shared() -> None:
    plan = chosen("--quick")
    assert [group.name for group in plan.groups()] == ["0-stock", "0-ferry", "1-ferry", "1-stock"]
    assert plan.samples_per_boot == 5 and [work.key for work in plan.works] == ["idle-9", "busy-9"]
    assert [config.label for config in plan.configs] == ["off", "kernel", "mtcopy2", "runs"]
    only = list(chosen("--quick", "--baseline", "off").groups())
    assert [group.name for group in only] == ["0-ferry"] and only[0].configs == plan.configs


def test_blocks_are_a_share_of_the_node() -> None:
    board = load("x86-numa")
    assert [work.blocks for work in compaction_plan.works(["idle"], [9, 5, 3], board)] == [64, 1024, 4096]
    small = compaction_plan.machine(board, quick=True)
    assert compaction_plan.machine(board, quick=False) == board
    assert small.nodes[0] == board.nodes[0] and small.nodes[1].cpus == "2-3"
    assert {work.total_bytes for work in compaction_plan.works(["idle"], [9, 3], small)} == {64 << 20}
    for quick in (False, True):
        assert compaction_plan.machine(load("uml"), quick).memory_mib == 512


def test_the_script_loads_the_modules_and_measures_in_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(guest_programs, "programs", lambda arch: {"compactbench": Path("/made up/compactbench")})
    modules = {name: Path(f"/m/{name}.ko") for name in ("ferry_mtcopy", "alloc_blocks")}
    kernel = Kernel(tmp_path, modules, tmp_path, "key", tmp_path, "7.3.4", tmp_path)
    plan = chosen(*WORDS, "--order", "9,3")
    group = list(plan.groups())[1]
    boot = compaction.one_boot(plan, load("x86-numa"), kernel, group)
    assert boot.script.startswith("set -u\ninsmod /m/ferry_mtcopy.ko || exit 3\ninsmod /m/alloc_blocks.ko || exit 3\n")
    assert "'/made up/compactbench' --workload busy --order 9 --blocks 64 --samples 5 --warmup 1 " in boot.script
    assert "--order 3 --blocks 4096" in boot.script and "--config runs:runs=1,migrator=off" in boot.script
    assert compaction.samples(plan, group) == 6 * 2 * 3
    del modules["ferry_mtcopy"]
    assert compaction.modules_of(load("x86-numa"), kernel, group) == ["alloc_blocks"]


def test_every_board_of_the_bench_has_the_module() -> None:
    for name in compaction_plan.BOARDS:
        assert f"guest/kmod/{compaction_plan.MODULE}" in boards.load(name).external


def test_options_that_support_no_comparison() -> None:
    with pytest.raises(UsageError, match="9 samples are too few"):
        chosen("--samples", "9")
    with pytest.raises(UsageError, match="no DMA engine"):
        chosen("--migrator", "dcbm")
    with pytest.raises(UsageError, match="so busy has no figure"):
        chosen("--workload", "idle,busy", board="x86-icount")
    for words in (("--order", "10"), ("--workload", "asleep"), ("--board", "arm64-mte"), ("--runs", "maybe")):
        with pytest.raises(SystemExit):
            parsed(*words)
