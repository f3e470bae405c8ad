# SPDX-License-Identifier: GPL-2.0
"""Compiles every step of every series: a patch that only builds with the next one breaks bisection."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ferry import boards, paths, progress
from ferry.errors import InfraError
from ferry.kernel import build, config, toolchain
from ferry.series import patches, tree
from ferry.series.checks import Outcome
from ferry.series.patches import Patch
from ferry.series.source import Source

_STEP_BOARD = "x86-numa"
#: What the series change.
_STEP_TARGETS = ("mm/", "fs/ext4/", "fs/hugetlbfs/", "kernel/fork.o", "drivers/ferry/", "drivers/dma/amd/")
#: They include headers that the series change. The kernels that all series make compile them, too.
_INCLUDING_TARGETS = ("fs/",)


def _refuse_warnings(log: Path) -> None:
    """Raises InfraError with the compiler's first warning: with CONFIG_WERROR, it fails the build of others."""
    warned = [line for line in log.read_text(errors="replace").splitlines() if " warning: " in line]
    if warned:
        raise InfraError(warned[0], log=log)


def builds(source: Source, stage: progress.Stage, *, last_only: bool = False) -> Iterator[Outcome]:
    """Compile the targets after each patch of each series, unless the cache has this step.

    With `last_only`, after its last patch, and only what the series change.
    """
    targets = _STEP_TARGETS if last_only else (*_STEP_TARGETS, *_INCLUDING_TARGETS)
    # Those on fewer patches first: a header that comes and goes again recompiles most files each time.
    listed = sorted(patches.all_series(), key=lambda series: len(patches.prerequisites(series)))
    steps = [(series, number) for series in listed
             for number in range(len(series.patches) if last_only else 1, len(series.patches) + 1)]
    for done, (series, number) in enumerate(steps):
        applied = [*patches.prerequisites(series), *series.patches[:number]]
        name = f"{series.name} builds after {applied[-1].name[:4]}"
        stage.update(done, len(steps), applied[-1].subject)
        home = paths.cache_dir() / "steps" / _step_key(source, applied, targets)
        try:
            if not paths.use(home):
                _build_step(source, applied, targets, home)
        except InfraError as error:
            yield Outcome(name, (error.cause, f"log: {error.log}"))
            return
        yield Outcome(name, (), applied[-1].subject)


def _step_key(source: Source, series: Sequence[Patch], targets: Sequence[str]) -> str:
    """The key of a step: a hash of source, compiler, configuration, targets, patches and their overlay files."""
    board, overlay = boards.load(_STEP_BOARD), patches.overlay_files()
    parts: list[str | bytes] = [source.key, toolchain.version(), board.arch, *targets]
    parts += [path.read_bytes() for path in config.fragments(board, "ferry", debug=True)]
    for patch in series:
        parts.append(patch.text)
        for name in patches.introduced(patch, overlay):
            parts += [name, overlay[name].read_bytes()]
    return build.key_of(parts)


def _build_step(source: Source, series: Sequence[Patch], targets: Sequence[str], home: Path) -> None:
    """Compile the base with these patches; `home` keeps the log. make reuses the objects of the step before."""
    board = boards.load(_STEP_BOARD)
    objects = paths.cache_dir() / "objects" / source.key / "steps"
    with paths.lock(f"tree-{source.key}-steps"):
        where = tree.materialise(source, "steps", series)
        files = config.fragments(board, "ferry", debug=True)
        config.configure(where, objects, board.arch, files, whole=False)
        there = tuple(path for path in targets if (where / path).is_dir() or path.endswith(".o"))
        log = objects / "step.log"
        build.make(where, objects, board.arch, there, log, progress.Stage(log.name), board.build_steps)
        _refuse_warnings(log)
        with paths.publish(home) as scratch:
            shutil.copy2(log, scratch / "build.log")
