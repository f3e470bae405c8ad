# SPDX-License-Identifier: GPL-2.0
"""The tool's own tests, by pytest."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from ferry import paths, proc, progress
from ferry.series import source
from ferry.suites.context import Context
from ferry.suites.result import Result, failed, passed, skipped

NAME = "pytest"
LIMIT_S = 600


def run(context: Context) -> list[Result]:
    """The tool's tests neither build nor boot a kernel: the other suites do that."""
    source.obtain()  # some tests read the kernel's source, and are skipped without it
    return run_tests(context, NAME, "tests/unit", LIMIT_S)


def run_tests(context: Context, suite: str, directory: str, limit_s: float) -> list[Result]:
    """The results of the tests below a directory of the clone, as those of a suite. Raises TimedOut."""
    report = context.logs / f"{suite}.xml"
    log = context.logs / f"{suite}.log"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", directory]
    with progress.stage(f"{suite}: {directory}"):
        done = proc.run(command, cwd=paths.repo_root(), log=log, timeout=limit_s)
    results = read(suite, report, log) if report.is_file() else []
    # Status 1 means that tests failed; the report names them.
    if done.status not in (0, 1) or not results:
        said = done.tail[-1] if done.tail else "nothing"
        results.append(failed(suite, "pytest", f"it ended with status {done.status}: {said}", log=log))
    return results


def read(suite: str, report: Path, log: Path) -> list[Result]:
    """The tests of a JUnit file."""
    return [_result(suite, case, log) for case in ElementTree.parse(report).iter("testcase")]


def _result(suite: str, case: ElementTree.Element, log: Path) -> Result:
    name = f"{case.get('classname', '')}.{case.get('name', '')}".lstrip(".").removeprefix("tests.")
    seconds = float(case.get("time", 0))
    for tag in ("failure", "error"):
        if (found := case.find(tag)) is not None:
            return failed(suite, name, found.get("message", "").partition("\n")[0] or tag, seconds, log)
    if (found := case.find("skipped")) is not None:
        return skipped(suite, name, found.get("message", ""), log)
    return passed(suite, name, seconds, log)
