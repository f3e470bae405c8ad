# SPDX-License-Identifier: GPL-2.0
"""The suite that runs each benchmark once: what it asks of a document, and that its plans are the shortest."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_up import document

from ferry import boards
from ferry.bench import compaction, move_pages, stall, tiering, tlb
from ferry.bench import copy as bench_copy
from ferry.commands import bench
from ferry.errors import InfraError
from ferry.results import stats
from ferry.results.document import Document
from ferry.suites import bench_smoke
from ferry.suites.context import Context
from ferry.suites.result import Outcome, Result


def change(name: str) -> Callable[[Document], Any]:
    """What can be wrong with a document."""
    return {
        "nothing": lambda made: None,
        "no rows": lambda made: made["rows"].clear(),
        "a failure": lambda made: made["rows"][0]["failures"].append({"boot": 0, "round": 1, "reason": "it hung"}),
        "no helper": lambda made: made["rows"][0]["failures"].append(
            {"boot": 0, "round": 1, "reason": bench_copy.NO_HELPER}),
        "no helper at all": lambda made: made["rows"][0].update(
            samples=[], sample_ids=[], median=None,
            failures=[{"boot": 0, "round": 1, "reason": bench_copy.NO_HELPER}]),
        "no samples": lambda made: made["rows"][1].update(samples=[], sample_ids=[], median=None),
        "a zero": lambda made: made["rows"][0].update(median=0.0),
        "an empty phase": lambda made: made["rows"][0].update(median=0.0, phase="copy"),
        "no unit": lambda made: made["rows"][0].pop("unit"),
    }[name]


@pytest.mark.parametrize(("wrong", "said"), [
    ("nothing", ""), ("an empty phase", ""), ("no rows", "it has no rows"), ("a failure", "1 samples failed: it hung"),
    ("no helper", ""), ("no helper at all", "rows have no figure"),
    ("no samples", "rows have no figure"), ("a zero", "rows have no figure"), ("no unit", "not whole: it lacks unit"),
])
def test_a_document_that_is_not_whole_fails_the_suite(tmp_path: Path, wrong: str, said: str) -> None:
    made = copy.deepcopy(document())
    change(wrong)(made)
    result = bench_smoke._result(Context(boards.load("x86-numa"), tmp_path), "move_pages", lambda run_dir: made)
    assert (result.outcome is Outcome.PASSED) == (not said)
    assert said in result.reason
    if not said:
        assert "mtcopy" in (tmp_path / "bench-smoke/move_pages/table.txt").read_text()


def test_a_bench_that_cannot_run_is_a_failure_with_its_status(tmp_path: Path) -> None:
    def measure(run_dir: Path) -> Document:
        raise InfraError("no network")

    result = bench_smoke._result(Context(boards.load("x86-numa"), tmp_path), "tlb", measure)
    assert (result.outcome, result.status, result.reason) == (Outcome.FAILED, 3, "no network")


def test_each_benchmark_has_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench_smoke, "_result",
                        lambda context, name, measure: Result("s", name, Outcome.PASSED))
    found = bench_smoke.run(Context(boards.load("x86-numa"), tmp_path))
    sub = argparse.ArgumentParser().add_subparsers()
    bench.add_parser(sub)
    (kinds,) = [action for action in sub.choices["bench"]._actions if isinstance(action, argparse._SubParsersAction)]
    assert sorted(result.name for result in found) == sorted(kinds.choices)


def test_the_plans_are_valid_and_the_shortest_that_support_a_comparison() -> None:
    board = boards.load("x86-numa")
    args = {short.bench: bench_smoke.parsed(short) for short in bench_smoke.SHORT}
    for plan in (move_pages.plan_for(args[move_pages], board), stall.plan_for(args[stall], board)):
        assert (plan.samples, plan.boots) == (stats.MIN_SAMPLES, 1)
    compacted = compaction.plan_for(args[compaction], board)
    assert (compacted.samples, compacted.boots) == (stats.MIN_SAMPLES, 1)
    assert len(compacted.works) == len(compacted.chosen) == 1
    tiered = tiering.plan_for(args[tiering], boards.load("x86-tier"))
    assert (tiered.samples, tiered.boots, len(tiered.cases), len(tiered.chosen)) == (stats.MIN_SAMPLES, 1, 1, 1)
    counted = tlb.plan_for(args[tlb])
    assert (counted.samples, counted.boots, len(counted.works)) == (stats.MIN_SAMPLES, 2, 1)
    assert {config.kernel for config in counted.configs} == {"ferry"}
