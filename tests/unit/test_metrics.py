# SPDX-License-Identifier: GPL-2.0
"""`ferry metrics`: the text is valid, every counter is in it once, and the dashboard uses no other names."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import migration_tree
import pytest

from ferry import paths
from ferry.commands import cli
from ferry.control import tree
from ferry.control.metrics import exposition

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?))")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = migration_tree.make(tmp_path / "migration")
    migration_tree.count(made, batches=3, folios=40, bytes=1 << 20, copy_ns=2_500_000)
    migration_tree.count(made, skipped_pinned=2, skipped_small=7)
    migration_tree.lock(made, "demotion", 50, 300, 70_000)
    return made


def parse(text: str) -> Series:
    """The series of an exposition. Raises AssertionError where the format's specification is broken."""
    assert text.endswith("\n")
    kinds: dict[str, str] = {}
    series: Series = {}
    lines = iter(text[:-1].split("\n"))
    for line in lines:
        if line.startswith("# HELP "):
            family, kind = re.fullmatch(r"# HELP (\w+) \S.*", line)[1], next(lines).split(" ")  # type: ignore[index]
            assert kind[:3] == ["#", "TYPE", family] and family not in kinds, line
            kinds[family] = kind[3]
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, line
        labels = match[2] or ""
        assert _LABEL.sub("", labels) == "", line
        pairs = _LABEL.findall(labels)
        assert len(dict(pairs)) == len(pairs), line
        family, kind = list(kinds.items())[-1]
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        assert match[1] in [family + suffix for suffix in suffixes], f"{line} is not below its TYPE"
        assert (kind == "counter") == match[1].endswith("_total"), line
        key = match[1], frozenset(pairs)
        assert key not in series, f"{line} is there twice"
        series[key] = float(match[3])
    return series


def emitted(root: Path) -> Series:
    return parse(exposition(tree.snapshot(root).values))


def value(series: Series, metric: str, /, **labels: str) -> float:
    return series[metric, frozenset(labels.items())]


@pytest.mark.parametrize("text", [
    "a 1\n", "# HELP a b\n# TYPE a gauge\na 1", "# HELP a b\n# TYPE a gauge\nb 1\n",
    "# HELP a b\n# TYPE a gauge\na 1\na 1\n", '# HELP a b\n# TYPE a gauge\na{x="y} 1\n',
    "# HELP a b\n# TYPE a counter\na 1\n", "# HELP a b\n# TYPE a gauge\na one\n",
])
def test_the_parser_is_strict(text: str) -> None:
    with pytest.raises((AssertionError, IndexError)):
        parse(text)


def test_counters_have_base_units_and_labels(root: Path) -> None:
    series = emitted(root)
    copies = {"migrator": "mtcopy", "reason": "demotion"}
    assert value(series, "ferry_copied_bytes_total", **copies) == 1 << 20
    assert value(series, "ferry_copy_seconds_total", **copies) == 0.0025
    assert value(series, "ferry_skipped_folios_total", cause="pinned", **copies) == 2
    assert value(series, "ferry_skipped_batches_total", cause="small", **copies) == 7
    assert value(series, "ferry_mtcopy_helper_seconds_total") == 0
    assert value(series, "ferry_batch_max_seconds") == 0.004
    assert value(series, "ferry_reason_max_bytes_per_second", reason="damon") == 0
    assert value(series, "ferry_migrc_flushed_total", cause="drain") == 0
    assert value(series, "ferry_migrc_max_age_seconds") == 1


def test_settings_that_are_words_are_labels(root: Path) -> None:
    migration_tree.store(root, "reasons/demotion/migrator", "dcbm")
    series = emitted(root)
    assert value(series, "ferry_migrator_selected", migrator="off") == 1
    assert value(series, "ferry_migrator_selected", reason="demotion", migrator="dcbm") == 1
    assert value(series, "ferry_setting_info", name="mtcopy/nontemporal", value="auto") == 1
    assert sum(name == "ferry_migrator_selected" for name, _ in series) == 1 + len(migration_tree.REASONS)


