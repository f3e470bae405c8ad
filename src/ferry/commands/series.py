# SPDX-License-Identifier: GPL-2.0
"""The verb `series`: list and check the series, check them out as a git tree and import it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from ferry import progress
from ferry.errors import TestFailure
from ferry.kernel import series_build
from ferry.series import checks, gitrepo, patches, source, tree


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("series", help="list, check, check out or import the patch series")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="each series, its number of patches, and the series that it stands on")
    check = actions.add_parser("check", help="check patches, names, layers and style; exit 1 when a check fails")
    check.add_argument("--build", action="store_true", help="also compile each series after each of its patches")
    checkout = actions.add_parser("checkout", help="make a git tree of the kernel with one commit a patch")
    checkout.add_argument("directory", type=Path, metavar="DIR", help="a new or empty directory")
    bring = actions.add_parser("import", help="rewrite kernel/overlay and kernel/series from such a tree's commits")
    bring.add_argument("directory", type=Path, metavar="DIR", help="a tree made by checkout")


def run(args: argparse.Namespace) -> int:
    if args.action == "list":
        for series in patches.all_series():
            requires = f" (on {', '.join(series.requires)})" if series.requires else ""
            print(f"{series.name:18}{len(series.patches):3}  {series.subject}{requires}")
        return 0
    base = source.obtain()
    if args.action == "check":
        return _check(base, build=args.build)
    if args.action == "checkout":
        tree.checkout(base, args.directory)
        progress.note(f"edit and commit in {args.directory}, then: ./ferry series import {args.directory}")
    else:
        gitrepo.import_tree(args.directory, base)
    return 0


def _check(base: source.Source, *, build: bool) -> int:
    """Print every check; raise TestFailure when one does not hold."""
    failed = _show(checks.run_all(base))
    if build and not failed:
        with progress.stage("building after each patch") as stage:
            failed += _show(series_build.builds(base, stage))
    if failed:
        raise TestFailure(f"{failed} of the series' checks failed", hint="correct the failures named above")
    print(f"{len(patches.load())} patches on Linux {base.version}: all checks pass")
    return 0


def _show(outcomes: Iterable[checks.Outcome]) -> int:
    """Print outcomes as they come; the number of those that failed."""
    failed = 0
    for outcome in outcomes:
        failed += bool(outcome.wrong)
        mark = "FAILED" if outcome.wrong else "ok"
        print(f"{mark:6}  {outcome.name}" + (f"  ({outcome.remark})" if outcome.remark else ""), flush=True)
        for line in outcome.wrong:
            print(f"        {line}")
    return failed
