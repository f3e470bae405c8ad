# SPDX-License-Identifier: GPL-2.0
"""`ferry compare`: what counts as a regression."""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path

import made_up
import pytest

from ferry.bench import copy as bench_copy
from ferry.commands import compare as verb
from ferry.errors import UsageError
from ferry.results import compare
from ferry.results.document import SCHEMA, Document

COSTS = {"off": 100.0, "kernel": 95.0, "mtcopy1": 98.0, "mtcopy2": 60.0}


def compared(before: Document, after: Document, folder: Path, threshold: float = 0.03, form: str = "json") -> int:
    """The exit status of `ferry compare` on two results."""
    paths = []
    for name, document in (("a", before), ("b", after)):
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(json.dumps([document]))
    before_path, after_path = map(str, paths)
    return verb.run(argparse.Namespace(before=before_path, after=after_path, threshold=threshold, format=form))


def verdicts(output: str) -> dict[str, str]:
    rows = json.loads(output)["comparisons"][0]["rows"]
    return {row["config"]: row["verdict"] for row in rows if row["folio_bytes"] == made_up.PAGE}


def test_a_run_is_no_worse_than_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = made_up.document()
    assert compared(document, document, tmp_path) == 0
    assert set(verdicts(capsys.readouterr().out).values()) == {"same"}


@pytest.mark.parametrize("kind", ["emulated", "native"])
def test_a_regression_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    worse = made_up.document({**COSTS, "mtcopy2": 90.0}, kind=kind)
    assert compared(made_up.document(COSTS, kind=kind), worse, tmp_path) == 1
    found = verdicts(capsys.readouterr().out)
    assert found["mtcopy 2"] == "regression" and found["kernel"] == "same"


def test_more_instructions_are_a_regression_and_fewer_are_not(tmp_path: Path) -> None:
    made = {cost: made_up.document({**COSTS, "kernel": cost}, kind="instructions", unit="instructions_per_page")
            for cost in (95.0, 120.0)}
    assert compared(made[95.0], made[120.0], tmp_path) == 1
    assert compared(made[120.0], made[95.0], tmp_path) == 0


