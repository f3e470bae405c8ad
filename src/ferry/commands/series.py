# SPDX-License-Identifier: GPL-2.0
"""The verb `series`: check it, export it as mails, import mails or commits."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from ferry import progress
from ferry.errors import TestFailure, UsageError
from ferry.kernel import series_build
from ferry.series import checks, gitrepo, patches, source


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("series", help="check, export or import the patch series")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check", help="what must hold before anyone is asked to read it; exit 1 when it does not"
    )
    check.add_argument("--build", action="store_true", help="also compile mm/ and drivers/ferry after each patch")
    export = actions.add_parser("export", help="write numbered mails with a cover letter for git am")
    export.add_argument("directory", type=Path, metavar="DIR")
    export.add_argument("--signoff", action="store_true", help="add your own Signed-off-by")
    bring = actions.add_parser("import", help="rewrite kernel/overlay and kernel/patches from mails or commits")
    bring.add_argument("origin", type=Path, metavar="DIR", help="a directory of *.patch mails, or a git tree")
    bring.add_argument("--range", metavar="A..B", help=f"commits of a git tree (default: {gitrepo.BASE_TAG}..HEAD)")


def run(args: argparse.Namespace) -> int:
    base = source.obtain()
    if args.action == "check":
        return _check(base, build=args.build)
    if args.action == "export":
        for mail in gitrepo.export(base, args.directory, signoff=args.signoff):
            print(mail)
    elif args.origin.is_dir():
        _import(args.origin, args.range, base)
    else:
        raise UsageError(f"{args.origin} is not a directory", hint="a directory of mails, or a git tree")
    return 0


def _import(origin: Path, revisions: str | None, base: source.Source) -> None:
    if (origin / ".git").exists():
        gitrepo.bring_back(origin, base, revisions or f"{gitrepo.BASE_TAG}..HEAD")
    else:
        gitrepo.import_mails(origin, base)


def _check(base: source.Source, *, build: bool) -> int:
    """Print every check; raise TestFailure when one does not hold."""
    failed = _show(checks.run_all(base))
    if build and not failed:
        with progress.stage("building after each patch") as stage:
            failed += _show(series_build.builds(base, stage))
    if failed:
        raise TestFailure(f"{failed} of the series' checks failed", hint="mend what is named above")
    print(f"{len(patches.load())} patches on Linux {base.version}: all checks hold")
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
