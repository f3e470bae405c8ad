# SPDX-License-Identifier: GPL-2.0
"""A shell in a guest on the user's terminal, through the serial line that virtme-ng and QEMU pass on."""

from __future__ import annotations

import os
import pty
import shutil
from collections.abc import Sequence
from pathlib import Path

from ferry import boards
from ferry.boards import Board
from ferry.errors import InfraError
from ferry.kernel.build import Kernel
from ferry.vm import qemu, splat
from ferry.vm.device_models import attached

_SIZED = 'stty rows "$1" cols "$2"; shift 2; exec "$@"'


def has_shell(board: Board) -> bool:
    """Whether the guest's serial line can be the user's terminal."""
    return board.runner == "qemu"


def run(board: Board, kernel: Kernel, *, share: Path, append: Sequence[str] = ()) -> Path:
    """Boot, give the terminal to root's shell in the guest until it ends, and return the log of what was shown.

    The shell starts in the share. Raises Splat if the kernel reported a problem, InfraError if QEMU failed,
    AllSkipped if the board cannot run on this machine.
    """
    boards.require(board)
    share.mkdir(parents=True, exist_ok=True)
    share = share.resolve()
    console = share / "console.log"
    with attached(board, share) as equipped:
        line = qemu.command_line(equipped, kernel, share, append, None)
        status = on_terminal([str(word) for word in line], console)
    splat.refuse(console)
    if status:
        raise InfraError(f"{board.name}: the emulator ended with status {status}", hint="./ferry doctor", log=console)
    return console


def on_terminal(command: Sequence[str], log: Path) -> int:
    """Run a program with a terminal of its own that is connected to the user's, and keep its output; its status."""
    with log.open("wb") as out:

        def shown(descriptor: int) -> bytes:
            data = os.read(descriptor, 1024)
            out.write(data)
            out.flush()
            return data

        columns, rows = shutil.get_terminal_size()
        before = dict(os.environ)
        os.environ.update(qemu.ENVIRONMENT)
        try:
            ended = pty.spawn(["sh", "-c", _SIZED, "@", str(rows), str(columns), *command], shown)
        finally:
            os.environ.clear()
            os.environ.update(before)
    return os.waitstatus_to_exitcode(ended)
