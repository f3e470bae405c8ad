# SPDX-License-Identifier: GPL-2.0
"""The output of programs and KUnit suites in a guest: JSON lines, an exit status, messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ferry.bench import experiment
from ferry.boards import Board
from ferry.errors import InfraError
from ferry.kernel.build import Kernel
from ferry.paths import CONSOLE

#: The exit status of a guest program that lacks a feature of the guest.
MISSING = 4
#: In every sample that a guest program prints.
SAMPLE = '"sample"'
#: Far more seconds than any KUnit suite takes.
SUITE_S = 240
#: A result in KTAP, of a suite or of one of its cases.
RESULT = re.compile(r"(?:^|\] ) *(?P<bad>not )?ok \d+ (?P<name>\w+)")


def text_of(path: Path) -> str:
    """The text of a file; "" if the guest did not write it."""
    return path.read_text(errors="replace") if path.exists() else ""


def status_of(path: Path) -> int | None:
    """The exit status in a file; None if the guest died before it could write it."""
    text = text_of(path).strip()
    return int(text) if text else None


def reason(program: str, status: int | None, stderr: str) -> str:
    """Why `program` left fewer samples than asked for."""
    if status == 0:
        return f"{program} printed no such sample"
    messages = stderr.strip().splitlines()
    how = "the guest died" if status is None else f"{program} exited with {status}"
    return f"{how}: {messages[-1]}" if messages else how


def events(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects among lines; a dying guest may cut a line short, which then is none."""
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def kunit_lines(board: Board, kernel: Kernel, suite: str, mark: str, run_dir: Path) -> list[str]:
    """Boot `board` with one KUnit suite; the console's lines with `mark`.

    Raises InfraError if there is none, or if the suite did not pass.
    """
    one = experiment.Boot("0-ferry", board, kernel, "true\n", mark, timeout_s=board.boot_timeout_s + SUITE_S,
                          append=("kunit.autorun=1", f"kunit.filter_glob={suite}"))
    experiment.run([one], run_dir, f"{suite} on {board.name}")
    console = text_of(experiment.share_of(run_dir, one.name) / CONSOLE).splitlines()
    lines = [line for line in console if mark in line]
    if not lines:
        raise InfraError(f"the kernel printed no sample of {suite}", hint=f"ferry build --board {board.name}",
                         log=run_dir / CONSOLE)
    _require_passed(console, suite, run_dir / CONSOLE)
    return lines


def _require_passed(console: Sequence[str], suite: str, log: Path) -> None:
    """Raises InfraError unless the suite's own result says ok."""
    results = [found for found in map(RESULT.search, console) if found]
    bad = [found["name"] for found in results if found["bad"]]
    if bad:
        raise InfraError(f"the test {bad[0]} failed, so what {suite} measured means nothing", log=log)
    if suite not in [found["name"] for found in results]:
        raise InfraError(f"{suite} did not end", log=log)


def kunit_events(lines: Sequence[str], mark: str) -> list[dict[str, Any]]:
    """The JSON object behind `mark` in each line that has one."""
    found = (line.partition(mark)[2] for line in lines)
    return [event for text in found for event in events(text)]
