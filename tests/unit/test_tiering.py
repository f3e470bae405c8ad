# SPDX-License-Identifier: GPL-2.0
"""What `ferry bench tiering` makes of its guests' output."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import cast

import pytest
from test_stall import REDIS

from ferry.bench import tierbench, tiering, tiering_rows
from ferry.bench.plan import STOCK, Choice, Config, configs
from ferry.bench.tierbench import Load, Outcome
from ferry.bench.tiering_rows import Run
from ferry.boards import load
from ferry.errors import UsageError
from ferry.results import compare, formats, plots, report, table
from ferry.results.document import SCHEMA, Document, Row, TieringRow, label

TENANTS = ("tenants", "numab")
OURS = configs(Choice(["off"], [2]))


def event(name: str, turn: int, touches: int, p99_ns: int, **more: object) -> dict[str, object]:
    """A sample of two seconds in which 600 pages moved; 500 of them in runs or by mtcopy, whichever is on."""
    return {"event": "sample", "policy": "numab", "config": name, "round": turn, "warmup": False, "ns": 2_000_000_000,
            "touches_0": touches, "touches_1": touches, "touches_2": touches // 2, "p50_ns": 500, "p99_ns": p99_ns,
            "p999_ns": 2 * p99_ns, "max_ns": 3 * p99_ns, "promotions": 400, "demotions": 200, "ipis": 60,
            "pgmigrate_success": 600, "moved_for_numa_misplaced": 400, "moved_for_demotion": 200,
            "moved_for_damon": 0, "moved_in_runs": 500 * ("runs" in name), "copied_off_pages": 0,
            "copied_mtcopy_pages": 500 * ("mtcopy" in name), **more}


def outcome(tmp_path: Path, sides: dict[str, tuple[int, int]], status: int = 0, stderr: str = "tierbench: made up\n",
            **more: object) -> Outcome:
    """Ten samples of each configuration: touches of the first tenant, and p99 in ns. None: a key that is missing."""
    events = [event(name, turn, touches + turn, p99 + turn, **more) for turn in range(10)
              for name, (touches, p99) in sides.items()]
    kept = [{key: value for key, value in one.items() if value is not None} for one in events]
    (tmp_path / "tenants-numab.jsonl").write_text("".join(json.dumps(one) + "\n" for one in kept))
    (tmp_path / "tenants-numab.status").write_text(f"{status}\n")
    (tmp_path / "tenants-numab.stderr").write_text(stderr if status else "")
    return tierbench.outcome(tmp_path, *TENANTS)


def filled(*runs: Run, baseline: str = "off", chosen: tuple[Config, ...] = OURS) -> Document:
    document = Document(schema=SCHEMA, bench="tiering", board="x86-tier", kind="emulated", baseline=baseline, rows=[],
                        meta={})
    tiering_rows.fill(document, chosen, list(dict.fromkeys(run.case for run in runs)), 10, runs)
    return document


def of_ours(found: Outcome) -> Document:
    return filled(Run(0, "ferry", TENANTS, found))


def good(tmp_path: Path) -> Document:
    return of_ours(outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, 200_000)}))


def reasons(document: Document) -> set[str]:
    return {failure["reason"] for row in document["rows"] for failure in row["failures"]}


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    tiering.add_parser(parser.add_subparsers())
    return parser.parse_args(["tiering", *words])


def test_rows_have_figures_and_ratios_that_are_above_1_when_better(tmp_path: Path) -> None:
    off, runs = (cast(TieringRow, row) for row in good(tmp_path)["rows"])
    assert [label(row) for row in (off, runs)] == ["off", "runs"]
    assert (runs["policy"], runs["workload"], runs["unit"]) == ("numab", "tenants", "touches_per_second")
    assert runs["touches_per_second"] == pytest.approx(2505, abs=1) and runs["median"] == runs["touches_per_second"]
    assert runs["slowest_touches_per_second"] == pytest.approx(501, abs=1)
    assert runs["tenants"] == [pytest.approx(1002.25)] * 2 + [pytest.approx(501, abs=1)]
    assert (runs["promotions"], runs["demotions"], runs["promotions_per_second"]) == (400, 200, 200)
    assert (runs["shootdowns"], runs["shootdowns_per_1000_pages"], runs["migrated_pages"]) == (60, 100, 600)
    assert (off["moved_in_runs"], runs["moved_in_runs"], runs["copied_by_migrator"]) == (0, 500, 0)
    assert runs["by_reason"] == {"numa_misplaced": 4000, "demotion": 2000}
    ratios = {key: round(ratio["median"], 1) for key, ratio in runs["ratios"].items() if ratio}
    assert ratios == {"touches_per_second": 2.0, "slowest_touches_per_second": 2.0, "p50_us": 1.0, "p99_us": 4.0,
                      "p999_us": 4.0, "max_us": 4.0, "promotions_per_second": 1.0, "shootdowns_per_1000_pages": 1.0,
                      "tenant_0": 2.0, "tenant_1": 2.0, "tenant_2": 2.0}
    assert off["ratios"] == {} and runs["ratio_to_baseline"] == runs["ratios"]["touches_per_second"]


def test_pages_by_reason_that_do_not_add_up_fail_the_sample(tmp_path: Path) -> None:
    document = of_ours(outcome(tmp_path, {"off": (1000, 1), "runs": (2000, 1)}, moved_for_demotion=199))
    assert reasons(document) == {"599 pages moved by reason, and 600 in all"} and not document["rows"][0]["samples"]


def test_our_kernel_counts_by_reason_and_stock_need_not(tmp_path: Path) -> None:
    sides = {"stock": (1000, 800_000), "off": (1000, 800_000), "runs": (2000, 200_000)}
    counts = ("moved_for_demotion", "moved_for_numa_misplaced", "moved_for_damon", "moved_in_runs", "copied_off_pages",
              "copied_mtcopy_pages")
    bare = outcome(tmp_path, sides, **dict.fromkeys(counts))
    document = filled(Run(0, "stock", TENANTS, bare), Run(0, "ferry", TENANTS, bare), baseline="stock",
                      chosen=(STOCK, *OURS))
    assert [len(row["samples"]) for row in document["rows"]] == [10, 0, 0]
    assert cast(TieringRow, document["rows"][0])["by_reason"] == {}
    assert reasons(document) == {"0 pages moved by reason, and 600 in all"}


def test_rows_in_which_what_was_on_did_nothing_are_pointed_out(tmp_path: Path) -> None:
    chosen = configs(Choice(["off", "mtcopy"], [2]))
    sides = {config.label: (1000, 800_000) for config in chosen}
    busy = filled(Run(0, "ferry", TENANTS, outcome(tmp_path, sides)), chosen=chosen)
    assert [label(row) for row in busy["rows"]] == ["off", "mtcopy 2", "runs"] and busy["warnings"] == []
    idle = filled(Run(0, "ferry", TENANTS, outcome(tmp_path, sides, moved_in_runs=0, copied_mtcopy_pages=0)),
                  chosen=chosen)
    assert idle["warnings"] == [
        "tenants numab, mtcopy 2: the migrator copied no page, so this row shows the fallback",
        "tenants numab, runs: no page was moved in a run"]
    assert idle["warnings"][1] in formats.render(table.output([idle]), "markdown")


def test_a_row_without_a_good_sample_is_not_said_to_do_nothing(tmp_path: Path) -> None:
    assert of_ours(outcome(tmp_path, {"off": (1000, 1), "runs": (2000, 1)}, status=1))["warnings"] == []


def test_a_sample_in_which_nothing_moved_is_a_failure(tmp_path: Path) -> None:
    document = of_ours(outcome(tmp_path, {"off": (1000, 1), "runs": (2000, 1)}, pgmigrate_success=0))
    assert reasons(document) == {"no memory moved"}


def test_a_program_that_failed_has_no_good_sample(tmp_path: Path) -> None:
    document = of_ours(outcome(tmp_path, {"off": (1000, 1)}, status=1))
    assert [len(row["failures"]) for row in document["rows"]] == [10, 10]
    assert reasons(document) == {"tierbench exited with 1: tierbench: made up"}


def test_a_sample_without_a_figure_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "x.out").write_text("Could not connect to Redis")
    sample = tierbench.sample({**event("off", 0, 2, 3), "output": "x.out"}, tmp_path)
    run = Run(0, "ferry", ("redis", "numab"), Outcome(0, [sample], ""))
    assert tiering_rows.fault(sample, run) == "it has no requests_per_second, p50_us, p99_us, p999_us, max_us"


def test_redis_has_requests_and_no_tenants(tmp_path: Path) -> None:
    (tmp_path / "x.out").write_text(REDIS)
    sample = tierbench.sample({**event("off", 0, 2, 3), "output": "x.out"}, tmp_path)
    assert sample.figures["requests_per_second"] == 349.0 and sample.figures["p99_us"] == 16167.0
    assert sample.tenants == [] and sample.figures["promotions_per_second"] == 200
    document = filled(Run(0, "ferry", ("redis", "numab"), Outcome(0, [sample], "")))
    assert document["rows"][0]["unit"] == "requests_per_second"
    assert cast(TieringRow, document["rows"][0])["tenants"] == []


def test_a_count_of_0_has_no_ratio(tmp_path: Path) -> None:
    document = of_ours(outcome(tmp_path, {"off": (1000, 1), "runs": (2000, 1)}, ipis=0, promotions=0))
    ratios = cast(TieringRow, document["rows"][1])["ratios"]
    assert ratios["shootdowns_per_1000_pages"] is None and ratios["promotions_per_second"] is None
    assert ratios["touches_per_second"] is not None


def test_a_policy_that_the_guest_lacks_is_a_skip(tmp_path: Path) -> None:
    missing = outcome(tmp_path, {}, status=4, stderr="tierbench: no DAMON\n")
    document = filled(Run(0, "ferry", ("tenants", "damon"), missing))
    assert document["rows"] == []
    assert document.get("skipped") == [{"folio_bytes": 4096, "workload": "tenants damon",
                                        "reason": "tierbench exited with 4: tierbench: no DAMON"}]


def test_the_tables_show_all_figures_and_the_reasons(tmp_path: Path) -> None:
    document = good(tmp_path)
    text = formats.render(table.output([document]), "markdown")
    assert "| tenants, numab · off (baseline) |" in text and "p99.9 µs" in text
    runs, tenants, by_reason = (line for line in text.splitlines() if line.startswith("| tenants, numab · runs |"))
    assert runs.count("[") == 8 and tenants.startswith("| tenants, numab · runs | 1,002 · 1.996 [1.993, 1.998] |")
    assert tenants.count("[") == 3
    assert by_reason == "| tenants, numab · runs | 2,000 | 4,000 | 6,000 |"
    header, *_ = formats.render(table.output([document]), "csv").splitlines()
    assert {"policy", "promotions", "p999_us", "moved_for_demotion", "tenant_2", "tenant_2_ratio"} <= set(
        header.split(","))


def test_a_configuration_without_a_good_sample_is_in_the_table_of_the_tenants(tmp_path: Path) -> None:
    document = of_ours(outcome(tmp_path, {"off": (1000, 800_000)}))
    text = formats.render(table.output([document]), "markdown")
    assert "| tenants, numab · runs | no sample | no sample | no sample |" in text
    redis = cast(TieringRow, document["rows"][0]) | {"tenants": [], "device": "redis numab"}
    document["rows"].append(cast(Row, redis))
    assert table.grids(document)[1].rows == table.grids(document | {"rows": document["rows"][:2]})[1].rows


def test_a_document_is_plotted_reported_and_compared(tmp_path: Path) -> None:
    document = good(tmp_path)
    overview, figures, drift = plots.all_of(document)
    assert (overview.caption[:5], drift.caption[:5]) == ("Ratio", "Every")
    assert figures.caption.startswith("tenants numab, 320 MiB at a time: ratio of each figure to off: median and 95 %")
    assert ">p99.9 µs<" in figures.svg and ">tenant 2<" in figures.svg and ">worse than off<" in figures.svg
    assert "pages that moved for each reason" in report.html([document], "made-up")
    entries = compare.compare(document, document, 0.05)["rows"]
    assert [entry["config"] for entry in entries[:3]] == ["runs", "runs: slowest tenant", "runs: p50 µs"]
    assert len(entries) == 11 and {entry["verdict"] for entry in entries} == {"same"}


def test_longer_waits_and_a_slower_tenant_are_regressions_however_many_touches_there_are(tmp_path: Path) -> None:
    before = good(tmp_path)
    after = of_ours(outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, 400_000)}))
    found = {entry["config"]: entry["verdict"] for entry in compare.compare(before, after, 0.05)["rows"]}
    assert found["runs"] == found["runs: tenant 1"] == "same" and found["runs: p99 µs"] == "regression"
    cast(TieringRow, after["rows"][1])["figures"]["tenant_1"] = [400.0] * 10
    found = {entry["config"]: entry["verdict"] for entry in compare.compare(before, after, 0.05)["rows"]}
    assert found["runs: tenant 1"] == "regression" and found["runs: tenant 0"] == "same"


def test_a_figure_of_0_in_either_run_is_unknown_or_a_loss(tmp_path: Path) -> None:
    before = good(tmp_path)
    after = of_ours(outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, 200_000)}))
    after_figures = cast(TieringRow, after["rows"][1])["figures"]
    after_figures["promotions_per_second"], after_figures["shootdowns_per_1000_pages"] = [0.0] * 10, [0.0] * 10
    found = {entry["config"]: entry for entry in compare.compare(before, after, 0.05)["rows"]}
    assert found["runs: promotions/s"]["verdict"] == "regression"
    assert found["runs: promotions/s"]["ratio"] == {"median": 0, "ci95": [0, 0]}
    gone = found["runs: shootdowns per 1,000 pages"]
    assert (gone["verdict"], gone["ratio"], gone["unit"]) == ("unknown", None, "shootdowns_per_1000_pages")
    assert compare.compare(after, before, 0.05)["rows"][0]["verdict"] == "same"


def test_the_script_measures_each_configuration_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tierbench.guest_programs, "programs", lambda: {"tierbench": Path("/made up/tierbench")})
    monkeypatch.setattr(tierbench.packages, "with_libraries", Path)
    monkeypatch.setattr(tierbench.packages, "run_unpacked", lambda home, program: ["ld", program])
    text = tierbench.script(tierbench.cases(["tenants", "redis"], ["numab", "damon"]), (STOCK, *OURS), Load(7, 8, 9), 3,
                            [["insmod", "x.ko"]])
    assert "insmod x.ko || exit 3" in text
    lines = [line for line in text.splitlines() if "tierbench" in line]
    in_turn = "--config stock: --config off:runs=0,migrator=off --config runs:runs=1"
    assert all(in_turn in line for line in lines)
    assert [line.count("--policy damon") for line in lines] == [0, 1, 0, 1]
    assert "'/made up/tierbench' --policy numab --samples 3" in lines[0] and "--load-ms 7 --shift-ms 8" in lines[0]
    assert "redis-tier.sh 'ld redis-server' 'ld redis-benchmark' 400 200 4096 9" in lines[2]
    assert 'tee "$FERRY_SHARE"/redis-damon.jsonl' in lines[3]


def test_the_memory_is_larger_than_the_fast_node() -> None:
    for workload, policy in tierbench.cases(tierbench.WORKLOADS, tierbench.POLICIES):
        fast, slow = tiering.machine("x86-tier", policy == "reclaim").nodes
        total = tierbench.total_bytes(workload, policy)
        assert fast.memory_mib < total / tierbench.MIB < 0.75 * (fast.memory_mib + slow.memory_mib) and not slow.cpus


def test_options() -> None:
    board = load("x86-tier")
    chosen = tiering.plan_for(parsed("--quick", "--baseline", "stock", "--policy", "numab"), board)
    assert chosen.cases == [("tenants", "numab"), ("redis", "numab")]
    assert (chosen.boots, chosen.samples_per_boot) == (2, 5)
    assert [config.label for config in chosen.chosen] == ["stock", "off", "runs"]
    assert tiering.plan_for(parsed(), board).cases == [
        ("tenants", "numab"), ("tenants", "damon"), ("tenants", "reclaim"), ("redis", "numab"), ("redis", "damon")]
    assert tiering.plan_for(parsed(), board).cases_of(reclaim=True) == [("tenants", "reclaim")]
    with pytest.raises(UsageError, match="redis allocates nothing"):
        tiering.plan_for(parsed("--workload", "redis", "--policy", "reclaim"), board)
    with pytest.raises(UsageError, match="9 samples are too few"):
        tiering.plan_for(parsed("--samples", "9"), board)
    with pytest.raises(UsageError, match="no DMA engine"):
        tiering.plan_for(parsed("--migrator", "dcbm"), board)
    for words in (("--policy", "guess"), ("--workload", "nginx"), ("--board", "x86-numa")):
        with pytest.raises(SystemExit):
            parsed(*words)
