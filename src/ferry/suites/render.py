# SPDX-License-Identifier: GPL-2.0
"""A test run for people, programs and spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferry.results import formats
from ferry.suites import ktap
from ferry.suites.result import Outcome, Result, count, exit_status

SCHEMA = 1
FORMATS = (*formats.FORMATS, "ktap")


@dataclass(frozen=True)
class Finished:
    """A suite that was run; `seconds` includes what it had to build."""

    name: str
    results: list[Result]
    seconds: float


def every(finished: Sequence[Finished]) -> list[Result]:
    return [result for suite in finished for result in suite.results]


def tally(results: Sequence[Result]) -> str:
    """N passed, N failed, N skipped."""
    return ", ".join(f"{number} {outcome}" for outcome, number in count(results).items())


def render(finished: Sequence[Finished], logs: Path, form: str) -> str:
    """The run in one of FORMATS."""
    if form == "ktap":
        return ktap.render({suite.name: suite.results for suite in finished})
    records = [_record(result) for result in every(finished)]
    return formats.render(formats.Output([_grid(finished, logs)], _document(finished, logs), records), form)


def _grid(finished: Sequence[Finished], logs: Path) -> formats.Grid:
    """The suites, then every skip and failure with its reason; the count is the last line."""
    rows = [[[suite.name], *([str(number)] for number in count(suite.results).values()), [f"{suite.seconds:.0f}"]]
            for suite in finished]
    notes = [line for outcome in (Outcome.SKIPPED, Outcome.FAILED) for result in every(finished)
             if result.outcome is outcome for line in _explained(result)]
    return formats.Grid("tests", ["suite", *Outcome, "seconds"], rows,
                        [*notes, f"logs: {logs}", tally(every(finished))])


def _explained(result: Result) -> list[str]:
    log = [f"  log: {result.log}"] if result.log and result.outcome is Outcome.FAILED else []
    return [f"{result.outcome}: {result.suite}: {result.name}: {result.reason}", *log]


def _document(finished: Sequence[Finished], logs: Path) -> dict[str, Any]:
    results = every(finished)
    counts = {str(outcome): number for outcome, number in count(results).items()}
    return {"schema": SCHEMA, "kind": "test", "exit_status": exit_status(results), **counts, "logs": str(logs),
            "suites": [{"suite": suite.name, "duration_s": round(suite.seconds, 3)} for suite in finished],
            "results": [_record(result) for result in results]}


def _record(result: Result) -> dict[str, object]:
    return {"suite": result.suite, "name": result.name, "outcome": str(result.outcome), "reason": result.reason,
            "duration_s": round(result.seconds, 3), "log": str(result.log) if result.log else None}
