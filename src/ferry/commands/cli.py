# SPDX-License-Identifier: GPL-2.0
"""The command line: one parser, one module per verb, one way to report an error."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import signal
import sys
from pathlib import Path
from types import FrameType, ModuleType

from ferry import __version__
from ferry.errors import INTERRUPTED, FerryError

VERBS = (
    "doctor",
    "setup",
    "source",
    "series",
    "config",
    "build",
    "boot",
    "test",
    "bench",
    "compare",
    "report",
    "runs",
    "completion",
)


def _module(verb: str) -> ModuleType | None:
    """The verb's module; None when it is not part of this clone (an import error inside it is not hidden)."""
    name = f"ferry.commands.{verb}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            return None
        raise


def build_parser(verbs: tuple[str, ...] = VERBS) -> argparse.ArgumentParser:
    """The whole parser, or that of some verbs only: loading every verb at each start would cost a second."""
    parser = argparse.ArgumentParser(
        prog="ferry", description="Build, boot, measure, test, export fast page migration."
    )
    parser.add_argument("--version", action="version", version=f"ferry {__version__}")
    add_global_options(parser, top=True)
    sub = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in verbs:
        module = _module(verb)
        if module:
            module.add_parser(sub)
            # Accepted after the verb too, where the one before it stays unless given again.
            add_global_options(sub.choices[verb], top=False)
    return parser


def add_global_options(parser: argparse.ArgumentParser, *, top: bool) -> None:
    """Options of every verb."""
    default = None if top else argparse.SUPPRESS
    group = parser.add_argument_group("global options")
    add = group.add_argument
    add("--cache", type=Path, metavar="DIR", default=default, help="default: $FERRY_CACHE or ~/.cache/ferry")
    add("--source", type=Path, metavar="PATH", default=default, help="kernel tarball, .deb, directory or git tree")
    add("--verbose", action="store_true", default=False if top else argparse.SUPPRESS, help="tracebacks too")


def _wanted(argv: list[str]) -> tuple[str, ...]:
    """The one verb that the command line names, or all of them for --help, completion and mistakes."""
    named = [word for before, word in zip(["", *argv], argv, strict=False)
             if word in VERBS and before not in ("--cache", "--source")]
    helps = named and any(word in ("-h", "--help") for word in argv[: argv.index(named[0])])
    return (named[0],) if named and named[0] != "completion" and not helps else VERBS


def _apply_globals(args: argparse.Namespace) -> None:
    """Global options reach the modules as environment variables, as they reach the launcher and child processes."""
    for name, value in (("FERRY_CACHE", args.cache), ("FERRY_SOURCE", args.source)):
        if value is not None:
            os.environ[name] = str(value.expanduser().absolute())


def _terminate(signum: int, frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end children as Ctrl-C does."""
    raise KeyboardInterrupt


def report(error: FerryError) -> None:
    """Cause, next command, log: one error, on standard error."""
    print(f"ferry: {error.cause}", file=sys.stderr)
    if error.hint:
        print(f"  next: {error.hint}", file=sys.stderr)
    if error.log:
        print(f"  log: {error.log}", file=sys.stderr)


def _system_error(error: OSError) -> FerryError:
    """What the operating system refused. A full disk has no file name when it fills while a log is written."""
    where = error.filename or os.environ.get("FERRY_CACHE") or "the cache"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return FerryError(f"the disk is full: {where}", hint="free some space, or --cache DIR on another disk")
    return FerryError(f"{error.strerror}: {error.filename or ''}".rstrip(": "), hint="--verbose says where")


def main(argv: list[str] | None = None) -> int:
    """Run one verb; the exit status is one of docs/guide.md's."""
    words = sys.argv[1:] if argv is None else argv
    for sig in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, _terminate)
    verbose = "--verbose" in words
    try:
        args = build_parser(_wanted(words)).parse_args(words)
        _apply_globals(args)
        module = _module(args.verb)
        assert module is not None
        status: int = module.run(args)
        sys.stdout.flush()
        return status
    except FerryError as error:
        if verbose:
            raise
        report(error)
        return error.status
    except KeyboardInterrupt:
        print("ferry: interrupted; what was under way was stopped, what was finished is kept", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader left (| head); Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if verbose:
            raise
        report(_system_error(error))
        return FerryError.status