def test_a_significant_loss_within_the_threshold_is_worse_but_passes(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse = made_up.document({**COSTS, "mtcopy2": 90.0})
    assert compared(made_up.document(COSTS), worse, tmp_path, threshold=0.5) == 0
    assert verdicts(capsys.readouterr().out)["mtcopy 2"] == "worse"


@pytest.mark.parametrize(("kind", "status"), [("emulated", 0), ("native", 0), ("instructions", 1)])
def test_a_boot_that_is_slower_throughout_is_a_regression_only_of_counts(tmp_path: Path, kind: str,
                                                                         status: int) -> None:
    slow = {name: 1.15 * cost for name, cost in COSTS.items()}
    assert compared(made_up.document(COSTS, kind=kind), made_up.document(slow, kind=kind), tmp_path) == status


def test_a_host_that_copies_more_slowly_throughout_is_no_regression(tmp_path: Path,
                                                                    capsys: pytest.CaptureFixture[str]) -> None:
    before = Document(schema=SCHEMA, bench="copy", board="uml", kind="native", baseline="memcpy", rows=[], meta={})
    bench_copy.fill(before, [bench_copy.Sample(method, threads, 2 << 20, 32 << 20, turn, ns + 100_000 * (turn % 3))
                             for method, threads, ns in (("memcpy", 1, 10_000_000), ("mtcopy", 2, 6_000_000))
                             for turn in range(22)])
    after = copy.deepcopy(before)
    for row in after["rows"]:
        row["samples"] = [0.87 * sample for sample in row["samples"]]
    assert compared(before, after, tmp_path) == 0
    (comparison,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert comparison["basis"] == "ratio to memcpy"
    assert [(row["config"], row["verdict"]) for row in comparison["rows"]] == [("mtcopy 2", "same")]
    after["rows"][1]["samples"] = [0.87 * sample for sample in after["rows"][1]["samples"]]
    assert compared(before, after, tmp_path) == 1


def test_a_row_that_vanished_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after = copy.deepcopy(made_up.document())
    after["rows"] = [row for row in after["rows"] if row["migrator"] != "kernel"]
    assert compared(made_up.document(), after, tmp_path) == 1
    assert verdicts(capsys.readouterr().out)["kernel"] == "missing"
    assert compared(after, made_up.document(), tmp_path) == 0


def test_auto_on_one_cpu_is_not_compared_with_auto_on_four(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [made_up.document(), made_up.document()]
    for threads, document in zip((1, 4), runs, strict=True):
        for row in document["rows"]:
            if row["migrator"] == "kernel":
                row.update(migrator="auto", threads=threads, channels=16)
    assert compared(*runs, tmp_path) == 1
    found = verdicts(capsys.readouterr().out)
    assert (found["auto 16, threads 1"], found["auto 16, threads 4"]) == ("missing", "new")


def test_a_busy_run_is_not_compared_with_an_idle_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    busy = copy.deepcopy(made_up.document())
    for row in busy["rows"]:
        row["workload"] = "anon, 4 hogs"
    assert compared(made_up.document(), busy, tmp_path) == 1
    found = [row["verdict"] for row in json.loads(capsys.readouterr().out)["comparisons"][0]["rows"]]
    assert set(found) == {"missing", "new"}


def test_a_row_without_a_good_sample_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after = copy.deepcopy(made_up.document())
    after["rows"][-2]["samples"], after["rows"][-2]["sample_ids"] = [], []
    assert compared(made_up.document(), after, tmp_path) == 1
    assert verdicts(capsys.readouterr().out)["mtcopy 2"] == "failed"


def test_a_row_whose_samples_mostly_failed_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Too few are left for an interval, and unknown would pass."""
    after = copy.deepcopy(made_up.document())
    row = after["rows"][-2]
    row["failures"] = [{"boot": 0, "round": 0, "reason": "no pages"} for _ in row["samples"][1:]]
    row["samples"], row["sample_ids"] = row["samples"][:1], row["sample_ids"][:1]
    assert compared(made_up.document(), after, tmp_path) == 1
    assert verdicts(capsys.readouterr().out)["mtcopy 2"] == "failed"


@pytest.mark.parametrize(("named", "failures"), [("mtcopy", 1), ("mtcopy", 0), ("off", 1)])
def test_a_row_that_lost_its_interval_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str], named: str,
                                                   failures: int) -> None:
    """However much slower it is: it would be unknown. A pair is lost, too, if the baseline's sample failed."""
    after = made_up.document({**COSTS, "mtcopy2": 600.0})
    for row in after["rows"]:
        if row["migrator"] == named:
            row["samples"], row["sample_ids"] = row["samples"][1:], row["sample_ids"][1:]
            row["failures"] = [{"boot": 0, "round": 0, "reason": "no pages"}] * failures
    assert compared(made_up.document(COSTS), after, tmp_path) == 1
    assert verdicts(capsys.readouterr().out)["mtcopy 2"] == "failed"


def test_a_row_that_never_has_an_interval_is_unknown_until_a_sample_fails(tmp_path: Path) -> None:
    few = made_up.document()
    for row in few["rows"]:
        row["samples"], row["sample_ids"] = row["samples"][:2], row["sample_ids"][:2]
    after = copy.deepcopy(few)
    assert compared(few, after, tmp_path) == 0
    after["rows"][-2]["failures"] = [{"boot": 0, "round": 2, "reason": "no pages"}]
    assert compared(few, after, tmp_path) == 1


def test_noise_is_the_same_and_too_few_samples_are_unknown() -> None:
    assert compare.verdict({"median": 0.8, "ci95": [0.6, 1.1]}, 0.03) == "same"
    assert compare.verdict({"median": 0.8, "ci95": None}, 0.03) == "unknown"
    assert compare.verdict({"median": 1.2, "ci95": [1.1, 1.3]}, 0.03) == "better"


def test_runs_of_different_benches_are_refused(tmp_path: Path) -> None:
    other = copy.deepcopy(made_up.document())
    other["board"] = "uml"
    with pytest.raises(UsageError, match="in common"):
        compared(made_up.document(), other, tmp_path)


@pytest.mark.parametrize(("one", "other"), [({"load": {"touch_ms": 3000}}, {"load": {"touch_ms": 1000}}),
                                            ({"max_bytes": 1 << 20}, {"max_bytes": None}), ({"cpus": 16}, {"cpus": 2}),
                                            ({"shared": True}, {"shared": False})])
def test_runs_with_different_settings_are_refused(one: dict[str, object], other: dict[str, object],
                                                  tmp_path: Path) -> None:
    before, after = (made_up.document() for _ in range(2))
    before["meta"]["config"], after["meta"]["config"] = one, other
    with pytest.raises(UsageError, match="settings in common"):
        compared(before, after, tmp_path)


def test_what_a_run_says_about_itself_is_shown_with_its_name(capsys: pytest.CaptureFixture[str],
                                                            tmp_path: Path) -> None:
    before, after = made_up.document(), made_up.document()
    before["warnings"] = ["the host was busy"]
    after["rows"][-2]["failures"] = [{"boot": 0, "round": turn, "reason": "no pages"} for turn in (10, 11)]
    assert compared(before, after, tmp_path, form="table") == 0
    printed = capsys.readouterr().out
    assert f"B, {tmp_path}/b.json, against A, {tmp_path}/a.json" in printed
    assert "\nA: the host was busy\nB: mtcopy 2, 4 KiB folios, 1 MiB at a time: 2 samples failed: no pages\n" in printed


def test_native_figures_of_different_cpus_are_marked() -> None:
    before, after = (made_up.document(kind="native") for _ in range(2))
    after["meta"]["host"] = {"cpu": "another"}
    assert compare.compare(before, after, 0.03)["warnings"] == ["measured on different CPUs: made up; another"]


def test_runs_of_a_baseline_alone_say_that_nothing_was_compared() -> None:
    alone = made_up.document(kind="native")
    alone["rows"] = [row for row in alone["rows"] if row["migrator"] == "off"]
    found = compare.compare(alone, alone, 0.03)
    assert not found["rows"] and found["warnings"] == [
        "nothing was compared: neither run has a row beside its baseline"]


def test_a_run_of_the_machine_itself_compares_with_one_of_any_board(tmp_path: Path,
                                                                    capsys: pytest.CaptureFixture[str]) -> None:
    local = copy.deepcopy(made_up.document())
    local["board"] = "local"
    assert compared(local, made_up.document(), tmp_path) == compared(made_up.document(), local, tmp_path) == 0
    assert "measured on x86-numa and on local, which may be different machines" in capsys.readouterr().out
