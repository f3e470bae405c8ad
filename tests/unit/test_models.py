# SPDX-License-Identifier: GPL-2.0
"""Models: what spin's output proves, and that the models name what the kernel's fault injection names."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ferry import boards, paths
from ferry.suites import migrc, models
from ferry.suites.context import Context
from ferry.suites.result import Outcome

COMPLETE = """\
reached 1

(Spin Version 6.5.2 -- 6 December 2019)
\t+ Partial Order Reduction

Full statespace search for:
\tnever claim         \t- (none specified)
\tassertion violations\t+
\tcycle checks       \t- (disabled by -DSAFETY)
\tinvalid end states\t+

State-vector 112 byte, depth reached 155, errors: 0
  2573145 states, stored

unreached in proctype drain
\tx.pml:3, state 2, "left = 0"
\tx.pml:5, state 4, "-end-"
\t(2 of 4 states)
unreached in init
\tx.pml:3, state 7, "left = 0"
\t(1 of 9 states)
"""
STATES = """\
\t\t /* PROC :init: */
\tcase 3: // STATE 7 - x.pml:3 - [left = 0] (0:0:1 - 1)
\tcase 4: // STATE 8 - x.pml:1 - [x = 1] (0:0:1 - 1)
\t\t /* PROC drain */
\tcase 5: // STATE 1 - x.pml:2 - [x = 2] (0:0:1 - 1)
\tcase 6: // STATE 2 - x.pml:3 - [left = 0] (0:0:1 - 1)
\tcase 7: // STATE 4 - x.pml:5 - [-end-] (0:0:0 - 1)
"""
SOURCE = ["x = 1", "x = 2", "left = 0", "", "}"]
TINY = """\
#include "experiment.h"
#define fail_one    1
#define see_end     1
#define see_nowhere 2
byte x;
init {
	choose_fault();
	x = 1;
	if
	:: should_fail(one) -> x = 2
	:: else
	fi;
	assert(x == 1);
	reached(end);
	if
	:: x == 3 -> reached(nowhere);
		x = 4
	:: else
	fi
}
"""


def context(tmp_path: Path) -> Context:
    return Context(boards.load("x86-numa"), tmp_path)


def test_only_a_complete_search_without_a_violation_proves_something() -> None:
    assert models.violation(COMPLETE) == "" and not models.caught(COMPLETE)
    violated = COMPLETE.replace("errors: 0", "errors: 1")
    for what in ("assertion violated  !(freed) (at depth 88)", "invalid end state (at depth 42)"):
        output = f"pan:1: {what}\nWarning: Search not completed\n{violated}"
        assert models.violation(output) == f"pan:1: {what}" and models.caught(output)


@pytest.mark.parametrize("output", [
    "error: max search depth too small\n" + COMPLETE,
    "Warning: Search not completed\n" + COMPLETE,
    "pan: reached -DMEMLIM bound\npan: out of memory\n" + COMPLETE,
    COMPLETE.replace("Full statespace search", "Bit statespace search"),
    COMPLETE.replace("Full statespace search", "Hash-Compact 4 search"),
    COMPLETE.replace("assertion violations\t+", "assertion violations\t- (disabled by -A flag)"),
    COMPLETE.replace("invalid end states\t+", "invalid end states\t- (disabled by never claim)"),
])
def test_an_incomplete_search_fails(output: str) -> None:
    assert models.violation(output) == "the search is not complete"
    assert not models.caught(output)


@pytest.mark.parametrize("output", ["", "Segmentation fault", COMPLETE.partition("State-vector")[0]])
def test_a_search_without_a_result_fails(output: str) -> None:
    assert models.violation(output) == "the search printed no result"
    assert not models.caught(output)


def test_a_line_that_no_process_reaches_is_named() -> None:
    assert models.dead(COMPLETE, STATES, SOURCE) == "no path reaches line 3"
    for_a_fault = [*SOURCE[:2], ":: should_fail(one) -> left = 0", *SOURCE[3:]]
    assert models.dead(COMPLETE, STATES, for_a_fault) == ""
    elsewhere = COMPLETE.replace('\tx.pml:3, state 7, "left = 0"\n', "")
    assert models.dead(elsewhere, STATES, SOURCE) == ""


def test_a_model_names_its_faults_and_states() -> None:
    text = "#define fail_one    1   /* a step */\n#define see_end\t1\n#define fail_two 2\n#define failing 4\n"
    model = models.declared("x", text)
    assert [(fault.name, fault.number) for fault in model.faults] == [("one", 1), ("two", 2)]
    assert [state.name for state in model.states] == ["end"]


def test_without_spin_each_model_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(models.shutil, "which", lambda name: None if name == "spin" else f"/usr/bin/{name}")
    found = models.run(context(tmp_path))
    assert [(result.name, result.outcome) for result in found] == [(name, Outcome.SKIPPED) for name in models.MODELS]
    assert {result.reason for result in found} == {"spin not installed"}


@pytest.mark.skipif(not (shutil.which("spin") and shutil.which("gcc")), reason="spin or gcc not installed")
def test_a_tiny_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "models"
    home.mkdir()
    shutil.copy(paths.repo_root() / "models/experiment.h", home)
    (home / "tiny.pml").write_text(TINY)
    monkeypatch.setattr(models, "MODELS", ("tiny",))
    monkeypatch.setattr(paths, "repo_root", lambda: tmp_path)
    logs = tmp_path / "logs"
    logs.mkdir()
    results = models.run(context(logs))
    found = {result.name.removeprefix("tiny: "): (str(result.outcome), result.reason) for result in results}
    assert found == {
        "holds": ("failed", "no path reaches line 17"),
        "end is reached": ("passed", ""),
        "nowhere is reached": ("failed", "no path reaches it"),
        "fault one is caught": ("passed", ""),
    }


@pytest.mark.parametrize("name", models.MODELS)
def test_names_and_numbers_of_a_model(name: str) -> None:
    text = (paths.repo_root() / "models" / f"{name}.pml").read_text()
    model = models.declared(name, text)
    declared = [*model.faults, *model.states]
    for kind, macros in (("fail", r"should_fail|migrc_\w+"), ("see", "reached|reached_if")):
        numbers = [each.number for each in declared if each.kind == kind]
        assert numbers == list(range(1, len(numbers) + 1)) and re.search(rf"\b({macros})\(", text)
    readme = (paths.repo_root() / "models/README.md").read_text()
    processes = re.findall(r"^proctype (\w+)", text, re.MULTILINE)
    assert processes and [process for process in processes if f"`{process}`" not in readme] == []


def test_the_models_have_the_faults_of_the_kernel() -> None:
    def names(name: str, kind: str) -> set[str]:
        text = (paths.repo_root() / "models" / f"{name}.pml").read_text()
        model = models.declared(name, text)
        return {each.name for each in (*model.faults, *model.states) if each.kind == kind}

    assert set(migrc.FAULTS) <= names("migrc", "fail")
    testdma = (paths.repo_root() / "kernel/overlay/drivers/ferry/dcbm/tests/testdma.c").read_text()
    table = re.search(r"testdma_names\[\] = \{(.*?)\}", testdma, re.DOTALL)
    assert table and set(re.findall(r'"(\w+)"', table[1])) <= names("dcbm", "see")
