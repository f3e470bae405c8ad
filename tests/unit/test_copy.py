# SPDX-License-Identifier: GPL-2.0
"""The native copy bench: made-up consoles of the KUnit suite."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from ferry.bench import copy, experiment, guest_samples
from ferry.boards import Board, load
from ferry.commands import cli
from ferry.errors import InfraError
from ferry.kernel.build import Kernel
from ferry.paths import CONSOLE
from ferry.results.document import SCHEMA, Document, Row, label


def console(ns: dict[tuple[str, int], int], rounds: int = 10) -> list[str]:
    """Sample lines as UML prints them, among others; the figures are made up."""
    lines = ["KTAP version 1", "    # Subtest: ferry_copy_bench"]
    for turn in range(rounds):
        for (method, threads), base in ns.items():
            sample = {"method": method, "threads": threads, "folio_bytes": 2 << 20, "total_bytes": 64 << 20,
                      "round": turn, "ns": base + turn}
            lines.append(f"[    1.{turn:06}]     # copy_bench: ferry_copy_sample: {json.dumps(sample)}")
    return [*lines, "ok 1 ferry_copy_bench"]


def filled(lines: list[str]) -> dict[str, Row]:
    document = Document(schema=SCHEMA, bench="copy", board="uml", kind="native", baseline="memcpy", rows=[], meta={})
    copy.fill(document, copy.parse(lines))
    return {label(row): row for row in document["rows"]}


NS = {("memcpy", 1): 10_000_000, ("threads", 2): 5_000_000, ("mtcopy", 1): 10_000_000, ("mtcopy", 2): 8_000_000,
      ("mtcopy_always", 2): 4_000_000}


def test_each_method_stands_beside_both_limits() -> None:
    rows = filled(console(NS))
    assert list(rows) == ["memcpy", "threads 2", "mtcopy 1", "mtcopy 2", "mtcopy_always 2"]
    assert rows["memcpy"]["median"] == pytest.approx((64 << 20) / 10_000_000, rel=1e-3)
    assert rows["memcpy"]["ratio_to_baseline"] is None
    two = rows["mtcopy 2"]
    assert two["ratio_to_baseline"] is not None and two["ratio_to_threads"] is not None
    assert two["ratio_to_baseline"]["median"] == pytest.approx(1.25, rel=1e-3)
    assert two["ratio_to_threads"]["median"] == pytest.approx(0.625, rel=1e-3)
    assert two["migrator"] == "mtcopy" and rows["threads 2"]["migrator"] == "off"


def test_without_plain_threads_of_the_same_number_there_is_no_such_ratio() -> None:
    assert filled(console(NS))["mtcopy 1"]["ratio_to_threads"] is None


def test_a_round_that_one_method_lacks_is_a_failure() -> None:
    lost = ('"mtcopy"', '"threads": 2', '"round": 4')
    row = filled([line for line in console(NS) if not all(part in line for part in lost)])["mtcopy 2"]
    assert len(row["samples"]) == 9
    assert row["failures"] == [{"boot": 0, "round": 4, "reason": "no sample"}]


def test_a_copy_of_one_thread_alone_is_no_sample_of_two() -> None:
    """The suite prints 0 ns if mtcopy had no helper."""
    lines = [re.sub('("mtcopy", "threads": 2.*"round": 4, "ns": )[0-9]+', r"\g<1>0", line) for line in console(NS)]
    row = filled(lines)["mtcopy 2"]
    assert len(row["samples"]) == 9 and [4] not in [at[1:] for at in row["sample_ids"]]
    assert row["failures"] == [{"boot": 0, "round": 4, "reason": "no other CPU was idle"}]


def test_other_lines_are_no_samples() -> None:
    assert copy.parse(["", "# ferry_copy_samples: none", "ok 1 ferry_copy_sample"]) == []


@pytest.mark.parametrize(("results", "message"), [
    (["    ok 1 ferry_copy_sample", "[    1.12] ok 1 ferry_copy_bench"], None),
    (["    not ok 1 ferry_copy_sample", "[    1.12] not ok 1 ferry_copy_bench"], "ferry_copy_sample failed"),
    ([], "did not end"),
])
def test_samples_of_a_suite_that_did_not_pass_are_refused(results: list[str], message: str | None, tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    def run(boots: Sequence[experiment.Boot], run_dir: Path, title: str) -> None:
        share = experiment.share_of(run_dir, boots[0].name)
        share.mkdir(parents=True)
        (share / CONSOLE).write_text("\n".join(["sample: {}", *results]))

    monkeypatch.setattr(experiment, "run", run)
    kernel = Kernel(tmp_path, {}, tmp_path, "key", tmp_path, "7.3.4", tmp_path)
    with nullcontext() if message is None else pytest.raises(InfraError, match=message):
        assert guest_samples.kunit_lines(load("uml"), kernel, copy.SUITE, "sample", tmp_path)[0] == "sample: {}"


def test_the_verb_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(copy.build, "build", lambda board, kernel: SimpleNamespace(key=kernel, image=tmp_path, base=""))
    monkeypatch.setattr(copy.guest_samples, "kunit_lines", lambda *words: console(NS))
    assert cli.main(["bench", "copy", "--format", "json", "--out", str(tmp_path / "run")]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]


def test_the_guest_has_the_cpus_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    booted: list[int] = []

    def kunit_lines(board: Board, *words: object) -> list[str]:
        booted.append(board.cpus)
        return console(NS)

    monkeypatch.setattr(copy.build, "build", lambda board, kernel: SimpleNamespace(key=kernel, image=tmp_path, base=""))
    monkeypatch.setattr(copy.guest_samples, "kunit_lines", kunit_lines)
    for number, words in enumerate(([], ["--cpus", "16"])):
        assert cli.main(["bench", "copy", *words, "--out", str(tmp_path / str(number))]) == 0
    assert booted == [2, 16]


@pytest.mark.parametrize("number", ["1", "17", "0", "-2", "many"])
def test_a_number_of_cpus_that_no_kernel_has_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        cli.main(["bench", "copy", f"--cpus={number}"])
    assert error.value.code == 2 and "is no number from 2 to 16" in capsys.readouterr().err
