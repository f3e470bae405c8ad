# SPDX-License-Identifier: GPL-2.0
"""The verb `ctl`: show, set, save and restore the settings of the running kernel."""

from __future__ import annotations

import argparse

from ferry.control import verbs


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry ctl show|set|save|restore`."""
    parser = sub.add_parser("ctl", help="show, set, save or restore the settings of the running kernel")
    verbs.add_actions(parser.add_subparsers(dest="action", metavar="ACTION", required=True))


def run(args: argparse.Namespace) -> int:
    """Entry of the verb."""
    return verbs.run(args)
