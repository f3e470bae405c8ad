# SPDX-License-Identifier: GPL-2.0
"""KTAP: read by the kernel's own parser, and written for `ferry test --format ktap`.

The parser is tools/testing/kunit/kunit_parser.py of the source under test, so ferry and kunit.py agree on a log. In one
point ferry is stricter: an error that the parser reports (a result that is missing, out of order or not announced)
is a failure here, because a test that died before it printed its result must not pass.
"""

from __future__ import annotations

import importlib
import io
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ferry.kernel import kunit_tool
from ferry.suites.result import Outcome, Result, failed, passed, skipped

#: A failure quotes so many diagnostic lines; the log has all of them.
QUOTED_LINES = 4

_OUTCOMES = {"SUCCESS": Outcome.PASSED, "SKIPPED": Outcome.SKIPPED}


def _parser() -> Any:
    """kunit_parser, and kunit_printer, which the former imports by name."""
    directory = str(kunit_tool.directory())
    if directory not in sys.path:
        sys.path.append(directory)
    return importlib.import_module("kunit_parser"), importlib.import_module("kunit_printer")


def parse(suite: str, prefix: str, lines: Sequence[str], log: Path) -> list[Result]:
    """The tests in a log's lines, each under its path of subtests; `prefix` starts every name."""
    parser, printer = _parser()
    output = io.StringIO()
    root = parser.parse_run_tests(lines, printer.Printer(output=output))
    results = list(_leaves(suite, prefix, root, log)) if root.subtests else []
    return results + [failed(suite, _joined(prefix, "ktap"), text, log=log) for text in _errors(output.getvalue())]


def _joined(*names: str) -> str:
    return ".".join(filter(None, names))


def _errors(output: str) -> list[str]:
    """The errors that the parser reported, without time and colour."""
    return list(dict.fromkeys(re.findall(r"\[ERROR\] Test: (.*)", output)))


def _leaves(suite: str, path: str, test: Any, log: Path) -> Iterator[Result]:
    """One result for a test without subtests; otherwise those of its subtests, and its own if only itself failed."""
    before = []
    for child in test.subtests:
        name = _joined(path, child.name)
        found = list(_leaves(suite, name, child, log)) if child.subtests else [_result(suite, name, child, log)]
        before += found
        yield from found
    own = test.status.name
    if own not in (*_OUTCOMES, "NO_TESTS") and not any(result.outcome is Outcome.FAILED for result in before):
        yield failed(suite, path, f"it {_word(own)}, but none of its tests did", log=log)


def _result(suite: str, name: str, test: Any, log: Path) -> Result:
    outcome = _OUTCOMES.get(test.status.name, Outcome.FAILED)
    if outcome is Outcome.PASSED:
        return passed(suite, name, log=log)
    if outcome is Outcome.SKIPPED:
        return skipped(suite, name, test.skip_reason or "no reason given", log)
    quoted = [line.strip().removeprefix("#").strip() for line in test.log if line.strip()]
    return failed(suite, name, "; ".join([_word(test.status.name), *quoted[:QUOTED_LINES]]), log=log)


def _word(status: str) -> str:
    words = {"FAILURE": "failed", "TEST_CRASHED": "crashed: it has no result", "NO_TESTS": "ran no test"}
    return words.get(status, status.lower())


def render(suites: dict[str, list[Result]]) -> str:
    """The results as KTAP: one test a suite, its tests as subtests."""
    lines = ["KTAP version 1", f"1..{len(suites)}"]
    for number, (name, results) in enumerate(suites.items(), 1):
        lines += ["    KTAP version 1", f"    # Subtest: {name}", f"    1..{len(results)}"]
        lines += [f"    {line}" for turn, result in enumerate(results, 1) for line in _written(turn, result)]
        lines += _written(number, _summary(name, results))
    return "\n".join(lines)


def _summary(name: str, results: list[Result]) -> Result:
    outcomes = {result.outcome for result in results}
    if Outcome.FAILED in outcomes:
        return failed(name, name, "")
    return passed(name, name) if Outcome.PASSED in outcomes else skipped(name, name, "nothing ran")


def _written(number: int, result: Result) -> Iterator[str]:
    name = re.sub(r"\s*#\s*", " ", result.name)
    if result.outcome is Outcome.FAILED:
        yield from (f"# {line}" for line in result.reason.splitlines())
    word = "not ok" if result.outcome is Outcome.FAILED else "ok"
    yield f"{word} {number} {name}" + (f" # SKIP {result.reason}" if result.outcome is Outcome.SKIPPED else "")
