# SPDX-License-Identifier: GPL-2.0
"""What a result looks like in each format."""

from __future__ import annotations

import csv
import io
import json

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


def test_a_table_with_stock_says_what_that_is() -> None:
    made = made_up.document()
    made["meta"]["base"] = "Linux 7.3.4 with Debian's patches (7.3.4-1)"
    assert not [note for note in table.notes(made) if note.startswith("stock")]
    made["baseline"] = "stock"
    assert "stock: Linux 7.3.4 with Debian's patches (7.3.4-1), without ours" in table.notes(made)
