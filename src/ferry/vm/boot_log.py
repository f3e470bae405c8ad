# SPDX-License-Identifier: GPL-2.0
"""What a run's boots say: kept in the run's console.log, those of boots that failed too, and counted for the bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ferry import paths, progress
from ferry.errors import FerryError, TimedOut
from ferry.vm.boot import BootResult


def booted(run_dir: Path, name: str, start: Callable[[], BootResult]) -> BootResult:
    """What `start` returns or raises, with the boot's console added to the run's."""
    try:
        result = start()
    except FerryError as error:
        if isinstance(error, TimedOut):
            error.hint = "read the log; then the same again, with a smaller --bytes if the host is slow"
        if error.log is not None:
            append(run_dir, name, error.log)
            error.log = run_dir / paths.CONSOLE
        raise
    append(run_dir, name, result.console)
    return result


def append(run_dir: Path, name: str, console: Path) -> None:
    """Add one boot's console under a heading."""
    text = console.read_text(errors="replace") if console.exists() else ""
    with (run_dir / paths.CONSOLE).open("a") as out:
        out.write(f"==== boot {name} ====\n{text}\n")


@contextmanager
def counting(title: str, total: int | None) -> Iterator[Callable[[], None]]:
    """A stage that moves on by one whenever the function it gives is called."""
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        stage.update(done, total, f"sample {done}")

    with progress.stage(title) as stage:
        yield advance
