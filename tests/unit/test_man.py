# SPDX-License-Identifier: GPL-2.0
"""The manual page is complete, and troff has no objection."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from ferry.commands import cli, man


def test_each_verb_and_action_has_a_section_with_its_options() -> None:
    page = man.page(cli.build_parser())
    sections = dict(section.split("\n", 1) for section in page.split("\n.SS ")[1:])
    assert {f"ferry {verb}" for verb in cli.VERBS} <= set(sections)
    assert r"\fB\-\-strict\fR" in sections["ferry ctl restore"] and r"\fB\-\-once\fR" in sections["ferry top"]
    assert r"\-\-cache" not in "".join(re.findall(r"^\.TP\n.*$", sections["ferry top"], re.MULTILINE))


@pytest.mark.parametrize(("words", "troff"), [
    ("a.b", "a.b"), (".SH x", r"\&.SH x"), ("it's \\fB", r"it\(aqs \(rsfB"), ("--a,b\n c", r"\-\-a,\:b c")])
def test_words_stay_words(words: str, troff: str) -> None:
    assert man.text(words) == troff


@pytest.mark.parametrize("columns", [60, 80])
def test_it_renders_without_a_warning(columns: int) -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    page = man.page(cli.build_parser())
    command = [groff, "-man", "-ww", "-Tutf8", f"-rLL={columns}n"]
    done = subprocess.run(command, input=page, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    plain = re.sub(r"\x1b\[\d+m|.\x08", "", done.stdout)
    assert "EXIT STATUS" in plain and "ferry ctl restore" in plain
