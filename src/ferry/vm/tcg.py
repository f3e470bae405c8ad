# SPDX-License-Identifier: GPL-2.0
"""QEMU's own race, told apart from a kernel that is wrong, and what to do about it.

A sweep selects another migrator before each sample. The kernel then patches code behind a breakpoint, and
multi-threaded TCG may run that breakpoint on another CPU when it is gone: the guest stops with an int3 nobody knows, or
hangs. Neither can happen under KVM, with one CPU, or on real hardware. Such a boot is made once more, and the result
says so; what the first attempt left stays beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ferry import progress
from ferry.boards import Board
from ferry.errors import FerryError, Splat, TimedOut
from ferry.kernel.build import Kernel
from ferry.vm import kvm

#: Every flip patches code behind a breakpoint. QEMU's multi-threaded TCG may run that breakpoint on another CPU after
#: it is gone (see boot.stale_breakpoint), and the kernel rightly stops. With one thread for all CPUs, which are still
#: interrupted by one another, it does not.
SINGLE_THREAD = ("-accel", "tcg,thread=single")


def twice(board: Board, kernel: Kernel, share: Path, sweep: Callable[[], None]) -> list[str]:
    """Run `sweep`, and once more where the race may have ended it; the warnings that its result must carry.

    Raises what `sweep` raises, when it cannot be the race or comes a second time.
    """
    prepared = {path: path.read_bytes() for path in share.iterdir()}
    try:
        sweep()
        return []
    except (Splat, TimedOut) as error:
        if not possible(board, kernel) or not suspect(error, share / "console.log"):
            raise
        warning = f"boot {share.name} was made twice: {error.cause}, which QEMU does when code is patched without KVM"
    progress.note(warning)
    _set_aside(share, prepared)
    sweep()
    return [warning]


def possible(board: Board, kernel: Kernel) -> bool:
    """Whether this board's CPUs are threads of TCG."""
    return board.runner == "qemu" and board.cpus > 1 and not kvm.used(board, kernel.image)


def suspect(error: FerryError, console: Path) -> bool:
    """A hang, or a breakpoint that the kernel does not know; `console` is that of this boot alone."""
    text = console.read_text(errors="replace") if console.is_file() else ""
    return isinstance(error, TimedOut) or "Oops: int3" in text


def _set_aside(share: Path, prepared: dict[Path, bytes]) -> None:
    """Keep what the first attempt left, and start from what it had started from."""
    share.rename(share.with_name(f"{share.name}-failed"))
    share.mkdir()
    for path, content in prepared.items():
        path.write_bytes(content)


def stale_breakpoint(console: Path | None) -> bool:
    """Did the guest die of QEMU's own race, before anything of ours ran?

    The kernel patches code behind a breakpoint. QEMU's multi-threaded TCG may run that breakpoint on another CPU after
    it is gone (seen with 7.2, while secondary CPUs start): the kernel does not know it any more, and stops. After init
    has started the same words are held against the kernel.
    """
    text = console.read_text(errors="replace") if console and console.is_file() else ""
    return "Oops: int3" in text and "as init process" not in text
