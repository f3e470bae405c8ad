# SPDX-License-Identifier: GPL-2.0
"""Runs: published in one step, found again, removed without harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import made_up
import pytest

from ferry.errors import UsageError
from ferry.results import runs


@pytest.fixture(autouse=True)
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(runs, "runs_dir", lambda: tmp_path / "runs")
    return tmp_path / "runs"


def test_a_finished_run_is_the_latest(in_tmp: Path) -> None:
    run = runs.create("move_pages", "x86-numa")
    runs.finish(run, [made_up.document()])
    assert (in_tmp / "latest").resolve() == run
    assert json.loads((run / "meta.json").read_text())["command"] == "ferry <made up>"
    assert runs.load("latest") == runs.load(run.name) == runs.load(str(run / "result.json")) == [made_up.document()]


def test_two_runs_of_one_second_do_not_meet() -> None:
    assert runs.create("copy", "uml") != runs.create("copy", "uml")


def test_an_error_before_anything_was_kept_leaves_no_directory(in_tmp: Path) -> None:
    with pytest.raises(KeyboardInterrupt), runs.created("copy", "uml"):
        raise KeyboardInterrupt
    assert runs.names() == []
    with pytest.raises(KeyboardInterrupt), runs.created("copy", "uml") as run:
        (run / "console.log").write_text("made up\n")
        raise KeyboardInterrupt
    assert runs.names() == [run.name]


def test_an_unfinished_run_is_listed_as_such_and_not_taken_for_whole(in_tmp: Path) -> None:
    run = runs.create("copy", "uml")
    assert runs.state(run.name)["finished"] is False
    assert not (in_tmp / "latest").exists()
    with pytest.raises(UsageError, match="did not finish"):
        runs.load(run.name)


def test_a_run_elsewhere_is_kept_there_and_not_overwritten(tmp_path: Path, in_tmp: Path) -> None:
    run = runs.create("copy", "uml", tmp_path / "mine")
    runs.finish(run, [made_up.document()])
    assert run == tmp_path / "mine" and not (in_tmp / "latest").exists()
    with pytest.raises(UsageError, match="already holds"):
        runs.create("copy", "uml", tmp_path / "mine")


def test_removing_the_latest_takes_the_link_along(in_tmp: Path) -> None:
    run = runs.create("copy", "uml")
    runs.finish(run, [made_up.document()])
    runs.remove("latest")
    assert not run.exists() and not (in_tmp / "latest").is_symlink()


@pytest.mark.parametrize("name", ["", ".", "..", "../mine", "/", "nothing"])
def test_nothing_but_a_run_is_ever_removed(tmp_path: Path, in_tmp: Path, name: str) -> None:
    in_tmp.mkdir()
    (tmp_path / "mine").mkdir()
    with pytest.raises(UsageError):
        runs.remove(name)
    assert (tmp_path / "mine").is_dir() and in_tmp.is_dir()


def test_a_run_elsewhere_has_a_path_that_holds_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert runs.create("copy", "uml", Path("mine")) == tmp_path / "mine"


def test_a_run_that_broke_off_is_not_mixed_with_another(tmp_path: Path) -> None:
    (tmp_path / "mine/raw").mkdir(parents=True)
    with pytest.raises(UsageError, match="already holds"):
        runs.create("copy", "uml", tmp_path / "mine")


@pytest.mark.parametrize(("key", "of_row"), [("board", False), ("meta", False), ("rows", False), ("kernel", True)])
def test_a_result_that_is_not_whole_is_refused_by_name(tmp_path: Path, key: str, of_row: bool) -> None:
    path = tmp_path / "result.json"
    document: Any = made_up.document()
    del (document["rows"][1] if of_row else document)[key]
    path.write_text(json.dumps(document))
    with pytest.raises(UsageError, match=key if key != "rows" else "not a benchmark"):
        runs.load(str(path))


OTHER_SCHEMA = '[{"schema": 9, "bench": 0, "rows": 0, "baseline": 0}]'


@pytest.mark.parametrize("content", ["{", "[1]", '{"schema": 1}', OTHER_SCHEMA])
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(UsageError):
        runs.load(str(path))
