# SPDX-License-Identifier: GPL-2.0
"""The verb `boot`: run one command on a booted kernel, or a shell."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ferry import boards, paths, progress
from ferry.kernel import build
from ferry.vm import shell
from ferry.vm.boot import boot

OUTPUT = "output.txt"
"""In the share: what the command prints."""
LOOK_S = 0.2


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("boot", help="boot a board's kernel and run a command, or a shell, in it",
                            description="Boot a board's kernel and run a command in it. Its output is shown while it "
                                        "runs, and its exit status is that of ferry. Without a command, on a terminal, "
                                        "an x86 board gives a shell; Ctrl-D ends it, Ctrl-A X ends QEMU.")
    parser.add_argument("--board", default="x86-numa", choices=boards.names(), help="default: %(default)s")
    parser.add_argument("--kernel", default="ferry", choices=("ferry", "stock"),
                        help="stock is the base kernel without our patches (default: %(default)s)")
    parser.add_argument("--debug", action="store_true", help="the debug kernel")
    parser.add_argument("--timeout", type=float, metavar="S",
                        help="limit for the whole boot in seconds (default: the board's); a shell has none")
    parser.add_argument("--share", type=Path, metavar="DIR",
                        help="directory that the guest can write to (default: a new one)")
    parser.add_argument("--append", action="append", default=[], metavar="WORD",
                        help="a word for the kernel command line")
    parser.add_argument("command", nargs="*",
                        help="a line for the guest's shell, or a program and its arguments (default: a shell on a "
                             "terminal, else uname -a)")


def run(args: argparse.Namespace) -> int:
    board = boards.load(args.board)
    boards.require(board)
    kernel = build.build(board, args.kernel, args.debug)
    scratch = paths.cache_dir() / "boots"
    scratch.mkdir(exist_ok=True)
    share = args.share or Path(tempfile.mkdtemp(prefix=f"{board.name}-", dir=scratch))
    if share.parent == scratch:
        paths.use(share)
    progress.note(f"booting {board.name}")
    if not args.command and shell.has_shell(board) and sys.stdin.isatty() and sys.stdout.isatty():
        progress.note(f"a shell, in {share}, the only directory that keeps what it writes; Ctrl-D ends it")
        progress.note(f"console: {shell.run(board, kernel, share=share, append=args.append)}")
        return 0
    with shown(share / OUTPUT):
        result = boot(board, kernel, f"{{ {line(args.command)}\n}} </dev/null >{OUTPUT} 2>&1", share=share,
                      append=args.append, timeout_s=args.timeout or board.boot_timeout_s)
    progress.note(f"status {result.status}; console: {result.console}")
    return result.status


def line(words: Sequence[str]) -> str:
    """The words of the command line as one line for a shell: a single word is one already."""
    if len(words) == 1:
        return words[0]
    return shlex.join(words) or "uname -a"


@contextmanager
def shown(output: Path) -> Iterator[None]:
    """Copy to standard output what a file gets while the block runs, and the rest when it ends, also by an error."""
    output.unlink(missing_ok=True)
    ended = threading.Event()
    follower = threading.Thread(target=_follow, args=(output, ended), daemon=True)
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join()


def _follow(output: Path, ended: threading.Event) -> None:
    done = 0
    last = False
    while not last:
        last = ended.wait(LOOK_S)
        if not output.is_file():
            continue
        with output.open("rb") as file:
            file.seek(done)
            data = file.read()
        done += len(data)
        with contextlib.suppress(BrokenPipeError):  # the reader (| head) has seen enough; the guest goes on
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
