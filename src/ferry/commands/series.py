# SPDX-License-Identifier: GPL-2.0
"""The verb `series`: list and check the series, check them out as a git tree, import it, move to another base."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ferry import progress
from ferry.errors import TestFailure, UsageError
from ferry.kernel import series_build
from ferry.series import checks, gitrepo, patches, rebase, source, tree


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("series", help="list, check, check out, import or rebase the patch series")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="each series, its number of patches, and the series that it stands on")
    check = actions.add_parser("check", help="check patches, names, layers and style; exit 1 when a check fails")
    check.add_argument("--build", action="store_true", help="also compile each series after each of its patches")
    checkout = actions.add_parser("checkout", help="make a git tree of the kernel with one commit a patch")
    checkout.add_argument("directory", type=Path, metavar="DIR", help="a new or empty directory")
    move = actions.add_parser("rebase", help="show which patches conflict with the kernel of --source; exit 1 if any")
    move.add_argument("directory", type=Path, nargs="?", metavar="DIR",
                      help="a new or empty directory: also begin git rebase there, on the files that the series touch")
    bring = actions.add_parser("import", help="rewrite kernel/overlay and kernel/series from such a tree's commits")
    bring.add_argument("directory", type=Path, metavar="DIR", help="a tree made by checkout")


def run(args: argparse.Namespace) -> int:
    if args.action == "list":
        for series in patches.all_series():
            requires = f" (on {', '.join(series.requires)})" if series.requires else ""
            print(f"{series.name:18}{len(series.patches):3}  {series.subject}{requires}")
        return 0
    base = source.obtain(any_version=args.action in ("rebase", "import"))
    if args.action == "rebase":
        return _rebase(base, args.directory)
    if args.action == "check":
        return _check(base, build=args.build)
    if args.action == "checkout":
        tree.checkout(base, args.directory)
        progress.note(f"edit and commit in {args.directory}, then: ./ferry series import {args.directory}")
    else:
        gitrepo.import_tree(args.directory, base)
    return 0


def _rebase(new: source.Source, directory: Path | None) -> int:
    """Print each conflict, and begin git rebase in the directory; raise TestFailure if there are conflicts."""
    old = source.default()
    if old.key == new.key:
        raise UsageError("the series stand on this kernel already", hint="--source PATH, VERSION or NAME of another")
    with tempfile.TemporaryDirectory(prefix="ferry-rebase-") as scratch:
        rebase.prepare(old, new, Path(scratch))
        failed = sum(map(_show_merge, rebase.merges(Path(scratch))))
    print(f"{failed} of {len(patches.load())} patches conflict with Linux {new.version}")
    if directory:
        rebase.prepare(old, new, directory)
        first = f"resolve the conflicts in {directory}, git rebase --continue; " if rebase.start(directory) else ""
        progress.note(f"{first}then: ./ferry --source {os.environ['FERRY_SOURCE']} series import {directory}")
    if failed:
        raise TestFailure(f"{failed} patches conflict with Linux {new.version}",
                          hint=f"see {directory}" if directory else "series rebase DIR makes a tree to resolve that in")
    return 0


def _show_merge(merge: rebase.Merge) -> bool:
    """Print how a patch merged; whether it conflicts."""
    print(f"{'CONFLICT' if merge.conflicts else 'ok':8}  {merge.series} {merge.patch.name}", flush=True)
    for name, hunks in merge.conflicts.items():
        print(f"          {name}: {hunks} hunk{'s' * (hunks > 1)}")
    return bool(merge.conflicts)


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
