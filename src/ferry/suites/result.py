# SPDX-License-Identifier: GPL-2.0
"""What a test yields, and what many of them make of the command's exit status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ferry.errors import AllSkipped, FerryError, InfraError, Splat, TestFailure, TimedOut

#: The worst first: a splat makes every other result of its boot doubtful, an unbuilt kernel says nothing of the code.
_WORST = (Splat.status, TestFailure.status, TimedOut.status, InfraError.status)


class Outcome(StrEnum):
    """A skip is neither of the others: what did not run has not passed."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    """One test. `reason` says why it failed or was skipped; `status` is the exit status its failure asks for."""

    suite: str
    name: str
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    log: Path | None = None
    status: int = TestFailure.status


def passed(suite: str, name: str, seconds: float = 0.0, log: Path | None = None) -> Result:
    return Result(suite, name, Outcome.PASSED, "", seconds, log)


def failed(suite: str, name: str, reason: str, seconds: float = 0.0, log: Path | None = None) -> Result:
    return Result(suite, name, Outcome.FAILED, reason, seconds, log)


def skipped(suite: str, name: str, reason: str, log: Path | None = None) -> Result:
    return Result(suite, name, Outcome.SKIPPED, reason, 0.0, log)


def broken(suite: str, name: str, error: FerryError, seconds: float = 0.0) -> Result:
    """A test that could not be carried through, or ended in a splat: a failure with the error's own status."""
    hint = f"; next: {error.hint}" if error.hint else ""
    return Result(suite, name, Outcome.FAILED, error.cause + hint, seconds, error.log, error.status)


def verdict(ok: bool, suite: str, name: str, reason: str, seconds: float = 0.0, log: Path | None = None) -> Result:
    """Passed, or failed for `reason`."""
    return passed(suite, name, seconds, log) if ok else failed(suite, name, reason, seconds, log)


def count(results: Iterable[Result]) -> dict[Outcome, int]:
    """How many there are of each outcome, none of them left out."""
    listed = list(results)
    return {outcome: sum(result.outcome is outcome for result in listed) for outcome in Outcome}


def exit_status(results: Iterable[Result]) -> int:
    """0 when something passed and nothing failed, AllSkipped's when nothing ran, else the worst failure's."""
    listed = list(results)
    statuses = {result.status for result in listed if result.outcome is Outcome.FAILED}
    if statuses:
        return next((status for status in _WORST if status in statuses), FerryError.status)
    return 0 if any(result.outcome is Outcome.PASSED for result in listed) else AllSkipped.status
