# SPDX-License-Identifier: GPL-2.0
"""The command line: the parser, the verbs' modules, and error messages."""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from ferry import __version__, paths
from ferry.errors import BUG, INTERRUPTED, FerryError, interrupt_on_signals, report
from ferry.series import source

VERBS = (
    "doctor",
    "setup",
    "source",
    "series",
    "export",
    "config",
    "build",
    "package",
    "boot",
    "test",
    "bench",
    "profile",
    "compare",
    "report",
    "runs",
    "cache",
    "ctl",
    "top",
    "metrics",
    "splats",
    "completion",
    "man",
)


class _Version(argparse.Action):
    """Prints the versions of the tool and of the kernel that its series apply to, which only a clone names."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        try:
            base = source.base()
            print(f"ferry {__version__} (Linux {base.version}, Debian {base.debian['version']})")
        except FerryError:
            print(f"ferry {__version__}")
        parser.exit()


def _module(verb: str) -> ModuleType:
    return importlib.import_module(f"ferry.commands.{verb}")


def build_parser(verbs: tuple[str, ...] = VERBS) -> argparse.ArgumentParser:
    """The parser of all verbs, or of some: to import all of them takes a second."""
    parser = argparse.ArgumentParser(
        prog="ferry", description="Build, boot, measure, test, export fast page migration."
    )
    parser.add_argument("--version", nargs=0, action=_Version, help="print the versions of ferry and its base kernel")
    add_global_options(parser, top=True)
    sub = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in verbs:
        _module(verb).add_parser(sub)
        # Accepted also after the verb; there they override those before it.
        add_global_options(sub.choices[verb], top=False)
    return parser


def add_global_options(parser: argparse.ArgumentParser, *, top: bool) -> None:
    """Options of every verb."""
    default = None if top else argparse.SUPPRESS
    group = parser.add_argument_group("global options")
    add = group.add_argument
    add("--cache", type=Path, metavar="DIR", default=default, help="default: $FERRY_CACHE or ~/.cache/ferry")
    add("--source", type=Path, metavar="PATH", default=default,
        help="kernel tarball, .deb, directory or git tree; a further base of kernel/base.toml, by name; or a version "
             "of Debian's linux-source")
    add("--verbose", action="store_true", default=False if top else argparse.SUPPRESS, help="print tracebacks")


def _wanted(argv: list[str]) -> tuple[str, ...]:
    """The verb on the command line; all verbs for --help, completion, man and invalid command lines."""
    named = [word for before, word in zip(["", *argv], argv, strict=False)
             if word in VERBS and before not in ("--cache", "--source")]
    helps = named and any(word in ("-h", "--help") for word in argv[: argv.index(named[0])])
    return (named[0],) if named and named[0] not in ("completion", "man") and not helps else VERBS


def _apply_globals(args: argparse.Namespace) -> None:
    """Pass global options to modules and child processes as environment variables, as the launcher does."""
    for name, value in (("FERRY_CACHE", args.cache), ("FERRY_SOURCE", args.source)):
        if value is not None:
            path = value.expanduser().absolute()
            # A source that is no path is a name or a version.
            os.environ[name] = str(path if path.exists() or name == "FERRY_CACHE" else value)


def _system_error(error: OSError) -> FerryError:
    """An error of the operating system. If the disk is full while a log is written, the error has no file name."""
    where = error.filename or os.environ.get("FERRY_CACHE") or "the cache"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return FerryError(f"the disk is full: {where}", hint="free some space, or --cache DIR on another disk")
    return FerryError(f"{error.strerror}: {error.filename or ''}".rstrip(": "), hint="--verbose prints a traceback")


def main(argv: list[str] | None = None) -> int:
    """Run one verb; docs/guide.md lists the exit statuses."""
    words = sys.argv[1:] if argv is None else argv
    interrupt_on_signals()
    # A text that the locale cannot express does not end the verb.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")
    verbose = "--verbose" in words
    try:
        args = build_parser(_wanted(words)).parse_args(words)
        _apply_globals(args)
        if Path(sys.prefix, ".complete").is_file():  # the launcher's environment is an entry of the cache
            paths.use(Path(sys.prefix))
        status: int = _module(args.verb).run(args)
        sys.stdout.flush()
        return status
    except FerryError as error:
        if verbose:
            traceback.print_exc()
        report(error)
        return error.status
    except KeyboardInterrupt:
        print("ferry: interrupted; all programs were stopped, finished work is kept", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe (| head); without dup2, Python would report the error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if verbose:
            traceback.print_exc()
        report(_system_error(error))
        return FerryError.status
    except Exception as error:
        traceback.print_exc()
        report(FerryError(f"a bug in ferry: {type(error).__name__}: {error}", hint="report it with these lines"))
        return BUG
