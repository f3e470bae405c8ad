# SPDX-License-Identifier: GPL-2.0
"""The verb `report`: write a run as one HTML file."""

from __future__ import annotations

import argparse

from ferry.results import runs
from ferry.results.report import write


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry report [RUN]`."""
    parser = sub.add_parser("report", help="write a run as one HTML file")
    parser.add_argument("name", nargs="?", default=runs.LATEST, metavar="RUN",
                        help="a run's name or directory (default: latest)")


def run(args: argparse.Namespace) -> int:
    """Entry of the verb: prints where the report is."""
    print(write(runs.directory(args.name)))
    return 0
