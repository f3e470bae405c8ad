# SPDX-License-Identifier: GPL-2.0
"""The verb `man`: print the manual page ferry(1), generated from the parser."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator

from ferry import __version__, errors
from ferry.commands import cli
from ferry.control import tree

_ESCAPES = str.maketrans({"\\": r"\(rs", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti",
                          '"': r"\(dq", ",": r",\:"})
"""troff would print typographic characters for these, and a reader could not paste them into a shell. A long list of
choices may be broken after a comma.
"""


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry man`."""
    sub.add_parser("man", help="print the manual page: ./ferry man | man -l -")


def run(args: argparse.Namespace) -> int:
    """Entry of the verb."""
    print(page(cli.build_parser()))
    return 0


def page(parser: argparse.ArgumentParser) -> str:
    """The manual page in troff with the macros of man(7)."""
    lines = [r'.\" SPDX-License-Identifier: GPL-2.0', f'.TH FERRY 1 "" "ferry {__version__}" "Folio Ferry"',
             ".nh", ".ad l", ".SH NAME", f"ferry \\- {text(parser.description or '')}",
             ".SH SYNOPSIS", text(_usage(parser)), ".SH OPTIONS", *_arguments(parser), ".SH VERBS"]
    for inner, summary in _verbs(parser):
        lines += [f".SS {text(inner.prog)}", text(sentence(inner.description or summary)), ".PP",
                  f"\\fB{text(_usage(inner))}\\fR", *_arguments(inner)]
    lines += [".SH EXIT STATUS", *_item("0", "Success.")]
    statuses = {kind.status: inspect.getdoc(kind) or "" for kind in errors.FerryError.__subclasses__()}
    statuses |= {errors.BUG: "A bug in ferry itself.", errors.INTERRUPTED: "Interrupted."}
    for status, meaning in sorted(statuses.items()):
        lines += _item(str(status), meaning)
    return "\n".join([*lines, ".SH FILES", *_item(str(tree.ROOT), "Control files of the running kernel."),
                      ".SH SEE ALSO", ".BR move_pages (2),", ".BR migratepages (8)"])


def _verbs(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """The parser of each verb, then of its actions, each with its line in the list of verbs."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, inner in action.choices.items():
                yield inner, summaries.get(name, "")
                yield from _verbs(inner)


def _usage(parser: argparse.ArgumentParser) -> str:
    return " ".join(parser.format_usage().removeprefix("usage: ").split())


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    """A tagged paragraph for each argument but verbs and --help. Global options stand at the top of the page only."""
    formatter, lines = parser._get_formatter(), list[str]()
    for action in parser._actions:
        repeated = " " in parser.prog and action.dest in ("cache", "source", "verbose")
        if repeated or isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            continue
        value = "" if action.nargs == 0 else str(formatter._format_args(action, action.dest.upper()))
        tag = ", ".join(action.option_strings)
        lines += _item(f"{tag} {value}".strip(), formatter._expand_help(action) if action.help else "")
    return lines


def _item(tag: str, words: str) -> list[str]:
    return [".TP", f"\\fB{text(tag)}\\fR", text(sentence(words)) or r"\&"]


def sentence(words: str) -> str:
    """A help line as a sentence."""
    return words and words[0].upper() + words[1:] + ("" if words.endswith((".", "?", "!")) else ".")


def text(words: str) -> str:
    """Words as troff prints them, on one line: a line that begins with . or ' is a request."""
    flat = " ".join(words.split()).translate(_ESCAPES)
    return rf"\&{flat}" if flat.startswith(".") else flat
