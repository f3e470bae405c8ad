# SPDX-License-Identifier: GPL-2.0
"""Run other programs: their output goes to a log, and none of them outlives this process."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ferry.errors import InfraError, TimedOut

TAIL_LINES = 200
GRACE_S = 3.0
"""Between SIGTERM and SIGKILL."""
DYING_S = 300.0
"""The time that a program has left once it printed that it cannot continue."""

_running: set[subprocess.Popen[bytes]] = set()
"""The programs that run() started, in any thread."""
_ended = threading.Event()


@dataclass(frozen=True)
class Result:
    """How a program ended; `tail` holds the last lines of its output (all of them are in the log)."""

    status: int
    seconds: float
    tail: tuple[str, ...]
    log: Path | None


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the program and its children: SIGTERM, then SIGKILL."""
    for sig, wait_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sig)
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def end_all() -> None:
    """End the programs of all threads, and let none start another: an interruption reaches the main thread only."""
    _ended.set()
    for process in list(_running):
        kill_group(process)


class _Lines:
    """Splits a byte stream into lines; an incomplete line is held until it ends."""

    def __init__(self, sink: Callable[[str], None]) -> None:
        self._sink = sink
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._sink(line.decode("utf-8", "replace").rstrip("\r"))

    def close(self) -> None:
        if self._rest:
            self.feed(b"\n")


class _Deadlines:
    """The deadlines of a program in seconds of time.monotonic(), each with the message if it passes."""

    def __init__(self, timeout: float | None, silence: float | None) -> None:
        self._silence = silence
        started = time.monotonic()
        self._ends: dict[str, float] = {}
        if timeout is not None:
            self._ends[f"did not end within {timeout:.0f} s"] = started + timeout
        self.heard()

    def heard(self) -> None:
        """The program printed something."""
        if self._silence is not None:
            self._ends[f"hangs: it printed nothing for {self._silence:.0f} s"] = time.monotonic() + self._silence

    def dying(self) -> None:
        """The program printed that it cannot continue; only the first time counts."""
        self._ends.setdefault(f"did not end within {DYING_S:.0f} s of a fatal error", time.monotonic() + DYING_S)

    def left(self) -> float | None:
        """Seconds until the next deadline; None if there is none."""
        return max(min(self._ends.values()) - time.monotonic(), 0) if self._ends else None

    def overdue(self) -> str:
        """The message of the deadline that has passed; "" if none has."""
        return next((words for words, end in self._ends.items() if time.monotonic() >= end), "")


def _pump(process: subprocess.Popen[bytes], lines: _Lines, log: BinaryIO | None, deadlines: _Deadlines) -> str:
    """Copy the output until it ends, or until a deadline passes; returns that deadline's message."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not (overdue := deadlines.overdue()):
            if not selector.select(deadlines.left()):
                continue
            deadlines.heard()
            data = os.read(descriptor, 65536)
            if not data:
                lines.close()
                return ""
            if log:
                log.write(data)
                log.flush()
            lines.feed(data)
        return overdue


def run(
    command: Sequence[str | Path],
    *,
    log: Path | None = None,
    timeout: float | None = None,
    progress: Callable[[str], None] | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    append: bool = False,
    silence: float | None = None,
    dying: Callable[[str], bool] | None = None,
) -> Result:
    """Run `command` with both outputs joined, each line handed to `progress` and kept in `log`.

    `timeout` limits the whole run, `silence` the time from one output to the next, both in seconds. After a line that
    is `dying`, the program has DYING_S left. After a deadline, or on Ctrl-C, the whole process group is killed.
    `env` is added to our own environment. Raises InfraError if the program is missing, TimedOut.
    """
    tail: deque[str] = deque(maxlen=TAIL_LINES)

    deadlines = _Deadlines(timeout, silence)

    def sink(line: str) -> None:
        tail.append(line)
        if dying and dying(line):
            deadlines.dying()
        if progress:
            progress(line)

    started = time.monotonic()
    handle = log.open("ab" if append else "wb") if log else None
    try:
        process = _start(command, cwd, env)
        _running.add(process)
        try:
            overdue = _pump(process, _Lines(sink), handle, deadlines)
            if overdue or not _gone(process):
                kill_group(process)
        except BaseException:
            kill_group(process)
            raise
        finally:
            _running.discard(process)
            if process.stdout:
                process.stdout.close()
    finally:
        if handle:
            handle.close()
    if overdue:
        raise TimedOut(f"{Path(command[0]).name} {overdue}", log=log)
    return Result(process.returncode, time.monotonic() - started, tuple(tail), log)


def _gone(process: subprocess.Popen[bytes]) -> bool:
    """True if the program ended by itself within GRACE_S after it closed its output."""
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _start(command: Sequence[str | Path], cwd: Path | None, env: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    if _ended.is_set():
        raise KeyboardInterrupt
    try:
        return subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise missing_program(str(command[0])) from error
    except PermissionError as error:
        raise InfraError(f"{command[0]} may not be run by this user", hint="./ferry doctor") from error


def missing_program(name: str) -> InfraError:
    return InfraError(f"{Path(name).name} is not installed", hint="./ferry setup (as root), or ./ferry doctor")


def capture(command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Standard output of a short command. Raises InfraError with the command's error message if it fails."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            check=False,
        )
    except FileNotFoundError as error:
        raise missing_program(str(command[0])) from error
    if done.returncode:
        output = done.stderr.decode("utf-8", "replace").strip() or done.stdout.decode("utf-8", "replace").strip()
        raise InfraError(f"{' '.join(str(part) for part in command[:3])} failed: {output[-600:]}")
    return done.stdout.decode("utf-8", "replace")
