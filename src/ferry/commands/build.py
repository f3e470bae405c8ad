# SPDX-License-Identifier: GPL-2.0
"""The verb `build`: build a kernel unless the cache has it."""

from __future__ import annotations

import argparse

from ferry import boards, progress
from ferry.kernel.build import build


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("build", help="build a board's kernel unless it is in the cache; print its image")
    parser.add_argument("--board", default="x86-numa", choices=boards.names(), help="default: %(default)s")
    parser.add_argument("--kernel", default="ferry", choices=("ferry", "stock"), help="default: %(default)s")
    parser.add_argument("--debug", action="store_true",
                        help="the debug kernel, with DEBUG_VM and lockdep (uml: and KASAN)")


def run(args: argparse.Namespace) -> int:
    built = build(boards.load(args.board), args.kernel, args.debug)
    progress.note(f"log: {built.log}")
    print(built.image)
    return 0
