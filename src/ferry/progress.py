# SPDX-License-Identifier: GPL-2.0
"""Progress for the user: always on standard error, bars only on a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

console = Console(stderr=True, highlight=False, soft_wrap=True)

PLAIN_EVERY_S = 30.0
"""Without a terminal a long stage reports its progress at this interval (s)."""

_in_background: ContextVar[bool] = ContextVar("in_background", default=False)
"""A thread in the background shows no bar: the terminal has room for one."""


def into_background() -> None:
    """From now on this thread reports only the begin and the end of its stages."""
    _in_background.set(True)


def note(text: str) -> None:
    """One plain line."""
    console.print(text, markup=False)


class Stage:
    """Work in progress; `update` may be called at any rate."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def update(self, done: float, total: float | None = None, text: str = "") -> None:
        """`done` of `total` (None: unknown) units; `text` names the current item."""


class _PlainStage(Stage):
    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._said = self.started

    def update(self, done: float, total: float | None = None, text: str = "") -> None:
        if time.monotonic() - self._said < PLAIN_EVERY_S:
            return
        self._said = time.monotonic()
        share = f" {min(done / total, 1):.0%}" if total else ""
        note(f"{self.title}:{share} {text} ({self.seconds:.0f} s)")


class _BarStage(Stage):
    def __init__(self, title: str, progress: Progress) -> None:
        super().__init__(title)
        self._progress = progress
        self._task: TaskID = progress.add_task(title, total=None, text="")

    def update(self, done: float, total: float | None = None, text: str = "") -> None:
        shown = min(done, total) if total else done
        self._progress.update(self._task, completed=shown, total=total, text=text[:40])


@contextmanager
def stage(title: str) -> Iterator[Stage]:
    """Report the begin of `title`, and its duration if it ends without an exception."""
    current: Stage
    if console.is_terminal and not _in_background.get():
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[text]}", style="dim", markup=False),
        )
        with Progress(*columns, console=console, transient=True) as bar:
            current = _BarStage(title, bar)
            yield current
    else:
        note(f"{title} ...")
        current = Stage(title) if _in_background.get() else _PlainStage(title)
        yield current
    note(f"{title}: done ({current.seconds:.0f} s)")
