# SPDX-License-Identifier: GPL-2.0
"""The age of the cache's entries: recorded at use, listed, and what prune removes and what it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ferry import cache, paths
from ferry.commands import cli

SRC = Path(paths.__file__).parents[1]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path))
    return tmp_path


def entry(home: Path, name: str, days: float, size: int = 0) -> Path:
    """An entry that was last used so many days ago."""
    made = home / name
    made.mkdir(parents=True)
    (made / "content").write_bytes(b"x" * size)
    os.utime(made, (0, time.time() - days * 86400))
    return made


def test_use_makes_young_and_says_what_is_there(home: Path) -> None:
    kernel = entry(home, "kernels/k", 40)
    assert [round(one.age_days) for one in cache.entries()] == [40]
    assert paths.use(kernel)
    assert [round(one.age_days) for one in cache.entries()] == [0]
    assert not paths.use(home / "kernels/none")


def test_prune_removes_what_is_old_and_only_that(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, young = entry(home, "kernels/old", 31, 2_000_000), entry(home, "objects/s/young", 29)
    tree = entry(home, "trees/s/ferry", 31)
    (home / "source.lock").touch()
    os.utime(home / "source.lock", (0, 0))
    assert cli.main(["cache", "prune", "--older-than", "30", "--dry-run"]) == 0
    said = capsys.readouterr()
    assert said.out.split() == ["trees", "s/ferry", "0", "MB", "31", "days", "kernels", "old", "2", "MB", "31", "days"]
    assert "would remove 2 entries" in said.err
    assert old.is_dir()
    assert cli.main(["cache", "prune", "--older-than", "30"]) == 0
    assert "removed 2 entries" in capsys.readouterr().err
    assert not old.exists() and not tree.exists() and not list((home / "kernels").iterdir())
    assert young.is_dir() and (home / "source.lock").is_file()


HOLDER = """
import sys
from pathlib import Path
from ferry import paths
assert paths.use(Path(sys.argv[1]))
print("used", flush=True)
sys.stdin.read()
"""


def test_what_another_process_uses_is_left_until_it_ends(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = entry(home, "kernels/k", 0)
    command = [sys.executable, "-c", HOLDER, str(kernel)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": str(SRC)}) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "used\n"
        os.utime(kernel, (0, 0))
        cli.main(["cache", "prune", "--older-than", "1", "--dry-run"])
        cli.main(["cache", "prune", "--older-than", "1"])
        assert capsys.readouterr().err.count("0 entries, 0.0 GB; 1 are in use") == 2
        assert kernel.is_dir()
        cli.main(["cache", "--format", "json"])
        (listed,) = json.loads(capsys.readouterr().out)["entries"]
        assert (listed["kind"], listed["entry"], listed["in_use"]) == ("kernels", "k", True)
        holder.communicate("")
    cli.main(["cache", "prune", "--older-than", "1"])
    assert not kernel.exists()


def test_what_is_being_made_is_in_use_and_what_was_left_half_made_is_pruned(home: Path) -> None:
    with paths.publish(home / "kernels/k") as scratch:
        os.utime(scratch, (0, 0))
        (half,) = cache.entries()
        assert half.path == scratch and not cache.remove(half)
    assert cache.entries()[0].age_days < 1
    os.utime(home / "kernels/k", (0, 0))
    assert not cache.remove(cache.entries()[0])
    left = entry(home, "kernels/.k.abcdef", 3)
    assert cache.remove(next(one for one in cache.entries() if one.path == left))


def test_an_entry_made_again_is_used_again(home: Path) -> None:
    kernel = entry(home, "kernels/k", 5)
    assert paths.use(kernel)
    kernel.rename(home / "gone")
    assert not paths.use(kernel)
    entry(home, "kernels/k", 5)
    assert paths.use(kernel) and cache.in_use(cache.entries()[0])


def test_a_shared_file_counts_once(home: Path) -> None:
    source, tree = entry(home, "source/s", 1, 1 << 20), entry(home, "trees/s/ferry", 1)
    os.link(source / "content", tree / "same")
    sizes = dict(zip([one.kind for one in cache.entries()], cache.sizes(cache.entries()), strict=True))
    assert sizes["source"] >= 1 << 20 > 16384 >= sizes["trees"]


def test_an_age_below_nothing_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cache", "prune", "--older-than", "-1"]) == 2
    assert "no number of days" in capsys.readouterr().err
