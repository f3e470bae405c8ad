# SPDX-License-Identifier: GPL-2.0
"""The verb `config`: make a kernel configuration, check it, print it."""

from __future__ import annotations

import argparse

from ferry import boards
from ferry.kernel import build


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("config", help="make a board's kernel configuration, check it, print it")
    parser.add_argument("--board", default="x86-numa", choices=boards.names(), help="default: %(default)s")
    parser.add_argument("--kernel", default="ferry", choices=("ferry", "stock"), help="default: %(default)s")
    parser.add_argument("--debug", action="store_true", help="the debug kernel")


def run(args: argparse.Namespace) -> int:

    print(build.config_only(boards.load(args.board), args.kernel, args.debug).read_text(), end="")
    return 0
