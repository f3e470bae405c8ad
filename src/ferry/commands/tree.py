# SPDX-License-Identifier: GPL-2.0
"""The verb `tree`: the series as an ordinary git tree, and back."""

from __future__ import annotations

import argparse
from pathlib import Path

from ferry import progress
from ferry.series import gitrepo
from ferry.series.source import obtain
from ferry.series.tree import make_git


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("tree", help="make an ordinary git tree with the series, or bring its commits back")
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--import", action="store_true", dest="bring_back", help="write DIR's commits to kernel/")


def run(args: argparse.Namespace) -> int:
    if args.bring_back:
        gitrepo.bring_back(args.directory, obtain(), f"{gitrepo.BASE_TAG}..HEAD")
        return 0
    make_git(obtain(), args.directory)
    progress.note(f"edit and commit in {args.directory}, then: ./ferry tree {args.directory} --import")
    return 0
