# SPDX-License-Identifier: GPL-2.0
"""The output of a test run: table, JSON, CSV, Markdown or KTAP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferry.results import formats
from ferry.results.document import SCHEMA
from ferry.suites import ktap
from ferry.suites.result import Outcome, Result, count, exit_status

FORMATS = (*formats.FORMATS, "ktap")


@dataclass(frozen=True)
class SuiteRun:
    """A suite that ran; `seconds` includes the builds that it needed."""

    name: str
    results: list[Result]
    seconds: float


def every(runs: Sequence[SuiteRun]) -> list[Result]:
    return [result for run in runs for result in run.results]


def tally(results: Sequence[Result]) -> str:
    """As "N passed, N failed, N skipped"."""
    return ", ".join(f"{number} {outcome}" for outcome, number in count(results).items())


def render(runs: Sequence[SuiteRun], logs: Path, form: str) -> str:
    """The run in one of FORMATS."""
    if form == "ktap":
        return ktap.render({run.name: run.results for run in runs})
    records = [_record(result) for result in every(runs)]
    return formats.render(formats.Output([_grid(runs, logs)], _document(runs, logs), records), form)


def _grid(runs: Sequence[SuiteRun], logs: Path) -> formats.Grid:
    """The suites, then every skip and failure with its reason; the last line has the totals."""
    rows = [[[run.name], *([str(number)] for number in count(run.results).values()), [f"{run.seconds:.0f}"]]
            for run in runs]
    notes = [line for outcome in (Outcome.SKIPPED, Outcome.FAILED) for result in every(runs)
             if result.outcome is outcome for line in _explained(result)]
    return formats.Grid("tests", ["suite", *Outcome, "seconds"], rows,
                        [*notes, f"logs: {logs}", tally(every(runs))])


def _explained(result: Result) -> list[str]:
    log = [f"  log: {result.log}"] if result.log and result.outcome is Outcome.FAILED else []
    return [f"{result.outcome}: {result.suite}: {result.name}: {result.reason}", *log]


def _document(runs: Sequence[SuiteRun], logs: Path) -> dict[str, Any]:
    results = every(runs)
    counts = {str(outcome): number for outcome, number in count(results).items()}
    return {"schema": SCHEMA, "kind": "test", "exit_status": exit_status(results), **counts, "logs": str(logs),
            "suites": [{"suite": run.name, "duration_s": round(run.seconds, 3)} for run in runs],
            "results": [_record(result) for result in results]}


def _record(result: Result) -> dict[str, object]:
    return {"suite": result.suite, "name": result.name, "outcome": str(result.outcome), "reason": result.reason,
            "duration_s": round(result.seconds, 3), "log": str(result.log) if result.log else None,
            **result.compared}
