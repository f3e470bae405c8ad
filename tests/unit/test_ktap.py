# SPDX-License-Identifier: GPL-2.0
"""KTAP in and out: logs as KUnit and the kselftest harness print them, good ones and ones that must not pass."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ferry import paths
from ferry.series import source
from ferry.suites import ktap
from ferry.suites.result import Outcome, Result, exit_status, failed, passed, skipped

LOG = Path("console.log")
STAMP = "[    0.512345] "

KUNIT = """\
Linux version 7.3.4
KTAP version 1
1..2
    KTAP version 1
    # Subtest: ferry_copy
    # module: core
    1..2
    ok 1 copy_marks_all
    ok 2 copy_pinned # SKIP no pins here
# ferry_copy: pass:1 fail:0 skip:1 total:2
ok 1 ferry_copy
    KTAP version 1
    # Subtest: ferry_select
    1..1
        KTAP version 1
        # Subtest: words
        ok 1 off
        ok 2 kernel
    ok 1 words
ok 2 ferry_select
reboot: Power down
"""

HARNESS = """\
TAP version 13
1..2
# Starting 2 tests from 1 test cases.
#  RUN           ferry.list_has_one_selected ...
#            OK  ferry.list_has_one_selected
ok 1 ferry.list_has_one_selected
#  RUN           ferry.only_root_writes ...
# ferry_selector.c:207:only_root_writes:Expected write_file("migrator", "kernel") (0) == -EACCES (-13)
# only_root_writes: Test failed
#          FAIL  ferry.only_root_writes
not ok 2 ferry.only_root_writes
# FAILED: 1 / 2 tests passed.
# Totals: pass:1 fail:1 xfail:0 xpass:0 skip:0 error:0
"""


@pytest.fixture(autouse=True)
def unpacked() -> None:
    """The parser is the kernel tree's; a test does not download 170 MB to have it."""
    key = str(source.base().debian["tarball_sha256"])[:16]
    if not os.environ.get("FERRY_SOURCE") and not (paths.cache_dir() / "source" / key).is_dir():
        pytest.skip("the kernel's source is not in the cache: ./ferry source")


def parse(text: str) -> dict[str, Result]:
    return {result.name: result for result in ktap.parse("suite", "", text.splitlines(), LOG)}


@pytest.mark.parametrize("stamp", ["", STAMP])
def test_kunit_nests_and_skips_are_skips(stamp: str) -> None:
    found = parse("\n".join(stamp + line for line in KUNIT.splitlines()))
    assert {name: str(result.outcome) for name, result in found.items()} == {
        "ferry_copy.copy_marks_all": "passed", "ferry_copy.copy_pinned": "skipped",
        "ferry_select.words.off": "passed", "ferry_select.words.kernel": "passed"}
    assert found["ferry_copy.copy_pinned"].reason == "no pins here"
    assert exit_status(found.values()) == 0


def test_a_failure_says_why() -> None:
    found = parse(HARNESS)
    assert found["ferry.list_has_one_selected"].outcome is Outcome.PASSED
    bad = found["ferry.only_root_writes"]
    assert bad.outcome is Outcome.FAILED and "Expected write_file" in bad.reason and bad.log == LOG
    assert exit_status(found.values()) == 1


@pytest.mark.parametrize("text", [
    pytest.param("Linux version 7.3.4\n", id="no KTAP at all"),
    pytest.param(KUNIT.partition("ok 2 copy_pinned")[0], id="died in a suite"),
    pytest.param(KUNIT.partition("# ferry_copy:")[0], id="died before a suite's result"),
    pytest.param(KUNIT.partition("ok 1 ferry_copy")[0], id="died between suites"),
    pytest.param(KUNIT.replace("ok 2 ferry_select", "not ok 2 ferry_select"), id="a suite failed, none of its tests"),
    pytest.param(KUNIT.replace("ok 1 copy_marks_all", "not ok 1 copy_marks_all"), id="a test failed"),
    pytest.param(KUNIT.replace("ok 2 kernel", "not ok 2 kernel"), id="a parameter failed"),
    pytest.param(KUNIT.replace("1..2\n    ok 1", "1..3\n    ok 1"), id="fewer results than planned"),
    pytest.param("KTAP version 1\n1..0\n", id="an empty plan"),
])
def test_what_is_not_whole_does_not_pass(text: str) -> None:
    assert exit_status(parse(text).values()) == 1


def test_all_skipped_is_not_passed() -> None:
    assert exit_status(parse("KTAP version 1\n1..1\nok 1 one # SKIP not here\n").values()) == 4


def test_prefix_names_the_run() -> None:
    first = next(iter(ktap.parse("s", "mtcopy2", HARNESS.splitlines(), LOG)))
    assert first.name == "mtcopy2.ferry.list_has_one_selected"


def test_what_is_written_reads_back_the_same() -> None:
    results = [passed("a", "one"), failed("a", "two # 2", "because\nof this"), skipped("a", "three", "no need")]
    text = ktap.render({"a": results, "b": [skipped("b", "four", "nor here")]})
    found = parse(text)
    assert {name: str(result.outcome) for name, result in found.items()} == {
        "a.one": "passed", "a.two 2": "failed", "a.three": "skipped", "b.four": "skipped"}
    assert found["a.two 2"].reason == "failed; because; of this" and found["b.four"].reason == "nor here"
