# SPDX-License-Identifier: GPL-2.0
"""What the guest is told to run and what is made of its output."""

from __future__ import annotations

import shlex
from pathlib import Path

import made_up
import pytest

from ferry.bench import movebench
from ferry.bench.plan import STOCK, Case, Choice, Config, configs


def test_every_configuration_is_taken_in_turn_by_one_movebench() -> None:
    case = Case(65536, 1 << 20, pages_per_call=4, order="random")
    words = movebench.arguments(made_up.plan(hogs=2), made_up.plan().configs, case)
    chosen = [words[at + 1] for at, word in enumerate(words) if word == "--config"]
    assert chosen == ["off:runs=0,migrator=off", "kernel:runs=0,migrator=kernel",
                      "mtcopy1:mtcopy/threads=1,runs=0,migrator=mtcopy",
                      "mtcopy2:mtcopy/threads=2,runs=0,migrator=mtcopy"]
    assert words[words.index("--folio") + 1] == "64k"
    assert words[words.index("--bytes") + 1] == "1024k"
    assert words[words.index("--cpu-hogs") + 1] == "2"
    assert words[words.index("--pages-per-call") + 1] == "4" and words[words.index("--order") + 1] == "random"
    assert "--pages-per-call" not in movebench.arguments(made_up.plan(), made_up.plan().configs, made_up.case())
    assert "--unmeasured" not in words
    words = movebench.arguments(made_up.plan(unmeasured=1), made_up.plan().configs, case)
    assert words[words.index("--unmeasured") + 1] == "1"


def test_stock_writes_no_setting() -> None:
    assert STOCK.argument == "stock:"


def test_stores_make_rows_of_their_own() -> None:
    chosen = configs(Choice(["mtcopy"], [2], ["never", "always"], runs=["off"]))
    assert [one.label for one in chosen] == ["off", "mtcopy2-never", "mtcopy2-always"]
    assert chosen[2].argument == "mtcopy2-always:mtcopy/threads=2,mtcopy/nontemporal=always,runs=0,migrator=mtcopy"


def test_script_quotes_its_paths_and_fails_on_a_module_that_does_not_load() -> None:
    program, module = Path("/a dir/movebench"), Path("/a dir/ferry_mtcopy.ko")
    text = movebench.script(program, made_up.plan((4096, 2 << 20)), (STOCK,), [["insmod", str(module)]])
    assert f"insmod {shlex.quote(str(module))} || exit 3" in text
    assert text.count(shlex.quote(str(program))) == 2
    assert '"$FERRY_SHARE"/2m.status' in text


def test_warm_ups_are_no_samples() -> None:
    found = list(movebench.samples(made_up.lines({"off": 100.0}, count=10)))
    assert len(found) == 10


def test_a_sample_covers_both_directions() -> None:
    sample = movebench.Sample("off", 1, ns=2000, moved=20, failed=0, bytes=81920)
    assert sample.value("gbps") == pytest.approx(40.96)
    assert sample.value("instructions_per_page") == 100


def test_a_line_cut_short_by_a_dying_guest_is_not_a_sample() -> None:
    text = made_up.lines({"off": 100.0})
    cut = text[: text.rindex('{"event": "sample"') + 40]
    assert len(list(movebench.samples(cut))) == 9


def test_a_sample_with_pages_left_behind_is_a_failure() -> None:
    result = made_up.outcome(made_up.lines({"off": 100.0}, pages_failed=3, pages_moved=509))
    good, failures = movebench.sort_out(result, Config("off", "ferry", "off"), made_up.plan(), 0)
    assert len(good) == 9
    assert [failure["reason"] for failure in failures] == ["3 of 512 page moves failed"]


def test_a_movebench_that_failed_has_no_good_sample_however_many_came() -> None:
    result = made_up.outcome(made_up.lines({"off": 100.0}, count=7), status=1, stderr="node 1: no memory\n")
    good, failures = movebench.sort_out(result, Config("off", "ferry", "off"), made_up.plan(), 2)
    assert good == [] and len(failures) == 10
    assert {failure["reason"] for failure in failures} == {"movebench exited with 1: node 1: no memory"}
    assert {failure["boot"] for failure in failures} == {2}


def test_a_sample_that_never_came_is_a_failure() -> None:
    result = made_up.outcome(made_up.lines({"off": 100.0}, count=9))
    good, failures = movebench.sort_out(result, Config("off", "ferry", "off"), made_up.plan(), 0)
    assert len(good) == 9
    assert failures == [{"boot": 0, "round": 9, "reason": "movebench printed no such sample"}]


def test_an_outcome_is_read_back_from_the_share(tmp_path: Path) -> None:
    made_up.leave(tmp_path, 4096, made_up.lines({"off": 100.0}), mtcopy_folios=12)
    result = movebench.outcome(tmp_path, made_up.case())
    assert result.status == 0 and len(result.samples) == 10
    assert result.counters == {"mtcopy/folios": 12}


def test_a_guest_that_died_left_nothing(tmp_path: Path) -> None:
    result = movebench.outcome(tmp_path, made_up.case())
    assert result.status is None and result.samples == []
    assert result.reason == "the guest died"
