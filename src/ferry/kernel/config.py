# SPDX-License-Identifier: GPL-2.0
"""Kernel configurations: tinyconfig plus fragments, and a check that every requested symbol survived.

Kconfig silently drops a symbol whose dependencies fail; a kernel without it would measure something else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ferry import paths, proc
from ferry.boards import Board
from ferry.errors import InfraError, UsageError
from ferry.kernel import toolchain


def fragments(board: Board, kernel: str, debug: bool) -> list[Path]:
    """The fragment files of one kernel, in the order they are merged."""
    named = list(board.configs)
    named += board.ferry_configs if kernel == "ferry" else ()
    named += board.debug_configs if debug else ()
    named += board.ferry_debug_configs if kernel == "ferry" and debug else ()
    found = [paths.kernel_dir() / "configs" / f"{name}.config" for name in named]
    for path in found:
        if not path.is_file():
            raise UsageError(f"board {board.name} names {path.name}, which is not in kernel/configs")
    return found


def requested(fragment: Path) -> dict[str, str]:
    """The symbols that a fragment sets, with their values; "n" for a symbol that is not set."""
    wanted: dict[str, str] = {}
    for line in fragment.read_text().splitlines():
        if match := re.match(r"CONFIG_(\w+)=(.*)$", line):
            wanted[match[1]] = match[2]
        elif match := re.match(r"# CONFIG_(\w+) is not set$", line):
            wanted[match[1]] = "n"
    return wanted


def check_survived(config: Path, files: list[Path]) -> None:
    """Raises InfraError with each requested symbol that `config` lacks, its value and its fragment."""
    got = requested(config)
    final: dict[str, tuple[str, Path]] = {}
    for file in files:
        final |= {symbol: (value, file) for symbol, value in requested(file).items()}
    lost = [
        f"CONFIG_{symbol}={value} ({file.name}; got {got.get(symbol, 'n')})"
        for symbol, (value, file) in final.items()
        if got.get(symbol, "n") != value
    ]
    if lost:
        raise InfraError(
            f"the kernel's configuration lost {', '.join(lost)}",
            hint="its dependencies changed: look it up in the tree's Kconfig, then correct kernel/configs",
            log=config,
        )


def configure(tree: Path, objects: Path, arch: str, files: list[Path], *, whole: bool = True,
              start: Path | None = None, variables: Sequence[str] = ()) -> Path:
    """Make objects/.config from `start`, or tinyconfig, and the fragments; an unchanged one keeps its time.

    `variables` are for make.
    `whole`: check that every symbol survived. With the first patches of a series only, a tree lacks some of them.
    """
    objects.mkdir(parents=True, exist_ok=True)
    paths.use(objects)
    config = objects / ".config"
    before = (config.read_bytes(), config.stat().st_mtime_ns) if config.is_file() else None
    log = objects / "ferry-config.log"
    make: list[str | Path] = ["make", *toolchain.make_variables(arch), *variables, f"O={objects}"]
    merge: list[str | Path] = [tree / "scripts/kconfig/merge_config.sh", "-m", "-O", objects, config, *files]
    begin: list[str | Path] = ["cp", start, config] if start else [*make, "tinyconfig"]
    for number, command in enumerate((begin, merge, [*make, "olddefconfig"])):
        done = proc.run(command, cwd=tree, log=log, append=number > 0)
        if done.status:
            reason = next((line for line in reversed(done.tail) if "rror" in line), "see the log")
            raise InfraError(f"the kernel's configuration could not be made: {reason}", hint="./ferry doctor", log=log)
    if whole:
        check_survived(config, files)
    if before and before[0] == config.read_bytes():
        os.utime(config, ns=(before[1], before[1]))
    return config
