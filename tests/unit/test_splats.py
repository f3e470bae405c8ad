# SPDX-License-Identifier: GPL-2.0
"""The verb `splats`: the running kernel's log, a file, and what the log has lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry import proc
from ferry.commands import cli
from ferry.control import machine

QUIET = "[    0.000000] Linux version 7.3.4\n"
WARNED = f"{QUIET}[    3.100000] WARNING: mm/migrate.c:1200 at migrate_folio+0x5/0x10\n[    3.200000] Call Trace:\n"


@pytest.mark.parametrize(("log", "tainted", "status", "printed"), [
    (QUIET, 0, 0, ""),
    (WARNED, 512, 5, "WARNING: WARNING: mm/migrate.c:1200 at migrate_folio+0x5/0x10\n"),
    (WARNED, 0, 5, "WARNING: WARNING: mm/migrate.c:1200 at migrate_folio+0x5/0x10\n"),
    (QUIET, 512, 5, "tainted 512: the kernel has warned or failed, and its log has lost the report\n"),
    ("", 16384, 5, "tainted 16384: the kernel has warned or failed, and its log has lost the report\n"),
    ("", 4096, 0, ""),
])
def test_the_running_kernel(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], log: str, tainted: int,
                            status: int, printed: str) -> None:
    monkeypatch.setattr(proc, "capture", lambda command: log if command == ["dmesg"] else "")
    monkeypatch.setattr(machine, "_text", lambda path: str(tainted) if path.name == "tainted" else "")
    assert (cli.main(["splats"]), capsys.readouterr().out) == (status, printed)


def test_of_a_file_only_its_lines_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(machine, "failed", lambda: 512)
    path = tmp_path / "console.log"
    path.write_text(QUIET)
    assert cli.main(["splats", str(path)]) == 0
    path.write_text(WARNED)
    assert cli.main(["splats", str(path)]) == 5
    assert cli.main(["splats", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_kernel_has_failed_by_its_flags(tmp_path: Path) -> None:
    """An out-of-tree module (4096) is no failure; a soft lockup (16384) is one."""
    path = tmp_path / "proc/sys/kernel/tainted"
    path.parent.mkdir(parents=True)
    for flags, failed in ((0, 0), (4096, 0), (4096 + 512, 4608), (128, 128), (16384, 16384)):
        path.write_text(f"{flags}\n")
        assert machine.failed(tmp_path) == failed
