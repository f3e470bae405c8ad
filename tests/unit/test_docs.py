# SPDX-License-Identifier: GPL-2.0
"""Each ./ferry command of the documents is one that the tool's own parser accepts, and what they name exists."""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry import paths
from ferry.commands import cli


def documents() -> list[Path]:
    root = paths.repo_root()
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]


def commands(text: str) -> Iterator[list[str]]:
    """The words after ./ferry in code blocks and between backticks, up to a pipe, a comment, ; or &&."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(r"`([^`]*\./ferry[^`]*)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    for block in [*blocks, *inline]:
        lines = block.replace("\\\n", " ").splitlines()
        for number, line in enumerate(lines):
            if re.search(r"(?:^|[\s(])\./ferry(?:\s|$)", line):
                yield from cut(tokens(lines[number:]))


def tokens(lines: list[str]) -> list[str]:
    """The words of the first command, which may go on in the next lines within quotes."""
    for end in range(1, len(lines) + 1):
        lexer = shlex.shlex("\n".join(lines[:end]), posix=True, punctuation_chars="|;&()")
        lexer.whitespace_split = True
        with contextlib.suppress(ValueError):
            return list(lexer)
    raise AssertionError(f"no closing quotation: {lines[0]}")


def cut(words: list[str]) -> Iterator[list[str]]:
    """The words after each ./ferry, up to the end of its command."""
    for start in (number for number, word in enumerate(words) if word == "./ferry"):
        ends = (number for number in range(start, len(words)) if set(words[number]) <= set("|;&()"))
        yield words[start + 1:next(ends, len(words))]


def refusal(words: list[str], parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]) -> str:
    """What the parser says against the words; "" if nothing."""
    if not words or "..." in words or {"-h", "--help", "--version"} & set(words):
        return ""
    try:
        parser.parse_args(words)
    except SystemExit:
        return f"ferry {shlex.join(words)}: {capsys.readouterr().err.strip().splitlines()[-1]}"
    return ""


def test_each_command_is_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    parser = cli.build_parser()
    found = [(path.name, words) for path in documents() for words in commands(path.read_text())]
    assert len(found) > 20
    wrong = [f"{name}: {said}" for name, words in found if (said := refusal(words, parser, capsys))]
    assert wrong == []


def test_a_command_of_another_day_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    text = ("Run `./ferry tree DIR`.\n```\nmake setup\n$ sudo ./ferry boot \\\n  --board x86-numa "
            "'uname |\nwc' | tail  # see\n"
            "it's done\n```\n")
    found = list(commands(text))
    assert found == [["boot", "--board", "x86-numa", "uname |\nwc"], ["tree", "DIR"]]
    parser = cli.build_parser()
    assert [bool(refusal(words, parser, capsys)) for words in found] == [False, True]


def test_each_kernel_doc_block_exists() -> None:
    overlay = paths.repo_root() / "kernel" / "overlay"
    block = re.compile(r"^\.\. kernel-doc:: (\S+)\n\s+:doc: (.+)$", re.MULTILINE)
    named = [found for document in sorted((overlay / "Documentation").rglob("*.rst"))
             for found in block.findall(document.read_text())]
    assert len(named) > 10
    assert not [f"{source}: {title}" for source, title in named
                if f" * DOC: {title}\n" not in (overlay / source).read_text()]
