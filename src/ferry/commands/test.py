# SPDX-License-Identifier: GPL-2.0
"""The verb `test`: run the test suites."""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ferry import boards, paths, proc, progress, suites
from ferry.errors import FerryError, UsageError
from ferry.suites import Suite, render
from ferry.suites.context import Context
from ferry.suites.render import SuiteRun
from ferry.suites.result import Result, error, exit_status, skipped

#: The logs of so many runs are kept.
KEPT = 10
DEFAULT_BOARD = "x86-numa"


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    every, by_name = (", ".join(suite.name for suite in suites.ALL if suite.by_name is asked)
                      for asked in (False, True))
    parser = sub.add_parser("test", help="run the tests of the tool, the series and the kernel",
                            description=f"Suites, in order: {every}. Only if they are named: {by_name}. If all of them"
                                        " are skipped, the exit status is 4.")
    parser.add_argument("--suite", metavar="NAME[,NAME]", help="only these suites")
    parser.add_argument("--board", choices=[*boards.names(), boards.LOCAL],
                        help="only the suites that run on this board; local is this machine, for suites that a machine "
                             "in use survives")
    parser.add_argument("--quick", action="store_true", help="pytest, KUnit and one short boot only")
    parser.add_argument("--format", choices=render.FORMATS, default="table", help="default: table")


def run(args: argparse.Namespace) -> int:
    """Run the chosen suites and print their results; the exit status is that of the worst."""
    chosen = choose(args.suite, args.board, args.quick)
    with _log_directory() as logs:
        context = Context(boards.load(DEFAULT_BOARD), logs, args.quick, thorough=args.suite is not None)
        runs = run_suites(chosen, context)
    print(render.render(runs, logs, args.format))
    return exit_status(render.every(runs))


def choose(named: str | None, board: str | None, quick: bool) -> list[Suite]:
    """The suites to run, in their own order. Raises UsageError for an unknown name and for an empty choice."""
    known = suites.QUICK if quick else suites.ALL
    names = [suite.name for suite in known if not suite.by_name]
    if named is not None:
        names = [name.strip() for name in named.split(",")]
    for name in names:
        if name not in [suite.name for suite in known]:
            raise UsageError(f"no {'quick ' if quick else ''}suite is called {name!r}",
                             hint=f"--suite {','.join(suite.name for suite in known)}")
    chosen = [dataclasses.replace(suite, board=board or suite.board) for suite in known
              if suite.name in names and board in (None, suite.board, *suite.also)]
    if not chosen:
        named_ones = [suite for suite in known if suite.name in names]
        where = sorted({place for suite in named_ones for place in (suite.board, *suite.also) if place})
        hint = f"--board {'|'.join(where)}" if where else "leave --board out"
        raise UsageError(f"none of these suites runs on {board}", hint=hint)
    return chosen


def run_suites(chosen: Sequence[Suite], context: Context) -> list[SuiteRun]:
    """One suite after the other, except that those `alongside` run in a thread of their own."""
    with ThreadPoolExecutor(1, initializer=progress.into_background) as thread:
        waiting = {suite.name: thread.submit(run_suite, suite, context) for suite in chosen if suite.alongside}
        try:
            done = {suite.name: run_suite(suite, context) for suite in chosen if not suite.alongside}
            return [done.get(suite.name) or waiting[suite.name].result() for suite in chosen]
        except BaseException:
            if waiting:
                thread.shutdown(wait=False, cancel_futures=True)
                proc.end_all()
            raise


def run_suite(suite: Suite, context: Context) -> SuiteRun:
    """A suite's results; if it cannot run, that is a failure, and the next suites still run."""
    started = time.monotonic()
    try:
        results = _on_its_board(suite, context)
    except UsageError:
        raise
    except FerryError as cause:
        results = [error(suite.name, "run", cause, time.monotonic() - started)]
    done = SuiteRun(suite.name, results, time.monotonic() - started)
    progress.note(f"{suite.name}: {render.tally(results)} ({done.seconds:.0f} s)")
    return done


def _on_its_board(suite: Suite, context: Context) -> list[Result]:
    """A suite's results, or one skip that tells why this machine cannot run its board."""
    if not suite.board:
        return suite.run(context)
    board = boards.load(suite.board)
    if reason := boards.unavailable(board):
        return [skipped(suite.name, suite.board, reason)]
    return suite.run(dataclasses.replace(context, board=board))


@contextmanager
def _log_directory() -> Iterator[Path]:
    """A new directory for this run's logs. The oldest are removed unless their run is still going on."""
    home = paths.cache_dir() / "tests"
    home.mkdir(exist_ok=True)
    for old in sorted(path for path in home.iterdir() if path.is_dir())[: -KEPT + 1]:
        # Another ferry may have removed it.
        with suppress(FileNotFoundError), _held(old) as free:
            if free:
                shutil.rmtree(old, ignore_errors=True)
    logs = Path(tempfile.mkdtemp(prefix=f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-", dir=home))
    with _held(logs):
        yield logs


@contextmanager
def _held(directory: Path) -> Iterator[bool]:
    """Hold the directory's own lock; False if another process does."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except BlockingIOError:
            free = False
        yield free
    finally:
        os.close(handle)
