# SPDX-License-Identifier: GPL-2.0
"""The verb `runs`: list, show or remove the runs made so far."""

from __future__ import annotations

import argparse

from ferry.results import formats, table
from ferry.results.runs import LATEST, listed, load, names, remove, state


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry runs list|show|rm`."""
    parser = sub.add_parser("runs", help="list, show or remove the runs made so far")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    listing = actions.add_parser("list", help="the runs, oldest first (the default)")
    show = actions.add_parser("show", help="print a run's result again")
    show.add_argument("name", nargs="?", default=LATEST, metavar="RUN", help="a run's name or path (default: latest)")
    for printing in (parser, listing, show):
        formats.add_option(printing)
    rm = actions.add_parser("rm", help="remove runs")
    rm.add_argument("names", nargs="+", metavar="RUN")


def run(args: argparse.Namespace) -> int:
    """Entry of the verb."""
    if args.action == "rm":
        for name in args.names:
            remove(name)
        return 0
    output = table.output(load(args.name)) if args.action == "show" else listed([state(name) for name in names()])
    print(formats.render(output, args.format))
    return 0
