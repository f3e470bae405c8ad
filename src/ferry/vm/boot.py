# SPDX-License-Identifier: GPL-2.0
"""Boot a built kernel and run one command in it; return the command's status, its files and the console.

The guest sees the host's files read-only, and one shared directory read-write at the path in $FERRY_SHARE. The
command's exit status comes back through a file in that directory: a guest that dies leaves none. On the board `local`
nothing is booted: the machine, which runs the kernel already, takes the place of the guest.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ferry import boards, proc, progress
from ferry.boards import Board
from ferry.errors import InfraError, Splat, TimedOut
from ferry.kernel.build import Kernel
from ferry.vm import initramfs, local, qemu, splat, tcg, uml
from ferry.vm.device_models import attached

_STATUS = ".ferry-status"
_SCRIPT = ".ferry-command"

#: How often a boot is repeated that a fault of QEMU stopped before init: two such faults in a row were seen.
_REPEATS = 2


@dataclass(frozen=True)
class BootResult:
    """How a boot ended without a splat. `status` is the command's."""

    status: int
    console: Path
    share: Path


def boot(
    board: Board,
    kernel: Kernel,
    command: str,
    *,
    timeout_s: float,
    share: Path,
    on_line: Callable[[str], None] | None = None,
    append: Sequence[str] = (),
    expected: Sequence[splat.Report] = (),
    silence_s: float | None = None,
    carry: Sequence[Path] = (),
) -> BootResult:
    """Boot `kernel` on `board` and run `command` by sh in it, for at most `timeout_s` seconds in all.

    `carry` names files of this machine that the command needs, for boards whose guest does not see the host's file
    system. It always has the share, the kernel's modules, and the programs and scripts of guest/.

    `expected` are reports that the command provokes: they are no splats.

    A guest that prints nothing for `silence_s` seconds hangs. After an oops it has proc.DYING_S left: threads that wait
    for the one that died never end, the others do.

    `share` is created if missing; console.log in it has the guest's whole output, each line of which goes to `on_line`.
    Raises Splat if the kernel reported a problem; TimedOut; InfraError if the guest ended without the command's status;
    AllSkipped if the board cannot run on this machine.
    """
    boards.require(board)
    share.mkdir(parents=True, exist_ok=True)
    share = share.resolve()
    _write_script(share, command)

    left = _REPEATS
    while True:
        try:
            return _boot_once(board, kernel, timeout_s, share, on_line, append, expected, silence_s, carry)
        except (Splat, InfraError) as error:
            fault = tcg.fault_before_init(board, kernel, error.log)
            if fault is None or not left:
                raise
            left -= 1
            progress.note(f"{board.name}: {error.cause}: {fault} of QEMU; booting again")


def _boot_once(
    board: Board,
    kernel: Kernel,
    timeout_s: float,
    share: Path,
    on_line: Callable[[str], None] | None,
    append: Sequence[str],
    expected: Sequence[splat.Report],
    silence_s: float | None,
    carry: Sequence[Path],
) -> BootResult:
    """One attempt; raises the same errors as boot()."""
    (share / _STATUS).unlink(missing_ok=True)
    console = share / "console.log"
    try:
        with _prepared(board, kernel, share, append, carry) as (line, bring_back):
            env = {**qemu.ENVIRONMENT, "TERM": "dumb"}
            proc.run(line, log=console, timeout=timeout_s, silence=silence_s, dying=splat.crippling, progress=on_line,
                     cwd=share, env=env)
            missing = bring_back()
    except TimedOut as error:
        splat.refuse(console, expected)
        cause = f"{board.name}: {error.cause}"
        raise TimedOut(cause, hint="--timeout SECONDS, or read the log", log=console) from error
    except InfraError as error:
        if error.log == console:
            splat.refuse(console, expected)
        raise
    splat.refuse(console, expected)
    return BootResult(_status(board, share, console, missing), console, share)


@contextmanager
def _prepared(
    board: Board, kernel: Kernel, share: Path, append: Sequence[str], carry: Sequence[Path]
) -> Iterator[tuple[list[str | Path], Callable[[], str]]]:
    """The command that runs the guest, and a function to call after it, which returns why files are missing."""
    if board.runner == "initramfs":
        with initramfs.prepared(board, kernel, share, _SCRIPT, append, carry) as started:
            yield started.line, started.bring_back
    elif board.runner == boards.LOCAL:
        # `append` and `carry` have no use: the kernel has booted, and sees all files.
        with local.prepared(share / _SCRIPT, share / "console.log") as line:
            yield line, lambda: ""
    else:
        make_line = uml.command_line if board.runner == "uml" else qemu.command_line
        with attached(board, share) as equipped:
            yield make_line(equipped, kernel, share, append, _SCRIPT), lambda: ""


def _write_script(share: Path, command: str) -> None:
    """The command runs in a separate shell, so that an `exit` in it does not skip the status."""
    (share / f"{_SCRIPT}.inner").write_text(command + "\n")
    quoted = shlex.quote(str(share))
    script = share / _SCRIPT
    script.write_text(
        f"#!/bin/sh\nexport FERRY_SHARE={quoted}\n"
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
        f"cd {quoted}\nsh ./{_SCRIPT}.inner\nstatus=$?\n"
        f"echo $status >{_STATUS}.part && mv {_STATUS}.part {_STATUS}\nsync\n"
    )
    script.chmod(0o755)


def _status(board: Board, share: Path, console: Path, missing: str) -> int:
    try:
        return int((share / _STATUS).read_text())
    except (OSError, ValueError) as error:
        lines = [line for line in console.read_text(errors="replace").splitlines() if line.strip()]
        last = lines[-1][-200:] if lines else "none"
        why = f" ({missing})" if missing else ""
        raise InfraError(
            f"{board.name}: the guest ended without running its command to the end{why}; its last line: {last}",
            hint="./ferry doctor",
            log=console,
        ) from error
