# SPDX-License-Identifier: GPL-2.0
"""The suites of dcbm: what they hand to their scripts, and that the scripts announce what they report."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from ferry import boards, paths
from ferry.devices import faults
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.suites import dma, guest_boot
from ferry.suites.context import Context
from ferry.suites.dma import Case
from ferry.suites.guest_boot import Job
from ferry.suites.result import Outcome, Result
from ferry.vm import guest_programs

MODULES = {name: Path(f"/m m/{name}.ko") for name in ("ferry_mtcopy", "ferry_dcbm", "ferry_testdma", "ptdma",
                                                        "ae4dma", "dca", "ioatdma", "dmatest", "zynqmp_errors")}


DCBM = paths.repo_root() / "kernel/overlay/drivers/ferry/dcbm"
SCRIPT = (paths.repo_root() / "guest/scripts/dma-faults.sh").read_text()
FUNCTIONS = set(re.findall(r"^(\w+)\(\) \{", SCRIPT, re.MULTILINE))
VARIABLES = {"folios", "least", "may_hang", "movers", "nr_devices"}
COUNTERS = set(re.findall(r"TYPE\(DCBM_\w+, (\w+)\)", (DCBM / "internal.h").read_text()))
TESTDMA = {*re.findall(r'"(\w+)"', re.findall(r"testdma_names\[\] = \{(.*?)\};",
                                              (DCBM / "tests/testdma.c").read_text(), re.DOTALL)[0]), "late_ms"}
CASES = (*dma.TESTDMA_CASES, *dma.PTDMA_CASES, *dma.MIXED_CASES, *dma.IOAT_CASES, *dma.IOMMU_CASES,
         *dma.AE4DMA_CASES)


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
        bounce = [dma.BOUNCE] if name == "dma-swiotlb" else []
        assert list(append) == ([] if name == dma.NAME else [dma.POISON, *bounce])
        assert (context.board.name == dma.IOMMU_BOARD) == (name == "dma-faults-iommu")
        found.extend((built.key, job) for job in jobs)
        return []

    monkeypatch.setattr(build, "build", kernel)
    monkeypatch.setattr(guest_boot, "run_jobs", run_jobs)
    monkeypatch.setattr(guest_programs, "programs", lambda arch="x86_64": {"movebench": Path("/g/movebench"),
                                                                 "integrity": Path("/g/integrity"),
                                                                 "stallbench": Path("/g/stallbench")})
    return found


def test_ae4dma_has_a_boot_of_its_own(ran: list[tuple[str, Job]], tmp_path: Path) -> None:
    dma.run_faults(Context(boards.load("x86-ptdma"), tmp_path))
    names = ("dma-swiotlb", "dma-kunit", "dma-policy", "dma-faults", "dma-faults-iommu", "dma-faults-ae4dma",
             "dmatest")
    assert [(key, job.name) for key, job in ran] == [("debug", name) for name in names]
    assert all(("models ae4dma" in job.command) == (job.name == "dma-faults-ae4dma") for _, job in ran)


def test_only_where_no_iommu_prevents_it_pages_may_leak(ran: list[tuple[str, Job]], tmp_path: Path) -> None:
    dma.run_faults(Context(boards.load("x86-ptdma"), tmp_path))
    assert {job.name: leaks for _, job in ran for leaks in re.findall(r"ioatdma.ko' (\w+) ", job.command)} == {
        "dma-faults": "some", "dma-faults-iommu": "none", "dma-faults-ae4dma": "none"}


def test_a_suite_asked_for_by_name_moves_ten_thousand_folios(ran: list[tuple[str, Job]], tmp_path: Path) -> None:
    dma.run_faults(Context(boards.load("x86-ptdma"), tmp_path, thorough=True))
    assert ["dma-faults.sh 10000 " in job.command for _, job in ran] == [False] * 3 + [True] * 3 + [False]


def left(share: Path, refused: int, *, final: bool = True) -> None:
    """What the device models leave in the share of a boot in which a queue refused so many descriptors."""
    share.mkdir()
    queues = [{"queue": 0, "bad_addresses": 0}, {"queue": 1, "bad_addresses": refused}]
    (share / "dma-device.json").write_text(json.dumps({"final": final, "devices": {"ptdma": {"queues": queues}}}))


def judged(context: Context) -> dict[str, Result]:
    """The results about the device models in the boot behind an IOMMU, by name."""
    return {result.name: result for result in dma.run_faults(context) if "dma-faults-iommu" in result.name}


def test_an_access_that_the_device_models_refused_fails(ran: list[tuple[str, Job]], tmp_path: Path) -> None:
    context = Context(boards.load("x86-ptdma"), tmp_path)
    left(tmp_path / "dma-faults-iommu", 0)
    assert [result.outcome for result in judged(context).values()] == [Outcome.PASSED]
    left(tmp_path / "dma-faults-iommu-again", 2)
    first, again = judged(context).values()
    assert first.outcome is Outcome.PASSED and again.outcome is Outcome.FAILED
    assert "bad_addresses of queue 1 of ptdma: 2" in again.reason
    assert again.log == tmp_path / "dma-faults-iommu-again/dma-device.log"


def test_device_models_without_their_last_counters_fail(ran: list[tuple[str, Job]], tmp_path: Path) -> None:
    context = Context(boards.load("x86-ptdma"), tmp_path)
    assert [result.outcome for result in judged(context).values()] == [Outcome.FAILED]
    left(tmp_path / "dma-faults-iommu", 0, final=False)
    assert [result.outcome for result in judged(context).values()] == [Outcome.FAILED]


def test_the_channels_are_the_boards(ran: list[tuple[str, Job]], tmp_path: Path) -> None:
    dma.run(Context(boards.load("zcu102"), tmp_path))
    assert "dma.sh 16 " in ran[0][1].command


@pytest.mark.parametrize("script", ["dma.sh", "dma-policy.sh", "dma-swiotlb.sh", "dmatest.sh"])
def test_a_script_announces_as_many_results_as_it_has(script: str) -> None:
    text = (paths.repo_root() / "guest/scripts" / script).read_text()
    plan = re.search(r'echo "1\.\.(\d+)"', text)
    assert plan and int(plan[1]) == len(re.findall(r"^report ", text, re.MULTILINE))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_case_means_something_to_the_script(case: Case) -> None:
    assert case.argument.count("|") == 3
    assert case.action in FUNCTIONS
    assert case.evidence in COUNTERS | {"actions"} or case.evidence.startswith("/sys/")
    for command in case.setup.split("; "):
        words = shlex.split(command)
        if all("=" in word for word in words):
            assert {word.split("=")[0] for word in words} <= VARIABLES
            continue
        assert words[0] in FUNCTIONS
        if words[0] == "testdma":
            assert {word.split("=")[0] for word in words[2:]} <= TESTDMA
        if words[0] == "models":
            faults.parse(words[2], ("ptdma", "ae4dma", "ioat"))


def test_names_differ_within_a_boot() -> None:
    first = (*dma.TESTDMA_CASES, *dma.PTDMA_CASES, *dma.MIXED_CASES, *dma.IOAT_CASES)
    for cases in (first, dma.IOMMU_CASES, dma.AE4DMA_CASES):
        assert len({case.name for case in cases}) == len(cases)
