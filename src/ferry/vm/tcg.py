# SPDX-License-Identifier: GPL-2.0
"""Two faults of QEMU's multi-threaded TCG: how to recognise and how to avoid them.

Both were seen with QEMU 7.2. They happen neither under KVM, nor with one CPU, nor on real hardware.

Stale int3: to change running code, the kernel first replaces it by a breakpoint (int3). TCG may execute that breakpoint
on another CPU after the kernel has removed it. Then the kernel's handler does not know the address, and the guest stops
with "Oops: int3", whose dump of the code no longer has the breakpoint. One that the kernel has not removed is its own.

Stale memory map: QEMU stops by an assertion, "msix_table_mmio_write: Assertion `addr + size <= ...' failed", seen while
the kernel sizes the BARs of PCI devices, thus before init. The likely cause, not proved here: an entry of TCG's TLB for
device memory holds the index of a section in the memory map, and QEMU exchanges the map before the other CPUs flush
their TLBs, so an access of theirs (to the APIC, say) reaches the wrong device.
"""

from __future__ import annotations

import re
from pathlib import Path

from ferry.boards import Board
from ferry.kernel.build import Kernel
from ferry.vm import kvm, splat

#: QEMU's options for tests that make the kernel change code all the time: one thread runs all emulated CPUs in turn.
SINGLE_THREAD = ("-accel", "tcg,thread=single")

#: In an oops' dump of the code: the byte that trapped, as it is now. The marked one follows it.
_TRAPPED = re.compile(r"Code: .*\b([0-9a-f]{2}) <")
_BREAKPOINT = "cc"
#: KUnit's line about a test, or about a suite of tests.
_FAILED_TEST = re.compile(r"\bnot ok \d+ ")


def stale_int3(board: Board, kernel: Kernel, console: Path | None) -> bool:
    """Whether the first splat of this boot's `console` is an int3 that TCG can have caused."""
    return console is not None and _reported(console) and _threaded(board, kernel)


def fault_before_init(board: Board, kernel: Kernel, console: Path | None) -> str | None:
    """The fault of TCG that stopped the boot before init started; None: another cause, or something else had failed.

    KUnit tests run before init, and a repeated boot overwrites the console. So a boot in which one of them, or the
    kernel, had failed before the fault must not be repeated.
    """
    text = console.read_text(errors="replace") if console is not None and console.is_file() else ""
    if "as init process" in text:
        return None
    splats = splat.scan(text)
    before = text.splitlines()[: splats[0].line - 1] if splats else text.splitlines()
    if any(map(_FAILED_TEST.search, before)):
        return None
    if stale_int3(board, kernel, console):
        return "a stale int3"
    last = text.rstrip().rpartition("\n")[2]
    asserted = not splats and last.startswith("qemu-system-") and "msix_table_mmio_write: Assertion" in last
    return "a stale memory map" if asserted and _threaded(board, kernel) else None


def _threaded(board: Board, kernel: Kernel) -> bool:
    return board.runner == "qemu" and board.cpus > 1 and not kvm.used(board, kernel.image)


def _reported(console: Path) -> bool:
    found = splat.scan(console.read_text(errors="replace")) if console.is_file() else []
    if not found or "Oops: int3" not in found[0].text:
        return False
    code = next(filter(None, map(_TRAPPED.search, found[0].context)), None)
    return code is None or code[1] != _BREAKPOINT
