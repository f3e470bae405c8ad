# SPDX-License-Identifier: GPL-2.0
"""What a result looks like in each format."""

from __future__ import annotations

import csv
import io
import json
import re
import sys

import made_up
import pytest

import golden
from ferry.results import formats, table
from ferry.results.document import Document


@pytest.fixture
def document() -> Document:
    """With a failed sample and a skipped size, which must show."""
    made = made_up.document()
    made["rows"][2]["failures"] = [{"boot": 0, "round": 3, "reason": "3 of 512 page moves failed"}]
    made["skipped"] = [{"folio_bytes": 65536, "reason": "movebench exited with 4: no 64 KiB folios"}]
    return made


@pytest.mark.parametrize("form", formats.FORMATS)
def test_golden(document: Document, form: str) -> None:
    golden.check(f"move_pages.{form}", formats.render(table.output([document]), form))


def test_json_is_the_document_alone(document: Document) -> None:
    assert json.loads(formats.render(table.output([document]), "json")) == document


def test_csv_keeps_every_sample(document: Document) -> None:
    rows = list(csv.DictReader(io.StringIO(formats.render(table.output([document]), "csv"))))
    assert [[float(sample) for sample in row["samples"].split()] for row in rows] == [
        row["samples"] for row in document["rows"]]


def test_a_result_is_never_cut_to_a_narrow_pipe(document: Document) -> None:
    document["rows"][0]["failures"] = [{"boot": 0, "round": 1, "reason": "x" * 60 + "end"}]
    assert "end" in formats.render(table.output([document]), "table")


@pytest.mark.parametrize(("count", "name"), [(512, "512 B"), (4096, "4 KiB"), (3 << 19, "1.5 MiB"), (1 << 30, "1 GiB")])
def test_size_names(count: int, name: str) -> None:
    assert formats.size_name(count) == name


def test_the_widest_table_is_whole_in_a_pipe() -> None:
    cell = ["12,345 ±678", "1.720 [1.650, 1.800]"]
    grid = formats.Grid("bench memmap", ["", *["dedup, whole call"] * 15], [[["auto"], *[cell] * 15]])
    assert "…" not in formats.as_table(grid)


def as_table(grid: formats.Grid, monkeypatch: pytest.MonkeyPatch, *, columns: int = 80, term: str = "xterm",
             encoding: str = "utf-8") -> list[str]:
    """The lines in a terminal, without their styles."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", term)
    return re.sub(r"\x1b\[[\d;]*m", "", formats.as_table(grid)).splitlines()


WIDE = formats.Grid("title", ["migrator", "reason", *[f"column\n{number}" for number in range(7)]],
                    [[["one"], [reason], *[[f"{base + number:,}"] for number in range(7)]]
                     for reason, base in (("demotion", 111111), ("syscall_or_cpuset", 222222))], ["a note"], keys=2)


@pytest.mark.parametrize("columns", [40, 80])
def test_no_figure_is_cut_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """The columns that do not fit come below, with the keys again."""
    lines = as_table(WIDE, monkeypatch, columns=columns)
    assert max(map(len, lines)) <= columns and (lines[0], lines[-1]) == ("title", "a note")
    demotions = [line.split() for line in lines if "demotion" in line]
    assert len(demotions) > 1 and all(words[:2] == ["one", "demotion"] for words in demotions)
    assert [word for words in demotions for word in words[2:]] == [f"{111111 + number:,}" for number in range(7)]


def test_a_column_that_is_too_wide_alone_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = as_table(formats.Grid("t", ["", "x"], [[["a"], ["0123456789" * 5]]]), monkeypatch, columns=40)
    assert max(map(len, lines)) <= 40 and sum(len(re.findall(r"\d", line)) for line in lines) == 50


def test_a_dumb_terminal_is_as_wide_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = as_table(WIDE, monkeypatch, columns=150, term="dumb")
    assert len([line for line in lines if "demotion" in line]) == 1


def test_a_frame_of_ascii_where_stdout_has_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = as_table(WIDE, monkeypatch, columns=150, encoding="iso-8859-1")
    assert "\n".join(lines).isascii() and any(line.startswith("| one  ") for line in lines)
    assert any("│" in line for line in as_table(WIDE, monkeypatch, columns=150))


def test_a_table_with_stock_says_what_that_is() -> None:
    made = made_up.document()
    made["meta"]["base"] = "Linux 7.3.4 with Debian's patches (7.3.4-1)"
    assert not [note for note in table.notes(made) if note.startswith("stock")]
    made["baseline"] = "stock"
    assert "stock: Linux 7.3.4 with Debian's patches (7.3.4-1), without ours" in table.notes(made)
