# SPDX-License-Identifier: GPL-2.0
"""Every step of the series compiles: a patch that only builds with the next one breaks bisection."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from ferry import boards, paths, progress
from ferry.errors import InfraError
from ferry.kernel import build, config, toolchain
from ferry.series import patches, tree
from ferry.series.checks import Outcome
from ferry.series.patches import Patch
from ferry.series.source import Source


def _refuse_warnings(log: Path) -> None:
    """A compiler's warning is somebody else's build failure, and reviewers see it first."""
    warned = [line for line in log.read_text(errors="replace").splitlines() if " warning: " in line]
    if warned:
        raise InfraError(warned[0], log=log)


def builds(source: Source, stage: progress.Stage) -> Iterator[Outcome]:
    """Compile what a patch touches after each of them, unless the cache says that this very step was compiled."""
    series = patches.load()
    for number, patch in enumerate(series, 1):
        name = f"builds after {patch.name[:4]}"
        stage.update(number - 1, len(series), patch.subject)
        home = paths.cache_dir() / "steps" / _step_key(source, series[:number])
        try:
            if not home.is_dir():
                _build_step(source, series, number, home)
        except InfraError as error:
            yield Outcome(name, (error.cause, f"log: {error.log}"))
            return
        yield Outcome(name, (), patch.subject)


_STEP_BOARD = "x86-numa"


#: What the series changes, and the file systems, whose headers it changes; with the tests and the checkers.
_STEP_TARGETS = ("mm/", "fs/", "kernel/fork.o", "drivers/ferry/", "drivers/dma/amd/")


def _step_key(source: Source, series: list[Patch]) -> str:
    """Names what a step is made of: source, compiler, configuration, patches, the overlay files they introduce."""
    board, overlay = boards.load(_STEP_BOARD), patches.overlay_files()
    parts: list[str | bytes] = [source.key, toolchain.version(), board.arch, *_STEP_TARGETS]
    parts += [path.read_bytes() for path in config.fragments(board, "ferry", debug=True)]
    for patch in series:
        parts.append(patch.text)
        for name in patches.introduced(patch, overlay):
            parts += [name, overlay[name].read_bytes()]
    return build.key_of(parts)


def _build_step(source: Source, series: list[Patch], number: int, home: Path) -> None:
    """Compile the series' first `number` patches; `home` keeps the log. The last step's objects are built upon."""
    board = boards.load(_STEP_BOARD)
    objects = paths.cache_dir() / "objects" / source.key / "steps"
    with paths.lock(f"tree-{source.key}-steps"):
        where = tree.materialise(source, "steps", series[:number])
        files = config.fragments(board, "ferry", debug=True)
        config.configure(where, objects, board.arch, files, whole=number == len(series))
        targets = tuple(path for path in _STEP_TARGETS if (where / path).is_dir() or path.endswith(".o"))
        log = objects / f"step-{number}.log"
        build.make(where, objects, board.arch, targets, log, progress.Stage(log.name), board.build_steps)
        _refuse_warnings(log)
        with paths.publish(home) as scratch:
            shutil.copy2(log, scratch / "build.log")
