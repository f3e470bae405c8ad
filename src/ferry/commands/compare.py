# SPDX-License-Identifier: GPL-2.0
"""The verb `compare`: compare two runs."""

from __future__ import annotations

import argparse

from ferry.errors import UsageError
from ferry.results import formats, runs
from ferry.results.compare import BAD, compare, output, pair


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry compare A B`."""
    parser = sub.add_parser("compare", help="compare two runs; exit 1 on a regression")
    parser.add_argument("before", metavar="A", help="a run's name or directory, or a result.json")
    parser.add_argument("after", metavar="B", help="the run to judge")
    parser.add_argument("--threshold", type=float, default=0.03, metavar="SHARE",
                        help="how much worse a significant difference may be (default: 0.03)")
    formats.add_option(parser)


def run(args: argparse.Namespace) -> int:
    """Entry of the verb: 1 when a row regressed, failed or vanished."""
    if not 0 <= args.threshold < 1:
        raise UsageError(f"--threshold {args.threshold} is not a share between 0 and 1", hint="--threshold 0.03")
    pairs = pair(runs.load(args.before), runs.load(args.after))
    comparisons = [compare(old, new, args.threshold) for old, new in pairs]
    print(formats.render(output(comparisons, args.before, args.after), args.format))
    return int(any(entry["verdict"] in BAD for comparison in comparisons for entry in comparison["rows"]))
