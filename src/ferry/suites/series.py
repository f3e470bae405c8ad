# SPDX-License-Identifier: GPL-2.0
"""Every check of `ferry series check --build`; unless the suite is named, builds with whole series only."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from ferry import progress
from ferry.kernel import series_build
from ferry.series import checks, source
from ferry.suites.context import Context
from ferry.suites.result import Outcome, Result, result_of

NAME = "series"


def run(context: Context) -> list[Result]:
    """Builds only if the other checks pass: a series that does not apply cannot be built."""
    base = source.obtain()
    with progress.stage("series check"):
        results = list(_timed(checks.run_all(base)))
    if all(result.outcome is Outcome.PASSED for result in results):
        with progress.stage("building with each series") as stage:
            results += _timed(series_build.builds(base, stage, last_only=not context.thorough))
    return results


def _timed(outcomes: Iterable[checks.Outcome]) -> Iterator[Result]:
    started = time.monotonic()
    for outcome in outcomes:
        yield result_of(not outcome.wrong, NAME, outcome.name, "; ".join(outcome.wrong), time.monotonic() - started)
        started = time.monotonic()
