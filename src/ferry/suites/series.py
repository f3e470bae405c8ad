# SPDX-License-Identifier: GPL-2.0
"""The patch series: every check of `ferry series check`, and that each step of it builds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from ferry import progress
from ferry.kernel import series_build
from ferry.series import checks, source
from ferry.suites.context import Context
from ferry.suites.result import Outcome, Result, verdict

NAME = "series"


def run(context: Context) -> list[Result]:
    """The builds only once the rest holds: a series that does not apply has no steps."""
    base = source.obtain()
    with progress.stage("series check"):
        results = list(_timed(checks.run_all(base)))
    if all(result.outcome is Outcome.PASSED for result in results):
        with progress.stage("building after each patch") as stage:
            results += _timed(series_build.builds(base, stage))
    return results


def _timed(outcomes: Iterable[checks.Outcome]) -> Iterator[Result]:
    started = time.monotonic()
    for outcome in outcomes:
        yield verdict(not outcome.wrong, NAME, outcome.name, "; ".join(outcome.wrong), time.monotonic() - started)
        started = time.monotonic()
