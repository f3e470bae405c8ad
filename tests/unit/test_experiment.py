# SPDX-License-Identifier: GPL-2.0
"""The boots of a benchmark: their order and logs, and which of them is repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferry import boards, progress
from ferry.bench import experiment
from ferry.errors import FerryError, InfraError, Splat, TimedOut
from ferry.kernel.build import Kernel
from ferry.vm import boot, kvm

INT3 = "[    1.234567] Oops: int3: 0000 [#1] SMP\n"


class Guest:
    """Stands in for the boots: each raises the next error, after it has printed; without one it prints two samples."""

    def __init__(self, console: str, *errors: FerryError) -> None:
        self.console, self.errors, self.status = console, list(errors), 0
        self.booted: list[str] = []

    def boot(self, board: boards.Board, kernel: Kernel, command: str, *, share: Path,
             on_line: Callable[[str], object], **_: Any) -> boot.BootResult:
        assert command == "sh bench.sh" and (share / "bench.sh").read_text() == f"echo {share.name}\n"
        self.booted.append(share.name)
        console = share / "console.log"
        console.write_text(self.console if self.errors else "all is well\n")
        if self.errors:
            (share / "half.jsonl").write_text("half a resu")
            self.errors[0].log = console
            raise self.errors.pop(0)
        for line in ('{"event": "sample"}', "not one", '{"event": "sample"}'):
            on_line(line)
        return boot.BootResult(self.status, console, share)


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, guest: Guest, *names: str, board: str = "x86-numa",
        works: bool = False) -> list[str]:
    monkeypatch.setattr(kvm, "works", lambda _: works)
    monkeypatch.setattr(boot, "boot", guest.boot)
    kernel = Kernel(tmp_path, {}, tmp_path, "key", tmp_path, "7.3.4", tmp_path)
    boots = [experiment.Boot(name, boards.load(board), kernel, f"echo {name}\n", '"sample"', timeout_s=1)
             for name in names or ["0-ferry"]]
    return experiment.run(boots, tmp_path, "made up", 4)


def test_boots_come_in_order_are_counted_and_logged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    guest, moved = Guest(""), []
    monkeypatch.setattr(progress._PlainStage, "update", lambda self, done, total, text: moved.append((done, total)))
    assert run(monkeypatch, tmp_path, guest, "0-stock", "0-ferry") == []
    assert guest.booted == ["0-stock", "0-ferry"] and moved == [(1, 4), (2, 4), (3, 4), (4, 4)]
    log = (tmp_path / "console.log").read_text()
    assert log == "==== boot 0-stock ====\nall is well\n\n==== boot 0-ferry ====\nall is well\n\n"


def test_a_script_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    guest = Guest("")
    guest.status = 3
    with pytest.raises(InfraError, match="ended with 3"):
        run(monkeypatch, tmp_path, guest)


def test_a_boot_that_a_stale_int3_stopped_is_repeated_kept_and_told(monkeypatch: pytest.MonkeyPatch,
                                                                   tmp_path: Path) -> None:
    guest = Guest(INT3, Splat("kernel splat: Oops"))
    (warning,) = run(monkeypatch, tmp_path, guest)
    assert "boot 0-ferry was repeated" in warning and guest.booted == ["0-ferry", "0-ferry"]
    raw = tmp_path / "raw"
    assert (raw / "0-ferry-failed/half.jsonl").exists() and not (raw / "0-ferry/half.jsonl").exists()
    assert INT3 in (tmp_path / "console.log").read_text()


def test_it_is_repeated_only_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(Splat, match="again"):
        run(monkeypatch, tmp_path, Guest(INT3, Splat("Oops"), Splat("Oops again")))


def test_a_hang_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    guest = Guest(INT3, TimedOut("x86-numa: vng hangs"))
    with pytest.raises(TimedOut) as caught:
        run(monkeypatch, tmp_path, guest)
    assert guest.booted == ["0-ferry"] and caught.value.log == tmp_path / "console.log"


def test_any_other_splat_is_a_failure_whatever_an_earlier_boot_printed(monkeypatch: pytest.MonkeyPatch,
                                                                       tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(INT3)
    with pytest.raises(Splat):
        run(monkeypatch, tmp_path, Guest("BUG: KASAN: made up\n", Splat("kernel splat: BUG")))


@pytest.mark.parametrize(("board", "works"), [("x86-icount", False), ("x86-numa", True), ("uml", False)])
def test_without_several_threads_of_tcg_an_int3_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                             board: str, works: bool) -> None:
    with pytest.raises(Splat):
        run(monkeypatch, tmp_path, Guest(INT3, Splat("kernel splat: Oops")), board=board, works=works)
