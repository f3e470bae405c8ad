# SPDX-License-Identifier: GPL-2.0
"""The verb `export`: a series as mails for the lists it belongs to."""

from __future__ import annotations

import argparse
from pathlib import Path

from ferry import progress
from ferry.results import runs
from ferry.series import gitrepo, mails, source


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry export --series NAME [--run RUN] [-v N] [--signoff] DIR`."""
    parser = sub.add_parser("export", help="write a series as mails for its maintainers and lists",
                            description="Write a series as mails that git am takes on the base kernel and the series "
                                        "that it stands on, addressed by the kernel's get_maintainer.pl: numbered "
                                        "after a cover letter, or each on its own if the series has no cover letter. "
                                        "A figure in a cover letter that no named run has is refused.")
    parser.add_argument("--series", required=True, metavar="NAME", help="see: ferry series list")
    parser.add_argument("directory", type=Path, metavar="DIR", help="created if missing")
    parser.add_argument("--run", action="append", default=[], metavar="RUN",
                        help="a run whose tables the cover letter has, by name, path or `latest` (ferry runs); "
                             "repeatable")
    parser.add_argument("-v", "--reroll-count", type=int, default=1, metavar="N",
                        help="the version of the series, as for git format-patch; from 2 on, "
                             "kernel/series/NAME/changelog must begin with what changed in it (default: 1)")
    parser.add_argument("--signoff", action="store_true",
                        help="make them ready to send: author and Signed-off-by are git's user.name and user.email")


def run(args: argparse.Namespace) -> int:
    """Entry of the verb: prints the paths of the mails."""
    documents = [document for name in args.run for document in runs.load(name)]
    signer = mails.signer() if args.signoff else None
    for mail in mails.export(source.obtain(), args.series, args.directory, documents=documents,
                             version=args.reroll_count, signer=signer):
        print(mail)
    if not signer:
        progress.note(f"their author is a placeholder, {gitrepo.PLACEHOLDER}; --signoff makes them ready to send")
    return 0
