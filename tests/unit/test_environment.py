# SPDX-License-Identifier: GPL-2.0
"""The surroundings of a measurement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ferry.bench import environment


def test_what_is_captured_fits_into_json_and_keeps_what_is_added() -> None:
    captured = environment.capture(config={"samples": 10})
    assert json.loads(json.dumps(captured)) == captured
    assert captured["config"] == {"samples": 10}
    assert captured["host"]["cpus"] >= 1 and captured["host"]["memory_bytes"] > 1 << 20


def test_the_host_is_not_named() -> None:
    assert os.uname().nodename not in json.dumps(environment.host())


def test_cpu_model(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Made Up 9000\nmodel name\t: other\n")
    assert environment.cpu_model(tmp_path / "cpuinfo") == "Made Up 9000"
    assert environment.cpu_model(tmp_path / "missing") is None


def test_a_tool_that_fails_or_is_missing_is_none() -> None:
    assert environment.first_line([sys.executable, "-c", "print('a'); print('b')"]) == "a"
    assert environment.first_line([sys.executable, "-c", "raise SystemExit(1)"]) is None
    assert environment.first_line(["/nonexistent/tool"]) is None


def test_a_busy_host_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([(1000, 2000), (1020, 2100)])
    monkeypatch.setattr(environment, "_jiffies", lambda: next(readings))
    share = environment.busy(0)
    assert share == pytest.approx(0.8)
    assert environment.warnings({"host": {"busy_before": share}}) == [
        "the host was busy with other things before this started (80% of its CPUs)"]
    assert environment.warnings({"host": {"busy_before": 0.02}}) == []


def test_burning_a_cpu_is_seen_in_proc_stat() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as burner:
        try:
            assert environment.busy(0.6) > 0.3 / len(os.sched_getaffinity(0))
        finally:
            burner.kill()
