# SPDX-License-Identifier: GPL-2.0
"""The verb `top`: show what the running kernel copies and moves, per second."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ferry.commands import top_tables
from ferry.control import tree, verbs
from ferry.control.rates import Interval
from ferry.errors import UsageError
from ferry.results import formats

INTERVAL_S = 2.0
DAY_S = 86_400


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry top`."""
    parser = sub.add_parser("top", help="show what the running kernel copies and moves, per second, until Ctrl-C")
    parser.add_argument("--interval", type=float, metavar="S", default=INTERVAL_S,
                        help=f"seconds between two looks (default: {INTERVAL_S:g})")
    parser.add_argument("--once", action="store_true", help="print the rates of one interval, and end")
    verbs.add_root(parser)


def run(args: argparse.Namespace) -> int:
    """Entry of the verb: 0 after Ctrl-C, too.

    Without a terminal, or on a dumb one, one text follows the other, as with vmstat.
    """
    if not 0 < args.interval <= DAY_S:
        raise UsageError(f"--interval {args.interval:g} is not above 0 and at most a day", hint="--interval 2")
    looks = _texts(args.root, args.interval)
    if args.once:
        print(next(looks))
        return 0
    with contextlib.suppress(KeyboardInterrupt):
        console = Console()
        if sys.stdout.isatty() and not console.is_dumb_terminal:
            # What rich redirects stdout to is no terminal.
            with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False) as live:
                for text in looks:
                    live.update(_fitting(text, console), refresh=True)
        for text in looks:
            print(text, flush=True)
    return 0


def _texts(root: Path, interval_s: float) -> Iterator[str]:
    """What one interval after the other shows. Raises FerryError if the root does not exist."""
    before = tree.snapshot(root)
    while True:
        time.sleep(interval_s)
        after = tree.snapshot(root)
        interval = Interval(before, after)
        tables = "\n\n".join(map(formats.as_table, top_tables.grids(interval)))
        # The parts come first: the end of a long text is below the screen.
        yield "\n".join([*top_tables.parts(interval), tables])
        before = after


def _fitting(text: str, console: Console) -> Text:
    """The lines for which the screen has room. If these are not all, the last one says so."""
    lines = list(Text.from_ansi(text).wrap(console, console.width))
    if (more := len(lines) - console.height) > 0:
        lines[console.height - 1:] = [Text(f"{more + 1} lines more: make the terminal larger, or see ferry top --once")]
    return Text("\n").join(lines)
