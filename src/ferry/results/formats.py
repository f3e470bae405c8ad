# SPDX-License-Identifier: GPL-2.0
"""The output of a verb as a table, JSON, CSV or Markdown."""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ferry.results.document import Column, Ratio

FORMATS = ("table", "json", "csv", "markdown")

#: A pipe has no width; this is wide enough that no table of ours is cut.
PIPE_WIDTH = 400

Record = Mapping[str, object]


@dataclass(frozen=True)
class Grid:
    """A table before it has a format; a cell is a list of lines. The first columns, as many as `keys`, name the row."""

    title: str
    columns: list[str]
    rows: list[list[list[str]]]
    notes: list[str] = field(default_factory=list)
    keys: int = 1


@dataclass(frozen=True)
class Output:
    """One thing to print: for people as grids, for programs as data, for spreadsheets as records."""

    grids: Sequence[Grid]
    data: Any
    records: Sequence[Record]


def add_option(parser: argparse.ArgumentParser) -> None:
    """`--format`, the same everywhere."""
    parser.add_argument("--format", choices=FORMATS, default="table", help="how to print the result (default: table)")


def render(output: Output, form: str) -> str:
    """The output in one of FORMATS."""
    if form == "json":
        return json.dumps(output.data, indent=2)
    if form == "csv":
        return as_csv(output.records)
    return "\n\n".join(map(as_markdown if form == "markdown" else as_table, output.grids))


def as_table(grid: Grid) -> str:
    """For the terminal, with its styles where stdout is one.

    No figure is cut. If the terminal is too narrow, the table has no frame, and further columns are below the first
    ones, with the keys again.
    """
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else PIPE_WIDTH
    out = io.StringIO()
    # If it is given no height, rich takes a dumb terminal for one of 80 columns.
    console = Console(file=out, width=width, height=1, force_terminal=terminal, markup=False, highlight=False)
    frame = box.HEAVY_HEAD if "utf" in (sys.stdout.encoding or "utf-8").lower() else box.ASCII
    whole = _table(grid, range(len(grid.columns)), frame)
    for table in [whole] if _fits(console, whole) else _parts(console, grid):
        console.print(table)
    return "\n".join([grid.title, *(line.rstrip() for line in out.getvalue().splitlines()), *grid.notes])


def _table(grid: Grid, columns: Sequence[int], frame: box.Box | None) -> Table:
    lines = any(len(cell) > 1 for row in grid.rows for cell in row)
    table = Table(show_lines=lines, box=frame)
    for column in columns:
        table.add_column(grid.columns[column], justify="right" if column else "left", overflow="fold")
    for row in grid.rows:
        table.add_row(*(Text("\n".join(row[column])) for column in columns))
    return table


def _fits(console: Console, table: Table) -> bool:
    unbounded = console.options.update_width(max(PIPE_WIDTH, console.width))
    return console.measure(table, options=unbounded).maximum <= console.width


def _parts(console: Console, grid: Grid) -> list[Table]:
    """The table in as few parts as fit. A column that does not fit beside the keys alone is folded."""
    keys, first = range(grid.keys), grid.keys
    parts: list[Table] = []
    for column in range(first, len(grid.columns)):
        wider = _table(grid, [*keys, *range(first, column + 1)], None)
        if not parts or _fits(console, wider):
            parts[-1:] = [wider]
        else:
            first = column
            parts.append(_table(grid, [*keys, column], None))
    return parts


def as_markdown(grid: Grid) -> str:
    """For a mail, a commit message or an issue."""
    head = "|".join(f" {column.replace(chr(10), ', ')} " for column in grid.columns)
    rule = "|".join(["---"] + ["---:"] * (len(grid.columns) - 1))
    body = ["|" + "|".join(f" {' · '.join(cell)} " for cell in row) + "|" for row in grid.rows]
    notes = [f"- {note}" for note in grid.notes]
    return "\n".join([f"**{grid.title}**", "", f"|{head}|", f"|{rule}|", *body, *([""] if notes else []), *notes])


def as_csv(records: Sequence[Record]) -> str:
    """One line per record; a key that only some records have is empty in the others."""
    columns = list(dict.fromkeys(key for record in records for key in record))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue().rstrip("\n")


def size_name(count: int) -> str:
    """Bytes for people: 4 KiB, 2 MiB."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            return f"{count / (1 << shift):g} {unit}"
    return f"{count} B"


def column_name(place: Column) -> str:
    """A column for people: what moves, and how where that is not the default."""
    device, kind, folio, total, count, order, rate = place
    kind = f"{kind} " if kind not in ("", "anon") else ""
    calls = f", {count:,} a call" if count not in (0, total // folio) else ""
    order = f", {order}" if order not in ("", "sequential") and not device else ""
    engine = f", engine {rate:g}" if rate else ""
    return f"{device or f'{kind}{size_name(folio)} folios'}\n{size_name(total)} at a time{calls}{order}{engine}"


def figure(value: float) -> str:
    """Four significant digits, and every digit of a whole part longer than that."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.4g}"


def ratio_record(name: str, ratio: Ratio | None) -> Record:
    """A ratio and its interval, as columns of a line of CSV."""
    low, high = ratio["ci95"] if ratio and ratio["ci95"] else (None, None)
    return {name: ratio and ratio["median"], f"{name}_ci95_low": low, f"{name}_ci95_high": high}


def ratio_text(ratio: Ratio) -> str:
    """`1.720 [1.650, 1.800]`: the median of the ratio and its 95 % interval."""
    if ratio["ci95"] is None:
        return f"{ratio['median']:.3f} [too few samples]"
    low, high = ratio["ci95"]
    return f"{ratio['median']:.3f} [{low:.3f}, {high:.3f}]"
