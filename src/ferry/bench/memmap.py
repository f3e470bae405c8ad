# SPDX-License-Identifier: GPL-2.0
"""`ferry bench memmap`: how long the struct pages of a device take to initialise.

In User-Mode Linux, each way to write them at the host's native speed (bench/memmap_native.py); in a guest, real
drivers bound to real devices (bench/memmap_guest.py).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ferry.bench import memmap_guest, memmap_native, plan
from ferry.errors import UsageError
from ferry.results.document import Document

NAME = "memmap"


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The options of this bench."""
    parser = sub.add_parser(NAME, help="initialise the struct pages of device memory")
    add = parser.add_argument
    add("--board", default="x86-numa", choices=("uml", "x86-numa", "x86-icount"), help="default: x86-numa")
    add("--quick", action="store_true", help="smaller devices and no more samples than needed; uml is always quick")
    add("--baseline", default="off", choices=("off", "stock"),
        help="the feature off in the same boot (off, the default), or the unpatched kernel in boots between (stock)")
    add("--gib", type=plan.bounded(1, memmap_guest.MOST_GIB), metavar="N",
        help="size of each device (default: 64, or 16 if quick)")
    return parser


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build the kernels and measure."""
    if args.board == "uml":
        if args.gib:
            raise UsageError("--gib is of a guest with devices; the board uml has none", hint="--board x86-numa")
        return memmap_native.bench(args, run_dir)
    return memmap_guest.bench(args, run_dir)
