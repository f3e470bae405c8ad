# SPDX-License-Identifier: GPL-2.0
"""The result of a test, and the exit status that follows from many of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from ferry.errors import AllSkipped, FerryError, InfraError, Splat, TestFailure, TimedOut

#: The worst first: a splat makes every other result of its boot doubtful; an error of the build tests nothing.
_WORST = (Splat.status, TestFailure.status, TimedOut.status, InfraError.status)


class Outcome(StrEnum):
    """A test that did not run is skipped: it has not passed."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    """One test. `reason` tells why it failed or was skipped; `status` is the exit status if it failed.

    `compared`, of a test that ran on two kernels, has its outcomes on each, as further columns.
    """

    suite: str
    name: str
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    log: Path | None = None
    status: int = TestFailure.status
    compared: Mapping[str, str] = field(default_factory=dict)


def passed(suite: str, name: str, seconds: float = 0.0, log: Path | None = None) -> Result:
    return Result(suite, name, Outcome.PASSED, "", seconds, log)


def failed(suite: str, name: str, reason: str, seconds: float = 0.0, log: Path | None = None) -> Result:
    return Result(suite, name, Outcome.FAILED, reason, seconds, log)


def skipped(suite: str, name: str, reason: str, log: Path | None = None) -> Result:
    return Result(suite, name, Outcome.SKIPPED, reason, 0.0, log)


def error(suite: str, name: str, cause: FerryError, seconds: float = 0.0) -> Result:
    """A test that could not run to its end, or ended in a splat: a failure with the exit status of the cause."""
    hint = f"; next: {cause.hint}" if cause.hint else ""
    return Result(suite, name, Outcome.FAILED, cause.cause + hint, seconds, cause.log, cause.status)


def result_of(ok: bool, suite: str, name: str, reason: str, seconds: float = 0.0, log: Path | None = None) -> Result:
    """Passed if `ok`; otherwise failed for `reason`."""
    return passed(suite, name, seconds, log) if ok else failed(suite, name, reason, seconds, log)


def count(results: Iterable[Result]) -> dict[Outcome, int]:
    """The number of results with each outcome, also if it is 0."""
    listed = list(results)
    return {outcome: sum(result.outcome is outcome for result in listed) for outcome in Outcome}


def exit_status(results: Iterable[Result]) -> int:
    """0 if a test passed and none failed; the status of AllSkipped if none ran; else that of the worst failure."""
    listed = list(results)
    statuses = {result.status for result in listed if result.outcome is Outcome.FAILED}
    if statuses:
        return next((status for status in _WORST if status in statuses), FerryError.status)
    return 0 if any(result.outcome is Outcome.PASSED for result in listed) else AllSkipped.status
