# SPDX-License-Identifier: GPL-2.0
"""Samples that a KUnit suite prints while User-Mode Linux boots: how a bench at native speed is carried out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ferry.boards import Board
from ferry.errors import InfraError
from ferry.kernel.build import Kernel
from ferry.paths import CONSOLE, RAW
from ferry.vm import boot
from ferry.vm.boot_log import booted

#: Far more than any of the suites takes.
SUITE_S = 240


def lines(board: Board, kernel: Kernel, suite: str, sample: re.Pattern[str], run_dir: Path,
          advance: Callable[[], None]) -> list[str]:
    """The console's lines that match `sample`, `advance` called at each; InfraError when the suite printed none."""
    share = run_dir / RAW / "0-ferry"
    share.mkdir(parents=True)
    found: list[str] = []

    def hear(line: str) -> None:
        if sample.search(line):
            found.append(line)
            advance()

    booted(run_dir, share.name, lambda: boot.boot(
        board, kernel, "true", timeout_s=board.boot_timeout_s + SUITE_S, share=share, on_line=hear,
        append=("kunit.autorun=1", f"kunit.filter_glob={suite}")))
    if not found:
        raise InfraError(f"the kernel printed no sample of {suite}", hint="ferry build --board uml",
                         log=run_dir / CONSOLE)
    return found
