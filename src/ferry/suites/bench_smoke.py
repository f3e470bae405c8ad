# SPDX-License-Identifier: GPL-2.0
"""Each benchmark once, as small as its plan allows: that it measures, keeps and prints, not how fast anything is.

The guests run the release kernel, which the suite dma-faults needs as well. For `copy`, which runs in User-Mode Linux,
the tests build no release kernel: it runs on the debug kernel of the suite kunit, where its figures mean nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

from ferry import boards
from ferry.bench import compaction, copy, memmap, move_pages, stall, tiering, tlb
from ferry.errors import FerryError
from ferry.kernel import build
from ferry.profile import breakdown
from ferry.results import formats, runs, table
from ferry.results.document import TOTAL, Document
from ferry.suites.context import Context
from ferry.suites.result import Result, error, result_of

NAME = "bench-smoke"


@dataclass(frozen=True)
class Short:
    """A benchmark and the options that make it short."""

    bench: ModuleType
    options: tuple[str, ...]


SHORT = (
    Short(move_pages, ("--quick", "--folio", "4k", "--bytes", "4m", "--migrator", "mtcopy", "--threads", "2")),
    Short(breakdown, ("--quick", "--baseline", "off", "--folio", "4k", "--kind", "anon", "--migrator", "off")),
    Short(stall, ("--quick", "--workload", "touch", "--runs", "off")),
    Short(tlb, ("--quick", "--baseline", "off", "--workload", "move_pages")),
    Short(compaction, ("--quick", "--baseline", "off", "--workload", "idle", "--migrator", "off", "--runs", "off")),
    Short(tiering, ("--quick", "--workload", "tenants", "--policy", "numab", "--runs", "off")),
    Short(memmap, ("--quick", "--gib", "1")),
)


def run(context: Context) -> list[Result]:
    """One result a benchmark."""
    return [*(_result(context, short.bench.NAME, partial(_measured, short)) for short in SHORT),
            _result(context, copy.NAME, _copied)]


def _measured(short: Short, run_dir: Path) -> Document:
    document: Document = short.bench.bench(parsed(short), run_dir)
    return document


def parsed(short: Short) -> argparse.Namespace:
    """The options as the benchmark's own parser reads those of `ferry bench`."""
    parser = argparse.ArgumentParser()
    short.bench.add_parser(parser.add_subparsers())
    return parser.parse_args([short.bench.NAME, *short.options])


def _copied(run_dir: Path) -> Document:
    board = boards.load("uml")
    return copy.measure(board, build.build(board, "ferry", debug=True), run_dir)


def _result(context: Context, name: str, measure: Callable[[Path], Document]) -> Result:
    """Failed if the document is not whole, or if what was kept cannot be read and printed again."""
    started = time.monotonic()
    run_dir = runs.create(name, "", context.logs / NAME / name)
    try:
        runs.finish(run_dir, [measure(run_dir)])
        (kept,) = runs.load(str(run_dir))
        printed = formats.render(table.output([kept]), "table")
    except FerryError as cause:
        return error(NAME, name, cause, time.monotonic() - started)
    (run_dir / "table.txt").write_text(printed)
    return result_of(not (wrong := fault(kept)), NAME, name, wrong, time.monotonic() - started, run_dir)


def fault(document: Document) -> str:
    """Why a document is not that of a benchmark that worked; "" if it is."""
    if not document["rows"]:
        return "; ".join(["it has no rows", *(skip["reason"] for skip in document.get("skipped", []))])
    # On a busy host mtcopy may find no idle CPU now and then, which is no fault.
    reasons = [failure["reason"] for row in document["rows"] for failure in row["failures"]
               if failure["reason"] != copy.NO_HELPER]
    if reasons:
        return f"{len(reasons)} samples failed: {'; '.join(sorted(set(reasons)))}"
    # A phase may have no instruction.
    empty = [row for row in document["rows"] if not row["samples"] or row["median"] is None
             or (row["median"] <= 0 and row.get("phase", TOTAL) == TOTAL)]
    return f"{len(empty)} of {len(document['rows'])} rows have no figure" if empty else ""
