# SPDX-License-Identifier: GPL-2.0
"""`ferry bench memmap`: what the kernel's lines become, which candidate is the limit, which ratios are drawn."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from ferry import boards
from ferry.bench import memmap, memmap_guest, memmap_native
from ferry.errors import UsageError
from ferry.results import table
from ferry.results.document import SCHEMA, Document, Row
from ferry.vm import qemu


def line(path: str, ns: int, turn: int, layout: str = "order0", threads: int = 1, ranges: int = 1) -> str:
    sample = {"path": path, "layout": layout, "round": turn, "threads": threads, "ranges": ranges, "pages": 1000,
              "struct_page_bytes": 64, "ns": ns}
    return f"[   1.0]     # memmap_bench_order0: ferry_memmap_sample: {json.dumps(sample)}"


def native(lines: list[str]) -> Document:
    document = Document(schema=SCHEMA, bench="memmap", board="uml", kind="native", baseline="full", rows=[], meta={})
    memmap_native.fill(document, memmap_native.parse(lines))
    return document


def rows(document: Document, path: str) -> list[Row]:
    return [row for row in document["rows"] if row.get("path") == path]


def test_native_rows_their_limit_and_their_ratios() -> None:
    made = native([line(path, ns + turn, turn) for turn in range(10)
                   for path, ns in (("full", 10000), ("nontemporal", 3000), ("limit_registers", 2800),
                                    ("limit_string", 6000))])
    (full,), (nontemporal,), (limit,) = rows(made, "full"), rows(made, "nontemporal"), rows(made, "limit")
    assert limit["method"] == "registers" and not rows(made, "limit_string")
    assert full["unit"] == "ns_per_page" and full["median"] == pytest.approx(10, rel=1e-2)
    assert full["ratio_to_baseline"] is None and full["layout"] == "order0"
    assert nontemporal["ratio_to_baseline"]
    assert nontemporal["ratio_to_baseline"]["median"] == pytest.approx(3.33, rel=1e-2)
    assert nontemporal["ratio_to_limit"]
    assert nontemporal["ratio_to_limit"]["median"] == pytest.approx(0.933, rel=1e-2)
    assert "ratio_to_limit" not in limit


def test_a_sample_of_several_ranges_counts_all_their_pages() -> None:
    made = native([line("full", 5000, 0, ranges=8)])
    (full,) = rows(made, "full")
    assert full["samples"] == [5.0] and full["total_bytes"] == 125 * 4096
    assert table.output([made]).grids[0].columns[1].endswith("500 KiB at a time")


def test_first_bindings_are_compared_with_each_other_only() -> None:
    made = native([line(path, ns, turn, threads=threads) for turn in range(10)
                   for path, ns, threads in (("full", 100, 1), ("first_full", 400, 1), ("first_parallel", 200, 2))])
    (parallel,) = rows(made, "parallel")
    assert parallel["threads"] == 2 and parallel["ratio_to_baseline"] and parallel["ratio_to_baseline"]["median"] == 2
    assert "first" in table.output([made]).grids[0].columns[1] + table.output([made]).grids[0].columns[2]


def test_a_sample_of_no_time_is_a_failed_one() -> None:
    made = native([line("full", 0, 0), line("full", 10, 1)])
    assert len(made["rows"][0]["failures"]) == 1 and len(made["rows"][0]["samples"]) == 1


def test_native_has_no_stock(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        memmap.bench(argparse.Namespace(board="uml", baseline="stock", quick=True, gib=None), tmp_path)
    with pytest.raises(UsageError, match="has none"):
        memmap.bench(argparse.Namespace(board="uml", baseline="off", quick=True, gib=4), tmp_path)


def guest_lines(kernel: str, costs: dict[str, int], rounds: int) -> list[str]:
    found = []
    for turn in range(rounds + 1):
        for config, cost in costs.items():
            ns = 1000 * cost * (3 if turn == 0 else 1)
            found += [f"memmap_mark: device=private config={config} round={turn}",
                      f'memmap_watch: {{"event": "init", "pages": 1000, "ns": {ns}}}',
                      f'memmap_watch: {{"event": "remap", "type": "private", "order": 0, "gib": 1, "round": 0, '
                      f'"remap_ns": {ns + 500}, "init_ns": {ns}, "unmap_ns": 7}}']
    return found


def guest(vs_stock: bool) -> Document:
    sweep = memmap_guest.Plan(gib=1, rounds=10, boots=2, vs_stock=vs_stock)
    found = []
    for boot in range(2):
        found += memmap_guest.parse(guest_lines("ferry", {"off": 40, "auto": 10}, 10), boot, "ferry")
        found += memmap_guest.parse(guest_lines("stock", {"stock": 30}, 10), boot, "stock") if vs_stock else []
    made = Document(schema=SCHEMA, bench="memmap", board="x86-numa", kind="emulated", baseline=sweep.baseline, rows=[],
                    meta={})
    memmap_guest.fill(made, sweep, found)
    return made


def row_of(made: Document, path: str, device: str) -> Row:
    (found,) = (row for row in made["rows"] if row.get("path") == path and row.get("device") == device)
    return found


def test_guest_rows_beside_off() -> None:
    made = guest(vs_stock=False)
    auto = row_of(made, "auto", "private")
    assert auto["median"] == 10 and len(auto["samples"]) == 22
    assert auto["ratio_to_baseline"] and auto["ratio_to_baseline"]["median"] == 4
    assert row_of(made, "off", "private, first")["samples"] == [120, 120]
    assert not [row for row in made["rows"] if row["path"] == "auto" and row["device"] == "private, first"]
    assert row_of(made, "auto", "private, whole call")["median"] == 10.5
    assert row_of(made, "off", "private")["ratio_to_baseline"] is None


def test_guest_rows_beside_stock() -> None:
    made = guest(vs_stock=True)
    auto, off = row_of(made, "auto", "private"), row_of(made, "off", "private")
    assert auto["ratio_to_baseline"] and auto["ratio_to_baseline"]["median"] == 3
    assert off["ratio_to_baseline"] and off["ratio_to_baseline"]["median"] == 0.75


def test_a_binding_that_said_nothing_is_a_failed_sample() -> None:
    found = memmap_guest.parse(["memmap_mark: device=fsdax config=off round=1"], 0, "ferry")
    row = memmap_guest.row(found, memmap_guest.Plan(1, 10, 1, False), ("ferry", "fsdax", "off"), "", False)
    assert row["samples"] == [] and len(row["failures"]) == 1


def test_the_guest_has_room_for_struct_pages(tmp_path: Path) -> None:
    board = qemu.with_nvdimm(boards.load("x86-numa"), 64, tmp_path)
    assert board.nodes[0].memory_mib >= 1024 + 1024
    assert any("size=64G" in option for option in board.qemu_options)
