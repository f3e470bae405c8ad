# SPDX-License-Identifier: GPL-2.0
"""What `ferry bench breakdown` makes of records and samples. None of these figures was ever measured."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from ferry import boards
from ferry.bench.plan import Case, Choice, Plan, configs
from ferry.errors import InfraError, UsageError
from ferry.profile import breakdown, breakdown_events, breakdown_plugin, breakdown_rows, phases
from ferry.profile.breakdown_method import Sample
from ferry.results import formats, plots, table
from ferry.results.compare import compare
from ferry.results.document import SCHEMA, TOTAL, BreakdownRow, Document, label
from ferry.results.report import html

PAGE = 4096
PAGES = 256
CASE = Case(PAGE, PAGES * PAGE)
SWEEP = Plan(configs(Choice(["mtcopy"], [1])), (CASE,), samples=10, warmup=1, boots=1)
#: Of each page: instructions of migrate_pages() itself, and of the copy.
COSTS = {"off": (60, 40), "mtcopy1": (60, 15), "runs": (20, 40)}
SYMBOLS = "ffffffff81000300 t migrate_pages\nffffffff81000400 t folio_mc_copy\n"
#: A block of each function has one instruction for each of the pages.
BLOCKS = f"1 ffffffff81000300 {PAGES} 10 90\n2 ffffffff81000400 {PAGES} 10 90\n"


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    breakdown.add_parser(parser.add_subparsers())
    return parser.parse_args(["breakdown", *words])


def leave(share: Path, costs: Mapping[str, tuple[int, int]], status: int = 0, clock: float = 1.0) -> Path:
    """What a guest and the plugin leave; the guest's clock counts `clock` times what the plugin does.

    The warm-up costs twice as much.
    """
    share.mkdir()
    windows, events = [[1]], []
    for turn in range(SWEEP.warmup + SWEEP.samples):
        for name, (rest, copy) in ((name, (2 * rest, 2 * copy) if turn < 1 else (rest, copy))
                                   for name, (rest, copy) in costs.items()):
            windows += [[1] * rest + [2] * copy] * 2
            ns = round((rest + copy) * PAGES * clock)
            events.append({"event": "sample", "config": name, "round": max(0, turn - 1), "warmup": turn < 1,
                           "ns_there": ns, "ns_back": ns, "pages_moved": 2 * PAGES, "pages_failed": 0,
                           "bytes": 2 * PAGES * PAGE, "copied_bytes": 0,
                           "copied_ns": 0})
    words = [word for window in windows for word in (0xFFFFFFFF, *window, 0xFFFFFFFE)]
    np.array(words, dtype=np.uint32).tofile(share / "record.trace")
    (share / "record.blocks").write_text(BLOCKS)
    (share / "kallsyms").write_text(SYMBOLS)
    (share / f"{CASE.name}.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (share / f"{CASE.name}.status").write_text(f"{status}\n")
    return share


def filled(tmp_path: Path, clock: float = 1.0, status: int = 0, stock: tuple[int, int] | None = None) -> Document:
    sweep = replace(SWEEP, vs_stock=stock is not None)
    boots = {"ferry": breakdown.read(breakdown_plugin, leave(tmp_path / "ferry", COSTS, status, clock), sweep, "ferry")}
    if stock:
        share = leave(tmp_path / "stock", {"stock": stock}, status)
        boots["stock"] = breakdown.read(breakdown_plugin, share, sweep, "stock")
    made = empty(sweep, "instructions")
    breakdown_rows.add(made, sweep, breakdown_plugin, boots)
    return made


def empty(sweep: Plan, kind: str) -> Document:
    return Document(schema=SCHEMA, bench="breakdown", board="made up", kind=kind, baseline=sweep.baseline, rows=[],
                    meta={}, skipped=[], warnings=[])


def rows_by_name(document: Document) -> dict[tuple[str, str], BreakdownRow]:
    return {(label(row), row["phase"]): cast(BreakdownRow, row) for row in document["rows"]}


def test_a_document_has_a_row_for_each_phase_of_each_configuration(tmp_path: Path) -> None:
    document = filled(tmp_path, stock=(50, 50))
    rows = rows_by_name(document)
    assert len(rows) == len(document["rows"]) == 4 * (len(phases.names()) + 1)
    assert rows["off", "copy"]["samples"] == [40.0] * 10 and rows["off", "batch lists and locks"]["median"] == 60
    assert rows["stock", TOTAL]["median"] == 100 and rows["stock", TOTAL]["ratio_to_baseline"] is None
    ratio = rows["runs", TOTAL]["ratio_to_baseline"]
    assert ratio and ratio["median"] == pytest.approx(100 / 60)
    for name in ("stock", "off", "mtcopy 1", "runs"):
        total = rows[name, TOTAL]["median"]
        parts = [row["median"] or 0.0 for (of, phase), row in rows.items() if of == name and phase != TOTAL]
        assert total and sum(parts) == pytest.approx(total, rel=0.01)
        assert sum(row["share"] or 0.0 for (of, phase), row in rows.items() if (of, phase != TOTAL) == (name, True)) \
            == pytest.approx(1, rel=0.01)


def test_the_copy_has_amdahls_bound_and_migrators_what_they_reach_of_it(tmp_path: Path) -> None:
    rows = rows_by_name(filled(tmp_path, stock=(50, 50)))
    assert rows["stock", "copy"]["amdahl_bound"] == 2 and rows["off", "copy"]["amdahl_bound"] == pytest.approx(5 / 3)
    assert rows["off", "copy"]["migrate_pages_share"] == pytest.approx(0.4)
    assert rows["mtcopy 1", "copy"]["reached"] == pytest.approx((100 / 75 - 1) / (5 / 3 - 1))
    assert [key for key, row in rows.items() if "reached" in row] == [("mtcopy 1", "copy")]


def test_phases_that_do_not_add_up_to_the_clock_are_a_failure(tmp_path: Path) -> None:
    rows = rows_by_name(filled(tmp_path, clock=1.02))
    assert rows["off", "copy"]["samples"] == [] and rows["off", TOTAL]["median"] is None
    assert rows["off", TOTAL]["failures"][0]["reason"] == "the phases have 100 a page, the clock 102"
    assert not rows["off", "copy"]["failures"] and len(rows["off", TOTAL]["failures"]) == 10


def test_reading_the_clock_weighs_where_a_move_has_one_page() -> None:
    sample = Sample({"copy": 7335.0})
    assert not breakdown_rows.differs(sample, 7335 * 1.01 + 75, pages=1)
    assert breakdown_rows.differs(sample, 7335 * 1.01 + 75, pages=512)
    assert breakdown_rows.differs(sample, 7335 * 1.01 + 175, pages=1)


def test_a_guest_that_failed_has_failures_and_can_still_be_printed(tmp_path: Path) -> None:
    document = filled(tmp_path, status=1)
    assert {len(row["failures"]) for row in document["rows"]} == {0, 10}
    assert "no sample" in formats.render(table.output([document]), "table")
    assert plots.all_of(document) == []


def test_a_kind_of_memory_that_the_guest_lacks_is_a_skip(tmp_path: Path) -> None:
    document = filled(tmp_path, status=4)
    assert document["rows"] == [] and document["skipped"][0]["workload"] == "anon"


def test_a_lost_window_is_an_error(tmp_path: Path) -> None:
    share = leave(tmp_path / "ferry", COSTS)
    with pytest.raises(InfraError, match="marked 67 moves, not 45"):
        breakdown.read(breakdown_plugin, share, replace(SWEEP, configs=SWEEP.configs[:2]), "ferry")


def test_the_record_is_removed_once_it_is_read(tmp_path: Path) -> None:
    filled(tmp_path)
    assert not list(tmp_path.rglob("record.*")) and list(tmp_path.rglob("*.jsonl"))


def trace_of(share: Path, sweep: Plan, costs: Mapping[str, tuple[int, int]]) -> None:
    """What a guest leaves, by ns a page of the copy, in two batches, and of the rest."""
    lines, events, now = ["# entries-in-buffer/entries-written: 44/44   #P:4"], [], 5_000_000_900
    for turn in range(sweep.warmup + sweep.samples):
        for name, (copy, rest) in costs.items():
            begins = [now, now + 1_000_000]
            took = (copy + rest) * PAGES
            events.append({"event": "sample", "config": name, "round": max(0, turn - 1), "warmup": turn < 1,
                           "at_there": begins[0], "at_back": begins[1], "ns_there": took, "ns_back": took,
                           "pages_moved": 2 * PAGES, "pages_failed": 0, "bytes": 2 * PAGES * PAGE, "copied_bytes": 0,
                           "copied_ns": 0})
            lines += [f" movebench-9  [000] .....  5.{(begin + at) % 10**9 // 1000:06}: ferry_copy_end: "
                      f"migrator=x error=0 copied=128 ns={copy * PAGES // 2}" for begin in begins * (copy > 0)
                      for at in (1, took)]
            now += 10_000_000
    (share / "trace").write_text("\n".join([*lines, ""]))
    (share / f"{CASE.name}.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (share / f"{CASE.name}.status").write_text("0\n")


def traced(share: Path, costs: Mapping[str, tuple[int, int]], stock: int = 0, kind: str = "emulated",
           cases: int = 1) -> Document:
    chosen = configs(Choice(["kernel", "mtcopy"], [1], runs=["off"]))
    sweep = replace(SWEEP, configs=tuple(config for config in chosen if config.label in costs), vs_stock=stock > 0)
    trace_of(share, sweep, costs)
    sides = {"ferry": breakdown.read(breakdown_events, share, sweep, "ferry")}
    if stock:
        (share / "stock").mkdir()
        trace_of(share / "stock", sweep, {"stock": (0, stock)})
        sides["stock"] = breakdown.read(breakdown_events, share / "stock", sweep, "stock")
    document = empty(sweep, kind)
    for _ in range(cases):
        breakdown_rows.add(document, sweep, breakdown_events, sides)
    return document


def test_elsewhere_a_tracepoint_tells_the_copy_of_migrators_from_the_rest(tmp_path: Path) -> None:
    document = traced(tmp_path, {"off": (0, 100), "kernel": (40, 60), "mtcopy1": (20, 60)})
    assert [(label(row), row["phase"], row["median"]) for row in document["rows"]] == [
        ("off", TOTAL, 100), ("kernel", "copy", 40), ("kernel", breakdown_events.REST, 60), ("kernel", TOTAL, 100),
        ("mtcopy 1", "copy", 20), ("mtcopy 1", breakdown_events.REST, 60), ("mtcopy 1", TOTAL, 80)]
    assert rows_by_name(document)["mtcopy 1", "copy"]["reached"] == pytest.approx((100 / 80 - 1) / (100 / 60 - 1))
    text = formats.render(table.output([document]), "markdown")
    assert "| off (baseline) | 100.0 |" in text and "a tracepoint tells" in text
    assert text.index("|  | total | 100.0 |") > text.index("| copy | - | 40.00 | 20.00 |")
    assert "ns a page" in plots.all_of(document)[0].svg and document["warnings"] == []


@pytest.mark.parametrize(("kind", "intervals"), [("emulated", False), ("instructions", True)])
def test_one_boot_of_each_kernel_gives_an_interval_to_counts_only(tmp_path: Path, kind: str, *,
                                                                  intervals: bool) -> None:
    """Times differ from boot to boot; within a boot they hardly do."""
    document = traced(tmp_path, {"off": (0, 100), "kernel": (40, 60)}, stock=110, kind=kind, cases=2)
    rows = rows_by_name(document)
    for name in ("off", "kernel"):
        ratio = rows[name, TOTAL]["ratio_to_baseline"]
        assert ratio and ratio["median"] == pytest.approx(1.1) and (ratio["ci95"] is not None) == intervals
    assert rows["kernel", TOTAL]["ratio_to_off"]["ci95"] is not None
    assert document["warnings"] == [breakdown_rows.ONE_BOOT] * (not intervals)


def test_a_bound_is_never_that_of_a_copy_by_many_cpus(tmp_path: Path) -> None:
    rows = rows_by_name(traced(tmp_path, {"off": (0, 100), "mtcopy1": (20, 60)}))
    assert rows["mtcopy 1", "copy"]["reached"] is None


def test_a_migrator_that_copied_nothing_is_named(tmp_path: Path) -> None:
    document = traced(tmp_path, {"off": (0, 100), "kernel": (40, 60), "mtcopy1": (0, 100)})
    assert document["warnings"] == [
        "mtcopy 1 copied nothing of 4 KiB folios, 1 MiB at a time: only the total is known"]
    assert ("mtcopy 1", TOTAL) in rows_by_name(document) and ("mtcopy 1", "copy") not in rows_by_name(document)


def test_a_trace_that_lost_events_is_an_error(tmp_path: Path) -> None:
    trace_of(tmp_path, SWEEP, {"off": (0, 100), "mtcopy1": (20, 60), "runs": (0, 50)})
    text = (tmp_path / "trace").read_text()
    (tmp_path / "trace").write_text(text.replace("44/44", "43/44"))
    with pytest.raises(InfraError, match="43 of 44 events"):
        breakdown.read(breakdown_events, tmp_path, SWEEP, "ferry")


def test_the_plugin_is_used_where_it_can_record() -> None:
    assert breakdown.method_of(boards.load("x86-icount")) is breakdown_plugin
    assert breakdown.method_of(boards.load("zcu102-icount")) is breakdown_events
    assert breakdown_events.commands("stock") == [] and breakdown_plugin.commands("stock")


def test_the_tables_have_the_share_and_the_phases(tmp_path: Path) -> None:
    document = filled(tmp_path, stock=(50, 50))
    text = formats.render(table.output([document]), "markdown")
    assert ("| mtcopy 1 | 75.00 · 1.333 [1.333, 1.333] · copy 20.0% · of migrate_pages() 20.0% · bound 1.250 · "
            "reached 50.0% |") in text
    assert "|  | copy | 50.00 | 40.00 | 15.00 | 40.00 |" in text
    assert "|  | total | 100.0 | 100.0 | 75.00 | 60.00 |" in text
    assert "unmap" not in text and "phase,share" in formats.render(table.output([document]), "csv")


def test_the_report_has_both_tables_and_a_stack_for_each_case(tmp_path: Path) -> None:
    document = filled(tmp_path)
    (plot,) = plots.all_of(document)
    assert plot.svg.index(">batch lists and locks<") > plot.svg.index(">copy<"), "as the stack is, top down"
    page = html([document], "made-up")
    assert "the share of the copy, instructions a page" in page and "phases, instructions a page" in page


def test_two_breakdowns_are_compared_by_their_totals(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    found = compare(filled(tmp_path / "a"), filled(tmp_path / "b"), 0.05)
    assert [(entry["config"], entry["verdict"]) for entry in found["rows"]] == [
        ("off", "same"), ("mtcopy 1", "same"), ("runs", "same")]


def test_the_plan_has_the_moves_of_the_rfc_as_far_as_the_memory_goes() -> None:
    board = boards.load("x86-icount")
    sweep, skipped = breakdown.plan_for(parsed(), board)
    assert [case.total_bytes for case in sweep.cases if (case.kind, case.folio_bytes) == ("anon", PAGE)] == [
        PAGE, 2 << 20, 256 << 20]
    assert [(skip["workload"], skip["reason"]) for skip in skipped] == [
        ("anon, 1 GiB", "a node of x86-icount has 1024 MiB")]
    assert {case.kind for case in sweep.cases} == {"anon", "shmem", "file", "swapcache"}
    assert sweep.baseline == "stock" and [config.label for config in sweep.configs] == [
        "off", "kernel", "mtcopy1", "runs"]


def test_quick_leaves_out_what_takes_long_and_says_so() -> None:
    sweep, skipped = breakdown.plan_for(parsed("--quick", "--baseline", "off"), boards.load("x86-icount"))
    assert max(case.total_bytes for case in sweep.cases) == 2 << 20 and len(skipped) == 2
    assert sweep.samples == 10 and not sweep.vs_stock


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="does not come in folios of 2m"):
        breakdown.plan_for(parsed("--kind", "swapcache", "--folio", "2m"), boards.load("x86-icount"))
    with pytest.raises(UsageError, match="no DMA engine"):
        breakdown.plan_for(parsed("--migrator", "dcbm"), boards.load("x86-icount"))
    with pytest.raises(SystemExit):
        parsed("--board", "uml")
