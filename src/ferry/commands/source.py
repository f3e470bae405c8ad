# SPDX-License-Identifier: GPL-2.0
"""The verb `source`: fetch, verify and unpack the base kernel."""

from __future__ import annotations

import argparse

from ferry import progress
from ferry.series.source import obtain


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sub.add_parser("source", help="fetch, verify and unpack the base kernel; print its directory",
                   description="Fetch the base kernel of kernel/base.toml from Debian's mirror, or from Debian's "
                               "archive of all versions if the mirror has a newer one only; check its SHA-256, unpack "
                               "it, print its directory. Given the same package or tarball from elsewhere with "
                               "--source, once, ferry fetches nothing.")


def run(args: argparse.Namespace) -> int:
    found = obtain()
    progress.note(f"Linux {found.version}")
    print(found.path)
    return 0
