# SPDX-License-Identifier: GPL-2.0
"""From outcomes to rows."""

from __future__ import annotations

import dataclasses

import made_up
import pytest

from ferry.bench.plan import Case, Choice, Plan, configs
from ferry.bench.rows import BootResult, fill
from ferry.results.document import SCHEMA, Document, Row, failure_count, label

COSTS = {"off": 100.0, "kernel": 95.0, "mtcopy1": 98.0, "mtcopy2": 50.0}

#: The only column of most of the documents below.
WHERE = "4 KiB folios, 1 MiB at a time"


def summed_up(plan: Plan, boots: list[BootResult], unit: str = "gbps") -> Document:
    document = Document(schema=SCHEMA, bench="move_pages", board="made-up", kind="emulated", baseline=plan.baseline,
                        rows=[], meta={})
    fill(document, plan, boots, unit)
    return document


def by_label(document: Document) -> dict[str, Row]:
    return {label(row): row for row in document["rows"]}


def test_rows_have_samples_medians_and_ratios_to_off() -> None:
    rows = by_label(made_up.document(COSTS))
    assert list(rows) == ["off", "kernel", "mtcopy 1", "mtcopy 2"]
    assert rows["off"]["ratio_to_baseline"] is None
    assert rows["off"]["median"] == pytest.approx(made_up.PAGE / 100, rel=0.02)
    ratio = rows["mtcopy 2"]["ratio_to_baseline"]
    assert ratio is not None and ratio["ci95"] is not None
    assert ratio["median"] == pytest.approx(2.0, rel=0.05)
    assert 1.9 < ratio["ci95"][0] <= ratio["median"] <= ratio["ci95"][1] < 2.1


def test_instructions_are_better_when_fewer() -> None:
    rows = by_label(made_up.document({**COSTS, "kernel": 125.0}, unit="instructions_per_page"))
    ratio = rows["kernel"]["ratio_to_baseline"]
    assert ratio is not None and ratio["median"] == pytest.approx(0.8, rel=0.05)


def test_boots_of_stock_stand_beside_boots_of_ours() -> None:
    plan = made_up.plan(boots=2, vs_stock=True)
    boots = [BootResult(number, kernel, {made_up.case(): made_up.outcome(made_up.lines(costs, count=5))})
             for number in range(2) for kernel, costs in (("stock", {"stock": 110.0}), ("ferry", COSTS))]
    document = summed_up(plan, boots)
    rows = by_label(document)
    assert next(iter(rows)) == "stock" and document["baseline"] == "stock"
    assert len(rows["stock"]["samples"]) == len(rows["off"]["samples"]) == 10
    assert rows["stock"]["sample_ids"] == rows["off"]["sample_ids"]
    to_stock, to_off = rows["mtcopy 2"]["ratio_to_baseline"], rows["mtcopy 2"]["ratio_to_off"]
    assert to_stock is not None and to_stock["median"] == pytest.approx(2.2, rel=0.05)
    assert to_off is not None and to_off["median"] == pytest.approx(2.0, rel=0.05)
    assert "ratio_to_off" not in rows["off"]


def test_a_size_that_the_guest_does_not_have_is_skipped_with_the_reason() -> None:
    outcomes = {made_up.case(): made_up.outcome(made_up.lines(COSTS)),
                made_up.case(65536): made_up.outcome("", status=4, stderr="movebench: no 64 KiB folios: mTHP is off\n")}
    document = summed_up(made_up.plan((4096, 65536)), [BootResult(0, "ferry", outcomes)])
    assert {row["folio_bytes"] for row in document["rows"]} == {4096}
    assert document["skipped"] == [{"folio_bytes": 65536, "workload": "anon", "reason":
                                    "movebench exited with 4: movebench: no 64 KiB folios: mTHP is off"}]


def test_a_size_that_failed_keeps_its_rows_without_samples() -> None:
    document = summed_up(made_up.plan(), [BootResult(0, "ferry", {made_up.case(): made_up.outcome("", status=None)})])
    assert failure_count(document) == 40
    assert all(row["median"] is None and row["samples"] == [] for row in document["rows"])


def test_counters_are_those_of_the_size_alone() -> None:
    sizes = (4096, 65536)
    outcomes = {made_up.case(size): made_up.outcome(made_up.lines(COSTS, size), kernel_folios=count,
                                                    mtcopy_folios=2 * count)
                for size, count in zip(sizes, (100, 130), strict=True)}
    document = summed_up(made_up.plan(sizes), [BootResult(0, "ferry", outcomes)])
    assert document["counters"]["64k"] == {"kernel/folios": 30, "mtcopy/folios": 60}
    assert document["warnings"] == []


def test_a_migrator_that_copied_nothing_is_told_on() -> None:
    outcome = made_up.outcome(made_up.lines(COSTS), kernel_folios=100, mtcopy_folios=90)
    samples = [dataclasses.replace(sample, copied_bytes=sample.copied_bytes * (sample.config != "mtcopy1"))
               for sample in outcome.samples]
    outcomes = {made_up.case(): dataclasses.replace(outcome, samples=samples)}
    document = summed_up(made_up.plan(), [BootResult(0, "ferry", outcomes)])
    assert document["warnings"] == [f"mtcopy1 copied no folio of {WHERE}: its row shows the fallback"]


def test_a_migrc_that_deferred_nothing_is_told_on() -> None:
    sweep = made_up.plan()
    sweep = dataclasses.replace(sweep, configs=configs(Choice([], [1], migrc=True, runs=["off"])))
    for folios, warnings in ((0, [f"migrc deferred nothing of {WHERE}: its row is off once more"]), (7, [])):
        outcomes = {made_up.case(): made_up.outcome(made_up.lines({"off": 100.0, "migrc": 90.0}), migrc_folios=folios)}
        assert summed_up(sweep, [BootResult(0, "ferry", outcomes)])["warnings"] == warnings


def test_runs_that_moved_nothing_are_told_on() -> None:
    sweep = made_up.plan()
    sweep = dataclasses.replace(sweep, configs=configs(Choice([], [1])))
    warning = f"no page of {WHERE} was moved in a run: the row of runs is off once more"
    for pages, warnings in ((0, [warning]), (7, [])):
        outcomes = {made_up.case(): made_up.outcome(made_up.lines({"off": 100.0, "runs": 50.0}), runs_moved=pages)}
        document = summed_up(sweep, [BootResult(0, "ferry", outcomes)])
        assert document["warnings"] == warnings and list(by_label(document)) == ["off", "runs"]


def test_rows_of_different_calls_are_not_compared() -> None:
    cases = (Case(4096, made_up.TOTAL, pages_per_call=1), Case(4096, made_up.TOTAL, order="random"))
    sweep = dataclasses.replace(made_up.plan(), cases=cases)
    outcomes = {case: made_up.outcome(made_up.lines({label: cost * (number + 1) for label, cost in COSTS.items()}))
                for number, case in enumerate(cases)}
    rows = [row for row in summed_up(sweep, [BootResult(0, "ferry", outcomes)])["rows"] if label(row) == "kernel"]
    assert [(row["pages_per_call"], row["order"]) for row in rows] == [(1, "sequential"), (256, "random")]
    ratios = [row["ratio_to_baseline"] for row in rows]
    assert all(ratio and ratio["median"] == pytest.approx(100 / 95, rel=0.05) for ratio in ratios)
