# SPDX-License-Identifier: GPL-2.0
"""The verb `boot`: run one command on a booted kernel."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from ferry import boards, paths, progress
from ferry.kernel import build
from ferry.vm.boot import boot


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("boot", help="boot a board's kernel and run a command in it")
    parser.add_argument("--board", default="x86-numa", choices=boards.names(), help="default: %(default)s")
    parser.add_argument("--kernel", default="ferry", choices=("ferry", "stock"), help="default: %(default)s")
    parser.add_argument("--debug", action="store_true", help="the debug kernel")
    parser.add_argument("--timeout", type=float, metavar="S",
                        help="limit for the whole boot in seconds (default: the board's)")
    parser.add_argument("--share", type=Path, metavar="DIR",
                        help="directory that the guest can write to (default: a new one)")
    parser.add_argument("--append", action="append", default=[], metavar="WORD",
                        help="a word for the kernel command line")
    parser.add_argument("command", nargs="*", help="a command for the guest's shell (default: uname -a)")


def run(args: argparse.Namespace) -> int:
    board = boards.load(args.board)
    boards.require(board)
    kernel = build.build(board, args.kernel, args.debug)
    scratch = paths.cache_dir() / "boots"
    scratch.mkdir(exist_ok=True)
    share = args.share or Path(tempfile.mkdtemp(prefix=f"{board.name}-", dir=scratch))
    command = " ".join(args.command) or "uname -a"
    with progress.stage(f"booting {board.name}"):
        result = boot(
            board,
            kernel,
            f"{{ {command}\n}} >output.txt 2>&1",
            timeout_s=args.timeout or board.boot_timeout_s,
            share=share,
            append=args.append,
        )
    print((share / "output.txt").read_text(errors="replace"), end="")
    progress.note(f"status {result.status}; console: {result.console}")
    return result.status
