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
    report = context.logs / "pytest.xml"
    log = context.logs / "pytest.log"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"]
    with progress.stage("pytest"):
        done = proc.run(command, cwd=paths.repo_root(), log=log, timeout=LIMIT_S)
    results = read(report, log) if report.is_file() else []
    # Status 1 means that tests failed; the report names them.
    if done.status not in (0, 1) or not results:
        said = done.tail[-1] if done.tail else "nothing"
        results.append(failed(NAME, "pytest", f"it ended with status {done.status}: {said}", log=log))
    return results


def read(report: Path, log: Path) -> list[Result]:
    """The tests of a JUnit file."""
    return [_result(case, log) for case in ElementTree.parse(report).iter("testcase")]


def _result(case: ElementTree.Element, log: Path) -> Result:
    name = f"{case.get('classname', '')}.{case.get('name', '')}".lstrip(".").removeprefix("tests.")
    seconds = float(case.get("time", 0))
    for tag in ("failure", "error"):
        if (found := case.find(tag)) is not None:
            return failed(NAME, name, found.get("message", "").partition("\n")[0] or tag, seconds, log)
    if (found := case.find("skipped")) is not None:
        return skipped(NAME, name, found.get("message", ""), log)
    return passed(NAME, name, seconds, log)
