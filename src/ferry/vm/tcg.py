# SPDX-License-Identifier: GPL-2.0
"""The stale int3 of QEMU's multi-threaded TCG: how to recognise and how to avoid it.

To change running code, the kernel first replaces it by a breakpoint (int3). TCG may execute that breakpoint on another
CPU after the kernel has removed it, seen with QEMU 7.2. Then the kernel's handler does not know the address, and the
guest stops with "Oops: int3". This happens neither under KVM, nor with one CPU, nor on real hardware.
"""

from __future__ import annotations

from pathlib import Path

from ferry.boards import Board
from ferry.kernel.build import Kernel
from ferry.vm import kvm, splat

#: QEMU's options for tests that make the kernel change code all the time: one thread runs all emulated CPUs in turn.
SINGLE_THREAD = ("-accel", "tcg,thread=single")


def stale_int3(board: Board, kernel: Kernel, console: Path | None) -> bool:
    """Whether the first splat of this boot's `console` is an int3 that TCG can have caused."""
    return (board.runner == "qemu" and board.cpus > 1 and console is not None and _reported(console)
            and not kvm.used(board, kernel.image))


def stale_int3_before_init(board: Board, kernel: Kernel, console: Path | None) -> bool:
    """Whether such an int3 stopped the kernel before init started, and thus before any test did."""
    return (console is not None and stale_int3(board, kernel, console)
            and "as init process" not in console.read_text(errors="replace"))


def _reported(console: Path) -> bool:
    found = splat.scan(console.read_text(errors="replace")) if console.is_file() else []
    return bool(found) and "Oops: int3" in found[0].text
