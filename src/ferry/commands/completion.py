# SPDX-License-Identifier: GPL-2.0
"""The verb `completion`: print a shell's completion script, generated from the parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

from ferry.commands import cli
from ferry.control import tree

SHELLS = ("bash", "zsh", "tcsh")
_BY_METAVAR = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY, "NAME=VALUE": {"bash": "_ferry_settings"}}
"""How an argument is completed, by its name in the usage."""
# To bash, = ends a word. A name has two completions, so that bash adds no blank after the =.
_SETTINGS = rf"""
_ferry_settings() {{
  local root={tree.ROOT} word=$1 at=$COMP_CWORD
  [[ $word == = ]] && word= at=$((at + 1))
  if [[ ${{COMP_WORDS[at-1]}} == = ]]; then
    compgen -W "$(tr -d '[]' 2>/dev/null <"$root/${{COMP_WORDS[at-2]}}")" -- "$word"
  else
    compgen -W "$(find "$root" -type f -perm -200 -printf '%P=\n%P=VALUE\n' 2>/dev/null)" -- "$word"
  fi
}}"""


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("completion", help='print a shell\'s completion script: eval "$(./ferry completion bash)"')
    parser.add_argument("shell", choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    """Entry of the verb."""
    parser = cli.build_parser()
    for action in _actions(parser):
        if action.metavar in _BY_METAVAR:
            vars(action)["complete"] = _BY_METAVAR[action.metavar]
    print(shtab.complete(parser, shell=args.shell, preamble=_SETTINGS if args.shell == "bash" else ""))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a parser and of all below it."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
