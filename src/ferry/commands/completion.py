# SPDX-License-Identifier: GPL-2.0
"""The verb `completion`: print a shell's completion script, generated from the parser."""

from __future__ import annotations

import argparse

import shtab

from ferry.commands import cli

SHELLS = ("bash", "zsh", "tcsh")


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("completion", help='print a shell\'s completion script: eval "$(./ferry completion bash)"')
    parser.add_argument("shell", choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    print(shtab.complete(cli.build_parser(), shell=args.shell))
    return 0
