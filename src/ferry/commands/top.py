# SPDX-License-Identifier: GPL-2.0
"""The verb `top`: show what the running kernel copies and moves, per second."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

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
    """Entry of the verb: 0 after Ctrl-C, too. Without a terminal one text follows the other, as with vmstat."""
    if not 0 < args.interval <= DAY_S:
        raise UsageError(f"--interval {args.interval:g} is not above 0 and at most a day", hint="--interval 2")
    looks = _texts(args.root, args.interval)
    if args.once:
        print(next(looks))
        return 0
    with contextlib.suppress(KeyboardInterrupt):
        if sys.stdout.isatty():
            with Live(screen=True, auto_refresh=False) as live:
                for text in looks:
                    live.update(Text.from_ansi(text), refresh=True)
        for text in looks:
            print(text, flush=True)
    return 0


def _texts(root: Path, interval_s: float) -> Iterator[str]:
    """The tables of one interval after the other. Raises FerryError if the root does not exist."""
    before = tree.snapshot(root)
    while True:
        time.sleep(interval_s)
        after = tree.snapshot(root)
        yield "\n\n".join(map(formats.as_table, top_tables.grids(Interval(before, after))))
        before = after
