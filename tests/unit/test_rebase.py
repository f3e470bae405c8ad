# SPDX-License-Identifier: GPL-2.0
"""The series on another base: what conflicts, and the way from a conflict back to kernel/series."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_kernel import MIGRATE, PATCH_NAME, add_series, make_clone, make_tree, write

from ferry.commands import cli
from ferry.errors import UsageError
from ferry.series import gitrepo, patches, rebase
from ferry.series.source import Source

FAR = MIGRATE.replace("line 1\n", "line 0\nline 1\n")
NEAR = FAR.replace("line 10\n", "another 10\n")


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Source:
    add_series(make_clone(monkeypatch, tmp_path))
    return Source(make_tree(tmp_path / "old"), "7.3.4", "old")


def other(tmp_path: Path, migrate: str) -> Source:
    return Source(make_tree(tmp_path / "new", version="7.3.9", migrate=migrate), "7.3.9", "new")


def conflicts(old: Source, new: Source, repo: Path) -> list[tuple[str, dict[str, int]]]:
    rebase.prepare(old, new, repo)
    return [(merge.series, merge.conflicts) for merge in rebase.merges(repo)]


def test_a_moved_hunk_is_no_conflict(old: Source, tmp_path: Path) -> None:
    found = conflicts(old, other(tmp_path, FAR), tmp_path / "repo")
    assert found == [("hook", {}), ("more", {}), ("lone", {})]


def test_each_conflict_is_shown_with_its_file(old: Source, tmp_path: Path) -> None:
    """The patch after one that conflicts is judged as if that were resolved."""
    new = other(tmp_path, NEAR)
    (new.path / "mm/other.c").unlink()
    assert conflicts(old, new, tmp_path / "repo") == [
        ("hook", {"mm/migrate.c": 1}), ("more", {}), ("lone", {"mm/other.c": 1})]


def test_a_file_that_the_new_base_has_too_conflicts(old: Source, tmp_path: Path) -> None:
    new = other(tmp_path, MIGRATE)
    write(new.path, {"mm/ferry/core.c": "theirs\n"})
    assert conflicts(old, new, tmp_path / "repo")[0] == ("hook", {"mm/ferry/core.c": 1})


def test_what_was_resolved_is_imported(old: Source, tmp_path: Path) -> None:
    new, repo = other(tmp_path, NEAR), tmp_path / "repo"
    rebase.prepare(old, new, repo)
    assert rebase.start(repo)
    assert "<<<<<<<" in (repo / "mm/migrate.c").read_text()
    (repo / "mm/migrate.c").write_text(NEAR.replace("another 10\n", "another 10\nferry_hook();\n"))
    gitrepo.git(repo, "add", "-A")
    gitrepo.git(repo, "-c", "core.editor=true", "rebase", "--continue")
    gitrepo.import_tree(repo, new)
    assert [patch.name for patch in patches.find("hook").patches] == [PATCH_NAME]
    assert " another 10" in patches.find("hook").patches[0].text
    assert conflicts(new, new, tmp_path / "again") == [("hook", {}), ("more", {}), ("lone", {})]


def test_the_verb_exits_with_1_and_leaves_a_tree(old: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("ferry.series.source.default", lambda: old)
    monkeypatch.setenv("FERRY_SOURCE", str(other(tmp_path, NEAR).path))
    assert cli.main(["series", "rebase", str(tmp_path / "tree")]) == 1
    said = capsys.readouterr()
    assert "CONFLICT  hook 0001-mm-ferry-hook-the-ferry-in.patch\n          mm/migrate.c: 1 hunk\n" in said.out
    assert "1 of 3 patches conflict with Linux 7.3.9" in said.out
    assert f"series import {tmp_path / 'tree'}" in said.err
    assert "<<<<<<<" in (tmp_path / "tree/mm/migrate.c").read_text()


def test_the_same_kernel_is_no_other_base(old: Source, monkeypatch: pytest.MonkeyPatch,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("ferry.series.source.default", lambda: old)
    assert cli.main(["series", "rebase"]) == 2
    assert "stand on this kernel already" in capsys.readouterr().err


def test_a_directory_with_files_is_spared(old: Source, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not empty"):
        rebase.prepare(old, old, old.path)
