# SPDX-License-Identifier: GPL-2.0
"""What `ferry bench stall` makes of its guests' output."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import made_up
import pytest

from ferry.bench import stall, stallbench
from ferry.bench.plan import STOCK, Choice, configs
from ferry.bench.stallbench import Load, Outcome, Sample
from ferry.boards import load
from ferry.errors import UsageError
from ferry.results import formats, plots, table
from ferry.results.compare import compare
from ferry.results.document import SCHEMA, Document, StallRow, label

REDIS = """\
====== SET ======
  3000 requests completed in 8.60 seconds

Latency by percentile distribution:
0.000% <= 0.567 milliseconds (cumulative count 1)
50.000% <= 2.039 milliseconds (cumulative count 1500)
98.438% <= 14.007 milliseconds (cumulative count 2954)
99.219% <= 16.167 milliseconds (cumulative count 2977)
99.805% <= 22.015 milliseconds (cumulative count 2995)
99.902% <= 29.679 milliseconds (cumulative count 2998)
100.000% <= 33.311 milliseconds (cumulative count 3000)

Summary:
  throughput summary: 349.00 requests per second
"""


def outcome(tmp_path: Path, sides: dict[str, tuple[int, int]], status: int = 0, **more: object) -> Outcome:
    """Ten samples of each configuration: requests, and p99 in ns."""
    events = [made_up.stall_event(name, turn, requests + turn, p99 + turn, **more) for turn in range(10)
              for name, (requests, p99) in sides.items()]
    (tmp_path / "touch.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events))
    (tmp_path / "touch.status").write_text(f"{status}\n")
    (tmp_path / "touch.stderr").write_text("stallbench: made up\n" if status else "")
    return stallbench.outcome(tmp_path, "touch")


def filled(found: Outcome, **more: object) -> Document:
    chosen = stall.Plan(("touch",), configs(Choice(["off"], [2])), Load(1, 1), 10, 1, vs_stock=False)
    document = Document(schema=SCHEMA, bench="stall", board="x86-numa", kind="emulated", baseline="off", rows=[],
                        meta={})
    stall.fill(document, chosen, {(0, "ferry", "touch"): found})
    return document


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    stall.add_parser(parser.add_subparsers())
    return parser.parse_args(["stall", *words])


def test_redis_benchmark_says_all_figures_but_the_round_trips() -> None:
    assert stallbench.of_redis(REDIS) == {"requests_per_second": 349.0, "p50_us": 2039.0, "p99_us": 16167.0,
                                          "p999_us": 29679.0, "max_us": 33311.0}
    assert stallbench.of_redis("Could not connect to Redis") == {}


def test_rows_have_figures_and_ratios_that_are_above_1_when_better(tmp_path: Path) -> None:
    document = filled(outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, 200_000)}))
    off, runs = (cast(StallRow, row) for row in document["rows"])
    assert [label(row) for row in document["rows"]] == ["off", "runs"]
    assert runs["requests_per_second"] == pytest.approx(2004.5) and runs["p99_us"] == pytest.approx(200, rel=0.01)
    assert runs["round_trips_per_second"] == 4 and off["ratios"] == {}
    assert runs["failed_folios"] == 0.5 and runs["folio_bytes"] == 4096
    ratios = {key: round(ratio["median"], 1) for key, ratio in runs["ratios"].items() if ratio}
    assert ratios == {"requests_per_second": 2.0, "round_trips_per_second": 1.0, "p50_us": 1.0, "p99_us": 4.0,
                      "p999_us": 4.0, "max_us": 4.0}
    assert runs["ratio_to_baseline"] == runs["ratios"]["requests_per_second"]


def test_the_table_shows_all_figures(tmp_path: Path) -> None:
    document = filled(outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, 200_000)}))
    text = formats.render(table.output([document]), "markdown")
    assert "| touch · off (baseline) |" in text and "p99.9 µs" in text
    (runs,) = [line for line in text.splitlines() if line.startswith("| touch · runs |")]
    assert runs.count("[") == 6
    assert "p999_us" in formats.render(table.output([document]), "csv").splitlines()[0]


def test_longer_waits_are_a_regression_whatever_the_requests(tmp_path: Path) -> None:
    before, after = (filled(outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, p99)}))
                     for p99 in (200_000, 400_000))
    found = {entry["config"]: entry["verdict"] for entry in compare(before, after, 0.05)["rows"]}
    assert found == {"runs": "same", "runs: round trips/s": "same", "runs: p50 µs": "same",
                     "runs: p99 µs": "regression", "runs: p99.9 µs": "regression", "runs: longest µs": "regression"}
    assert [plot.caption[:7] for plot in plots.all_of(after)] == ["Ratio t", "touch, ", "Every s"]


def locked(**files: int) -> Sample:
    event = {"config": "kernel", **{f"locked_{name}": count for name, count in files.items()}}
    return Sample("kernel", 0, {}, stallbench.locked(event))


def test_the_time_with_locked_folios_is_the_bound_of_99_of_100_batches() -> None:
    def figures(*samples: Sample) -> dict[str, float | None]:
        return stallbench.locked_figures(samples)

    some, many = locked(le_2048us=100, le_1024us=99, le_512us=98, count=100, total_us=9), locked(
        le_512us=900, le_1024us=900, le_2048us=900, count=900)
    assert figures(some) == {"locked_batches": 100, "locked_p99_us": 1024}
    assert figures(some, many, locked()) == {"locked_batches": 1000, "locked_p99_us": 512}
    assert figures(locked(le_1024us=98, le_2048us=98, count=100)) == {"locked_batches": 100, "locked_p99_us": None}
    assert figures(locked(le_1024us=0, count=0)) == {"locked_batches": 0}
    assert figures(locked()) == {} and figures() == {}


def test_rows_have_the_time_with_locked_folios_if_the_kernel_has_it(tmp_path: Path) -> None:
    found = outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, 200_000)})
    histograms = [locked(le_512us=4, le_1024us=4, count=4), locked(le_512us=0, le_1024us=9, count=10)]
    spread = {0: histograms[0].locked, 1: histograms[1].locked}
    samples = [replace(one, locked=spread.get(one.round)) if one.config == "runs" else one for one in found.samples]
    document = filled(replace(found, samples=samples))
    off, runs = (cast(StallRow, row) for row in document["rows"])
    assert "locked_p99_us" not in off and "locked_batches" not in off["figures"]
    assert runs["locked_p99_us"] is None and runs["locked_batches"] == 14
    assert runs["figures"]["locked_p99_us"] == [512, *[None] * 9]
    assert runs["figures"]["locked_batches"] == [4, 10, *[None] * 8]
    assert json.loads(formats.render(table.output([document]), "json"), parse_constant=pytest.fail) == document
    runs["locked_p99_us"] = 1024
    printed = formats.render(table.output([document]), "markdown").splitlines()
    assert [line.split("|")[-2].strip() for line in printed if line.startswith("| touch")] == ["-", "<= 1,024"]
    assert "locked_p99_us" in formats.render(table.output([document]), "csv").splitlines()[0]


def test_a_table_of_waits_tells_how_many_there_were(tmp_path: Path) -> None:
    found = outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, 200_000)}, waits=12)
    document = filled(found)
    off = cast(StallRow, document["rows"][0])
    assert off["waits"] == 12 and off["figures"]["waits"] == [12] * 10
    printed = formats.render(table.output([document]), "markdown")
    assert [line.split("|")[-2].strip() for line in printed.splitlines() if line.startswith("| touch")] == ["12"] * 2
    assert "p99.9 of fewer than 1,000 is the longest" in printed
    assert formats.render(table.output([document]), "csv").splitlines()[0].count(",waits") == 1
    plain = filled(outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, 200_000)}))
    assert "waits" not in plain["rows"][0] and "waits" not in formats.render(table.output([plain]), "markdown")


def test_a_p99_above_all_bounds_is_no_number(tmp_path: Path) -> None:
    found = outcome(tmp_path, {"off": (1000, 800_000)}, locked_le_64us=0, locked_count=7)
    document = filled(found)
    assert cast(StallRow, document["rows"][0])["locked_p99_us"] is None
    assert "above all bounds" in formats.render(table.output([document]), "markdown")


def test_a_table_without_locked_times_has_no_column_for_them(tmp_path: Path) -> None:
    document = filled(outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, 200_000)}))
    assert "locked" not in formats.render(table.output([document]), "markdown")


def test_batch_max_us_is_set_on_our_kernel_and_part_of_the_workload(tmp_path: Path) -> None:
    chosen = stall.plan_for(parsed("--batch-max-us", "1000", "--baseline", "stock"), load("x86-numa"))
    assert [config.argument for config in chosen.chosen] == [
        "stock:", "off:batch_max_us=1000,runs=0,migrator=off", "runs:batch_max_us=1000,runs=1,migrator=off"]
    assert chosen.workload("full") == "full, batch_max_us 1000"
    plain = stall.plan_for(parsed(), load("x86-numa"))
    assert plain.workload("full") == "full" and "batch_max_us" not in plain.chosen[0].argument
    for wrong in ("0", "1000001", "4ms"):
        with pytest.raises(SystemExit):
            parsed("--batch-max-us", wrong)


def test_a_program_that_failed_has_no_good_sample(tmp_path: Path) -> None:
    document = filled(outcome(tmp_path, {"off": (1000, 800_000)}, status=1))
    assert [len(row["failures"]) for row in document["rows"]] == [10, 10]
    assert document["rows"][0]["failures"][0]["reason"] == "stallbench exited with 1: stallbench: made up"


def test_a_sample_in_which_nothing_moved_is_a_failure(tmp_path: Path) -> None:
    document = filled(outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, 1)}, round_trips=0))
    assert {failure["reason"] for row in document["rows"] for failure in row["failures"]} == {"no memory moved"}


def test_a_sample_in_which_nobody_waited_is_a_failure(tmp_path: Path) -> None:
    document = filled(outcome(tmp_path, {"off": (1000, 800_000), "runs": (2000, -9)}))
    assert [failure["reason"] for failure in document["rows"][1]["failures"]] == ["no request waited"]


def test_a_sample_without_a_figure_is_a_failure() -> None:
    sample = Sample("off", 0, {"requests_per_second": 1.0, "round_trips_per_second": 1.0})
    said = stallbench.fault(sample, Outcome(0, [sample], ""), must_wait=True)
    assert said == "it has no p50_us, p99_us, p999_us, max_us"


def test_a_guest_without_redis_is_a_skip(tmp_path: Path) -> None:
    document = filled(outcome(tmp_path, {}, status=4))
    assert document["rows"] == [] and document["skipped"][0]["workload"] == "touch"


def test_the_script_measures_each_configuration_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stallbench.guest_programs, "programs", lambda: {"stallbench": Path("/made up/stallbench")})
    text = stallbench.script(["touch"], (STOCK, *configs(Choice(["off"], [2]))), Load(7, 8), 3, [["insmod", "x.ko"]],
                             (0, 2))
    assert "insmod x.ko || exit 3" in text and "--load-ms 7" in text and "'/made up/stallbench' --samples 3" in text
    assert "--from 0 --to 2" in text
    assert "--config stock: --config off:runs=0,migrator=off --config runs:runs=1,migrator=off" in text


def test_the_script_fills_the_node_and_reads_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stallbench.guest_programs, "programs", lambda: {"stallbench": Path("/stallbench")})
    text = stallbench.script(["full", "tmpfs", "huge", "hugetlb"], configs(Choice(["off"], [2])), Load(7, 8), 3, [],
                             (0, 1))
    full, tmpfs, huge, hugetlb = [line for line in text.splitlines() if "stallbench" in line]
    assert "--memory huge --full --waits --request-pages 1 --bytes 33554432 --load-ms 7" in full
    assert "--memory tmpfs --request-pages 1" in tmpfs
    assert "--memory huge --waits --request-pages 1 --bytes 134217728 --load-ms 7" in huge
    assert "--memory hugetlb --request-pages 1 --bytes 1073741824 --load-ms 7" in hugetlb


def test_options() -> None:
    board = load("x86-numa")
    chosen = stall.plan_for(parsed("--quick", "--baseline", "stock"), board)
    assert chosen.workloads == ("touch", "redis") and chosen.boots == 2 and chosen.samples_per_boot == 5
    assert [config.label for config in chosen.chosen] == ["stock", "off", "runs"]
    with pytest.raises(UsageError, match="9 samples are too few"):
        stall.plan_for(parsed("--samples", "9"), board)
    with pytest.raises(UsageError, match="no DMA engine"):
        stall.plan_for(parsed("--migrator", "dcbm"), board)
    with pytest.raises(SystemExit):
        parsed("--workload", "nginx")
