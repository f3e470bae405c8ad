# SPDX-License-Identifier: GPL-2.0
"""QEMU's race: a boot is repeated only where it can be to blame, once, and never in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from ferry import boards
from ferry.errors import FerryError, Splat, TimedOut
from ferry.vm import kvm, tcg


@pytest.fixture
def share(tmp_path: Path) -> Path:
    made = tmp_path / "0-ferry"
    made.mkdir()
    (made / "sweep.sh").write_text("made up\n")
    return made


def failing(share: Path, console: str, *errors: FerryError) -> Callable[[], None]:
    """A sweep that raises the errors one by one, then succeeds."""
    left = list(errors)

    def sweep() -> None:
        assert (share / "sweep.sh").read_text() == "made up\n"
        if left:
            (share / "half.jsonl").write_text("half a resu")
            (share / "console.log").write_text(console)
            raise left.pop(0)
        (share / "whole.jsonl").write_text("whole\n")

    return sweep


def twice(share: Path, *errors: FerryError, console: str = "", board: str = "x86-numa",
          works: bool = False) -> list[str]:
    kernel = cast(Any, type("Kernel", (), {"image": share}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kvm, "works", lambda _: works)
        return tcg.twice(boards.load(board), kernel, share, failing(share, console, *errors))


def test_a_boot_that_ends_well_is_not_repeated(share: Path) -> None:
    assert twice(share) == []
    assert [path.name for path in share.parent.iterdir()] == ["0-ferry"]


def test_a_hang_is_repeated_kept_and_told(share: Path) -> None:
    warnings = twice(share, TimedOut("x86-numa: vng hangs"))
    assert len(warnings) == 1 and "boot 0-ferry was made twice: x86-numa: vng hangs" in warnings[0]
    assert (share.parent / "0-ferry-failed/half.jsonl").exists()
    assert not (share / "half.jsonl").exists() and (share / "whole.jsonl").exists()


def test_an_unknown_breakpoint_is_repeated(share: Path) -> None:
    assert len(twice(share, Splat("kernel splat: Oops"), console="Oops: int3: 0000 [#1] SMP\n")) == 1


def test_it_does_not_happen_twice(share: Path) -> None:
    with pytest.raises(TimedOut, match="again"):
        twice(share, TimedOut("hangs"), TimedOut("hangs again"))


def test_any_other_splat_is_the_kernels_whatever_an_earlier_boot_of_the_run_did(share: Path) -> None:
    log = share.parent / "console.log"
    log.write_text("Oops: int3: of an earlier boot\n")
    with pytest.raises(Splat):
        twice(share, Splat("kernel splat: BUG", log=log), console="BUG: KASAN: made up\n")


@pytest.mark.parametrize(("board", "works"), [("x86-icount", False), ("x86-numa", True), ("uml", False)])
def test_without_the_race_a_hang_is_the_kernels(share: Path, board: str, works: bool) -> None:
    with pytest.raises(TimedOut):
        twice(share, TimedOut("hangs"), board=board, works=works)