def test_a_sum_over_reasons_counts_nothing_twice(root: Path) -> None:
    assert sum(number for (name, _), number in emitted(root).items() if name == "ferry_copied_folios_total") == 40
    for reason in migration_tree.REASONS:
        shutil.rmtree(root / "stats/mtcopy" / reason)
    series = emitted(root)
    assert value(series, "ferry_copied_folios_total", migrator="mtcopy") == 40
    assert sum(number for (name, _), number in series.items() if name == "ferry_copied_folios_total") == 40


def test_every_file_is_one_series(root: Path) -> None:
    files = {file.name for file in tree.files(root) if file.text is not None}
    totals = {f"stats/{migrator}/{file}" for migrator in migration_tree.MIGRATORS for file in migration_tree.COUNTERS}
    assert len(emitted(root)) == len(files - totals) + len(migration_tree.REASONS)  # a bucket more: +Inf


def test_a_migrator_of_another_module_needs_no_rule(root: Path) -> None:
    for name, text in {"stats/my-copy/batches": "1", "stats/my-copy/odd_ns": "5", "my-copy/depth": "2",
                       "my-copy/note": 'a "b" \\c'}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    series = emitted(root)
    assert value(series, "ferry_copied_batches_total", migrator="my-copy") == 1
    assert value(series, "ferry_odd_seconds_total", migrator="my-copy") == 5e-9
    assert value(series, "ferry_my_copy_depth") == 2
    assert value(series, "ferry_setting_info", name="my-copy/note", value=r"a \"b\" \\c") == 1


def test_the_histogram_never_falls(root: Path) -> None:
    """The kernel counted a batch between the read of the buckets and that of the count."""
    migration_tree.add(root, "stats/reasons/demotion/locked/le_256us", 5)
    series = emitted(root)
    bounds = ["6.4e-05", "0.000256", "0.001024", "0.004096", "0.016384", "0.065536", "+Inf"]
    buckets = [value(series, "ferry_locked_seconds_bucket", reason="demotion", le=bound) for bound in bounds]
    assert buckets == [1, 6, 6, 6, 6, 6, 6]
    assert value(series, "ferry_locked_seconds_count", reason="demotion") == 6
    assert value(series, "ferry_locked_seconds_sum", reason="demotion") == 0.07035


def test_an_old_kernel_has_what_it_has(root: Path) -> None:
    for name in ("reasons", "stats/reasons", "dcbm", "migrc"):
        shutil.rmtree(root / name)
    names = {name for name, _ in emitted(root)}
    assert "ferry_copied_bytes_total" in names and not any("locked" in name or "migrc" in name for name in names)


def test_promtool_finds_nothing(root: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: Debian's package prometheus")
    text = exposition(tree.snapshot(root).values)
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_verb_prints_to_standard_output(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["metrics", "--root", str(root)]) == 0
    assert parse(capsys.readouterr().out) == emitted(root)


def expressions(node: object) -> Iterator[str]:
    """The queries of a dashboard."""
    if isinstance(node, dict):
        for key, inner in node.items():
            if key in ("expr", "query") and isinstance(inner, str):
                yield inner
            yield from expressions(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from expressions(inner)


def test_the_dashboard_asks_for_names_that_exist(root: Path) -> None:
    dashboard = json.loads((paths.repo_root() / "samples/grafana-dashboard.json").read_text())
    queries = list(expressions(dashboard))
    used = {name for query in queries for name in re.findall(r"ferry_\w+", query)}
    series = emitted(root)
    assert len(used) > 10 and used - {name for name, _ in series} == set()
    labels = {label for _, pairs in series for label, _ in pairs}
    grouped = {label.strip() for query in queries for group in re.findall(r"by \(([^)]*)\)", query)
               for label in group.split(",")}
    assert grouped and grouped - labels == {"instance"} & grouped
