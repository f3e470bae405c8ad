# SPDX-License-Identifier: GPL-2.0
"""The kinds of errors, each with its exit status, and the signals that end the tool.

An error names its cause, the next command to try and the log to read; report() prints these, not a traceback.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType


class FerryError(Exception):
    """An error the user can act upon. `status` is the exit status of the whole command."""

    status = 3

    def __init__(self, cause: str, *, hint: str | None = None, log: Path | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.hint = hint
        self.log = log


class TestFailure(FerryError):
    """A test failed, or a figure is worse than the limit allows."""

    __test__ = False  # for pytest, which takes a class of this name for tests
    status = 1


class UsageError(FerryError):
    """The command line or a configuration is invalid."""

    status = 2


class InfraError(FerryError):
    """Fetching, patching, configuring, building or booting failed."""

    status = 3


class AllSkipped(FerryError):
    """Nothing ran: every test or sample was skipped."""

    status = 4


class Splat(FerryError):
    """The kernel warned, oopsed or panicked."""

    status = 5


class TimedOut(FerryError):
    """A time limit expired; the program was killed."""

    status = 124


BUG = 70
"""Exit status if ferry itself failed in a way that it does not know."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, and after the signals of interrupt_on_signals()."""


def report(error: FerryError) -> None:
    """Print cause, next command and log of an error on standard error."""
    print(f"ferry: {error.cause}", file=sys.stderr)
    if error.hint:
        print(f"  next: {error.hint}", file=sys.stderr)
    if error.log:
        print(f"  log: {error.log}", file=sys.stderr)


def interrupt_on_signals() -> None:
    """Have SIGQUIT, SIGTERM and SIGHUP do what Ctrl-C does: settings are written back, and children end."""
    for sig in (signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, _interrupt)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
