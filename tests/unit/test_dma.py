# SPDX-License-Identifier: GPL-2.0
"""The suites of dcbm: what they hand to their scripts, and that the scripts announce what they report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from ferry import boards, paths
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.suites import dma, guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result
from ferry.vm import guest_programs

MODULES = {name: Path(f"/m m/{name}.ko") for name in ("ferry_dcbm", "ferry_testdma", "ptdma", "ae4dma")}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Job]]:
    """The jobs of the boots that a suite asks for, with whether the debug kernel is booted."""
    found: list[tuple[str, Job]] = []

    def kernel(board: boards.Board, name: str, debug: bool = False) -> Kernel:
        return Kernel(Path("/m/Image"), MODULES, Path("/m/config"), "debug" if debug else "release", Path("/m/log"),
                      "7.3.4", Path("/m/tree"))

    def run_jobs(
        context: Context, built: Kernel, jobs: list[Job], name: str, append: Sequence[str] = ()
    ) -> list[Result]:
        assert list(append) == ([] if name == dma.NAME else [dma.POISON])
        found.extend((built.key, job) for job in jobs)
        return []

    monkeypatch.setattr(build, "build", kernel)
    monkeypatch.setattr(guest_boot, "run_jobs", run_jobs)
    monkeypatch.setattr(guest_programs, "programs", lambda arch="x86_64": {"movebench": Path("/g/movebench"),
                                                                 "integrity": Path("/g/integrity")})
    return found


def test_ae4dma_is_spared_the_debug_kernel(ran: list[tuple[str, Job]], tmp_path: Path) -> None:
    dma.run_faults(Context(boards.load("x86-ptdma"), tmp_path))
    assert [key for key, _ in ran] == ["debug", "release"]
    assert "ptdma.ko' -" in ran[0][1].command and "ae4dma" not in ran[0][1].command
    assert "- '/m m/ptdma.ko' '/m m/ae4dma.ko'" in ran[1][1].command


def test_a_suite_asked_for_by_name_moves_ten_thousand_folios(ran: list[tuple[str, Job]], tmp_path: Path) -> None:
    dma.run_faults(Context(boards.load("x86-ptdma"), tmp_path, thorough=True))
    assert all("dma-faults.sh 10000 " in job.command for _, job in ran)


def test_the_channels_are_the_boards(ran: list[tuple[str, Job]], tmp_path: Path) -> None:
    dma.run(Context(boards.load("zcu102"), tmp_path))
    assert "dma.sh 16 " in ran[0][1].command


def test_dma_sh_announces_as_many_results_as_it_has() -> None:
    text = (paths.repo_root() / "guest/scripts/dma.sh").read_text()
    plan = re.search(r'echo "1\.\.(\d+)"', text)
    assert plan and int(plan[1]) == len(re.findall(r"^report ", text, re.MULTILINE))


def test_dma_faults_sh_announces_as_many_results_as_it_has() -> None:
    text = (paths.repo_root() / "guest/scripts/dma-faults.sh").read_text()
    kinds = r"^\t(?:(?:testdma_case|injected_case) \"|slow_case$|allocation_case$)"
    engine = len(re.findall(kinds, text, re.MULTILINE))
    ptdma, ae4dma = (len(re.findall(rf"^\treal_case \"{name}:", text, re.MULTILINE)) for name in ("ptdma", "ae4dma"))
    assert all(f"tests + {cases} * 3))" in text for cases in (engine, ptdma, ae4dma))
    assert (engine + ptdma, ae4dma) == (dma.CASES, dma.CASES_AE4DMA)
