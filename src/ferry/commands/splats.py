# SPDX-License-Identifier: GPL-2.0
"""The verb `splats`: list what the running kernel, or one whose console log was kept, reported as wrong."""

from __future__ import annotations

import argparse
from pathlib import Path

from ferry import proc
from ferry.control import machine
from ferry.errors import Splat, UsageError
from ferry.vm import splat


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry splats`."""
    parser = sub.add_parser("splats", help="list the kernel's reports of problems; exit 5 if there is one",
                            description="List the first line of each report of a problem (WARNING, BUG, Oops, KASAN, "
                                        "lockdep, hung task ...) in the running kernel's log, or in a file. Of the "
                                        "running kernel the taint flags count as well: they stay when the log has "
                                        "lost the report.")
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a console log (default: that of dmesg)")


def run(args: argparse.Namespace) -> int:
    """Entry of the verb; 5 if anything was found."""
    found = [str(one) for one in splat.scan(_log(args.file))]
    if not args.file and not found and (tainted := machine.failed()):
        found = [f"tainted {tainted}: the kernel has warned or failed, and its log has lost the report"]
    for line in found:
        print(line)
    return Splat.status if found else 0


def _log(path: Path | None) -> str:
    if path is None:
        return proc.capture(["dmesg"])
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        hint = "ferry splats, for the running kernel's log"
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
