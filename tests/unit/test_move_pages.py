# SPDX-License-Identifier: GPL-2.0
"""The bench from options to exit status, with a guest that is made up."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_up
import pytest

from ferry.bench import environment, experiment, move_pages, stalls
from ferry.boards import Board, load
from ferry.commands import bench as bench_verb
from ferry.errors import AllSkipped, InfraError, Splat, UsageError
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.results import runs, stall_table, table
from ferry.vm import boot, guest_programs, kvm

COSTS = {"stock": 105.0, "off": 100.0, "kernel": 95.0, "mtcopy1": 98.0, "mtcopy2": 50.0, "mtcopy4": 40.0,
         "runs": 45.0}


class Guest:
    """Stands in for the boots: leaves what a guest would leave, and remembers what it was asked to run."""

    def __init__(self) -> None:
        self.scripts: list[tuple[str, str]] = []
        self.boards: list[Board] = []
        self.status = 0
        self.crash: Exception | None = None
        self.skipped: set[int] = set()
        self.spoil: dict[str, Any] = {}
        self.spoil_stalls: dict[str, Any] = {}

    def boot(self, board: Board, kernel: build.Kernel, command: str, *, timeout_s: float, share: Path,
             on_line: Callable[[str], object] | None = None, **_: Any) -> boot.BootResult:
        script = (share / experiment.SCRIPT).read_text()
        self.scripts.append((kernel.key, script))
        self.boards.append(board)
        console = share / "made-up-console"
        console.write_text("made-up console\n")
        if self.crash:
            raise self.crash
        labels = [label for label in COSTS if f"{label}:" in script]
        for size, name in ((4096, "4k"), (65536, "64k"), (2 << 20, "2m")):
            if f"--folio {name} " in script:
                self._leave(share, size, labels, int(script.split("--samples ")[1].split()[0]))
            if f"/{name}-stall.jsonl" in script:
                made_up.leave_stalls(share, f"{name}-stall", dict.fromkeys(labels, size), **self.spoil_stalls)
        return boot.BootResult(status=self.status, console=console, share=share)

    def _leave(self, share: Path, size: int, labels: list[str], count: int) -> None:
        if size in self.skipped:
            made_up.leave(share, size, "", status=4, stderr="movebench: no such folios\n")
        else:
            text = made_up.lines({label: COSTS[label] for label in labels}, size, count, **self.spoil)
            made_up.leave(share, size, text, kernel_folios=size, mtcopy_folios=size, runs_moved=size)


@pytest.fixture
def made_up_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guest:
    stand_in = Guest()

    def built(board: Board, name: str) -> build.Kernel:
        modules = {"ferry_mtcopy": tmp_path / "ferry_mtcopy.ko"}
        return build.Kernel(image=tmp_path, modules=modules, config=tmp_path, key=name, log=tmp_path,
                            version="made up", tree=tmp_path)

    monkeypatch.setattr(boot, "boot", stand_in.boot)
    monkeypatch.setattr(kvm, "works", lambda image: False)
    monkeypatch.setattr(build, "build", built)
    monkeypatch.setattr(guest_programs, "programs", lambda arch: {"movebench": tmp_path / "movebench",
                                                                 "stallbench": tmp_path / "stallbench"})
    monkeypatch.setattr(runs, "runs_dir", lambda: tmp_path / "runs")
    monkeypatch.setattr(environment, "capture", lambda **more: {"host": {"cpu": "made up", "busy_before": 0.0}, **more})
    return stand_in


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bench_verb.add_parser(parser.add_subparsers())
    return parser.parse_args(["bench", "move_pages", *words])


def bench(*words: str) -> int:
    args = parsed(*words)
    return bench_verb.run(args)


def test_the_sweep_of_make_run(made_up_guest: Guest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--report", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 2 and document["kind"] == "emulated" and document["baseline"] == "off"
    assert len(document["rows"]) == 6 * 3
    assert {(row["migrator"], row["threads"]) for row in document["rows"]} == {
        ("off", 1), ("kernel", 1), ("mtcopy", 1), ("mtcopy", 2), ("mtcopy", 4)}
    assert [row["runs"] for row in document["rows"]] == [False] * 5 * 3 + [True] * 3
    latest = tmp_path / "runs/latest"
    assert json.loads((latest / "result.json").read_text()) == [document]
    assert "made-up console" in (latest / "console.log").read_text()
    assert (latest / "report.html").stat().st_size > 10_000
    assert json.loads((latest / "meta.json").read_text()) == document["meta"]


def test_stalls_stand_beside_the_speed_of_their_folio_size(made_up_guest: Guest,
                                                            capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--quick", "--folio", "4k,64k,2m", "--migrator", "kernel", "--format", "json", "--report") == 0
    document = json.loads(capsys.readouterr().out)
    by_size = {size: [row for row in document["rows"] if row["folio_bytes"] == size] for size in (4096, 65536, 2 << 20)}
    assert all(row["stall_p99_us"] == pytest.approx((4096 + 1000) / 1000) and row["stall_p50_us"] == 1
               and row["stall_p999_us"] == 2 * row["stall_p99_us"] and row["stall_max_us"] == 3 * row["stall_p99_us"]
               and len(row["stall_samples"]) == stalls.SAMPLES for row in by_size[4096])
    assert all(row["stall_p99_us"] == pytest.approx(((2 << 20) + 1000) / 1000) for row in by_size[2 << 20])
    assert not any(key.startswith("stall") for row in by_size[65536] for key in row)
    assert "no_stalls" not in document
    page = (runs.runs_dir() / "latest/report.html").read_text()
    assert page.count("<th>stall µs\np50\np99\np99.9\nlongest</th>") == 2


def test_stalls_come_after_all_samples_and_in_the_same_configurations(made_up_guest: Guest) -> None:
    assert bench("--quick", "--folio", "4k,2m", "--baseline", "stock", "--migrator", "kernel") == 0
    (_, stock), (_, ours), *_ = made_up_guest.scripts
    for script in (stock, ours):
        programs = [line.split()[1].rpartition("/")[2] for line in script.splitlines() if line.startswith("{ ")]
        assert programs == ["movebench", "movebench", "stallbench", "stallbench"]
    assert "--config stock: --load-ms" not in stock and stock.count("--config stock:") == 4
    assert ours.count("--config off:runs=0,migrator=off --config kernel:runs=0,migrator=kernel") == 4
    assert "--samples 3" in ours and "--memory huge --waits" in ours.splitlines()[-2]


def test_a_failed_stall_makes_the_bench_fail(made_up_guest: Guest) -> None:
    made_up_guest.spoil_stalls = {"round_trips": 0}
    assert bench("--folio", "4k", "--migrator", "kernel") == 1
    assert runs.load("latest")[0]["rows"][-1]["failures"] == [
        {"boot": 0, "round": 2, "reason": "stall: no memory moved"}]
    made_up_guest.spoil_stalls = {"status": 1}
    assert bench("--folio", "4k", "--migrator", "kernel") == 1
    row = runs.load("latest")[0]["rows"][0]
    assert [failure["reason"] for failure in row["failures"]] == [
        "stall: stallbench exited with 1: stallbench: made up"] * 3
    assert row["stall_p99_us"] is None and row["stall_samples"] == [] and row["median"] is not None


def test_a_short_sample_without_a_wait_is_in_no_median(made_up_guest: Guest,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    made_up_guest.spoil_stalls = {"max_ns": 0}
    assert bench("--folio", "4k", "--migrator", "kernel", "--format", "markdown") == 0
    assert "medians of 2-3 short samples" in capsys.readouterr().out
    row = runs.load("latest")[0]["rows"][-1]
    assert row["stall_p99_us"] == pytest.approx((4096 + 500) / 1000)
    assert ["p99_us" in sample for sample in row["stall_samples"]] == [True, True, False]


def test_the_cell_of_a_row_says_what_it_lacks() -> None:
    (row, *_, other) = made_up.document()["rows"]
    row.update(dict.fromkeys(stall_table.BESIDE))  # type: ignore[typeddict-item]
    assert stall_table.beside(row) == ["no wait"] and stall_table.beside(other) == stall_table.beside(None) == ["-"]
    row["stall_samples"] = []
    assert stall_table.beside(row) == ["no sample"]


@pytest.mark.parametrize(("words", "reason"), [
    (("--board", "x86-icount"), "counts instructions"), (("--folio", "64k"), "in folios of 4k or 2m"),
    (("--kind", "shmem"), "anonymous memory"), (("--cpu-hogs", "1"), "keeps no CPU busy"),
    (("--order", "random"), "in order"), (("--pages-per-call", "32"), "by one call"),
    (("--read-only",), "writes to the memory"),
])
def test_a_sweep_without_stalls_says_why(words: tuple[str, ...], reason: str) -> None:
    args = parsed(*words)
    board = load(args.board)
    sweep = move_pages.plan_for(args, board)
    assert sweep.stalls == () and reason in stalls.why_none(sweep, board)
    document = made_up.document()
    document["no_stalls"] = stalls.why_none(sweep, board)
    assert f"no stalls: {document['no_stalls']}" in table.notes(document)


def test_only_the_cases_that_stallbench_has_are_measured() -> None:
    sweep = move_pages.plan_for(parsed("--folio", "4k,64k,2m", "--kind", "anon,shmem", "--order", "sequential,every8"),
                                load("x86-numa"))
    assert [case.name for case in sweep.stalls] == ["4k", "2m"] and stalls.why_none(sweep, load("x86-numa")) == ""


def test_boots_of_both_kernels_alternate(made_up_guest: Guest, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--quick", "--baseline", "stock", "--folio", "4k", "--format", "json") == 0
    assert [key for key, _ in made_up_guest.scripts] == ["stock", "ferry", "stock", "ferry"]
    assert "insmod" not in made_up_guest.scripts[0][1] and "insmod" in made_up_guest.scripts[1][1]
    assert "--samples 5 " in made_up_guest.scripts[0][1]
    document = json.loads(capsys.readouterr().out)
    assert document["baseline"] == "stock"
    assert all(len(row["samples"]) >= 10 for row in document["rows"])
    assert all([sample["boot"] for sample in row["stall_samples"]] == [0] * stalls.SAMPLES + [1] * stalls.SAMPLES
               for row in document["rows"])


def test_instructions_are_counted_on_one_cpu(made_up_guest: Guest, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--board", "x86-icount", "--quick", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["unit"] for row in document["rows"]} == {"instructions_per_page"}
    assert document["kind"] == "instructions"
    assert {row["threads"] for row in document["rows"]} == {1}


def test_a_failed_sample_makes_the_bench_fail(made_up_guest: Guest, tmp_path: Path) -> None:
    made_up_guest.spoil = {"pages_failed": 1}
    assert bench("--folio", "4k") == 1
    assert len(runs.load("latest")[0]["rows"][-1]["failures"]) == 1


def test_nothing_to_measure_is_no_run(made_up_guest: Guest, tmp_path: Path) -> None:
    made_up_guest.skipped = {65536}
    with pytest.raises(AllSkipped, match="no such folios"):
        bench("--folio", "64k")
    assert not (tmp_path / "runs/latest").exists()
    assert bench("--folio", "64k,4k") == 0


def test_a_guest_that_cannot_start_the_sweep_is_an_error(made_up_guest: Guest) -> None:
    made_up_guest.status = 3
    with pytest.raises(InfraError, match="ended with 3"):
        bench("--folio", "4k")


def test_a_splat_leaves_its_console_and_no_result(made_up_guest: Guest, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("kernel BUG at made-up\n")
    made_up_guest.crash = Splat("BUG", log=log)
    with pytest.raises(Splat) as caught:
        bench("--folio", "4k")
    assert caught.value.log is not None and "kernel BUG" in caught.value.log.read_text()
    assert caught.value.log.name == "console.log" and not list(tmp_path.glob("runs/*/result.json"))


@pytest.mark.parametrize("words", [("--threads", "65"), ("--threads", "0"), ("--channels", "65"), ("--folio", "5k"),
                                   ("--migrator", "dma"), ("--board", "uml"), ("--cpu-hogs", "4097"),
                                   ("--cpu-hogs", "-1"), ("--nontemporal", ","), ("--baseline", "mainline")])
def test_nonsense_is_a_usage_error(words: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed(*words)
    assert caught.value.code == 2


@pytest.mark.parametrize(("words", "message"), [
    (("--nontemporal", "always", "--migrator", "kernel"), "--nontemporal is of mtcopy"),
    (("--verify", "always"), "--verify is of dcbm"), (("--force-offload",), "--force-offload is of dcbm and auto"),
])
def test_an_option_of_a_migrator_that_is_not_measured_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        move_pages.plan_for(parsed(*words), load("x86-numa"))


def test_no_samples_are_not_the_default_number_of_samples() -> None:
    with pytest.raises(UsageError, match="0 samples are too few"):
        move_pages.plan_for(parsed("--samples", "0"), load("x86-numa"))


def test_memory_has_the_folio_sizes_that_it_can_have() -> None:
    def sizes(*words: str) -> list[int]:
        return [case.folio_bytes for case in move_pages.plan_for(parsed(*words), load("x86-numa")).cases]

    assert sizes() == [4 << 10, 64 << 10, 2 << 20]
    assert sizes("--read-only") == [4 << 10, 2 << 20] and sizes("--kind", "swapcache") == [4 << 10]
    with pytest.raises(UsageError, match="does not come in folios of 64k"):
        sizes("--read-only", "--folio", "4k,64k")
    with pytest.raises(UsageError, match="does not come in folios of 2m"):
        sizes("--kind", "swapcache", "--folio", "2m")
    with pytest.raises(UsageError, match="for anonymous memory"):
        sizes("--read-only", "--kind", "shmem", "--folio", "4k")


def test_hugetlb_memory_comes_in_folios_of_2m_and_1g() -> None:
    def cases(*words: str) -> list[tuple[str, int]]:
        sweep = move_pages.plan_for(parsed(*words), load("x86-numa"))
        return [(case.name, case.total_bytes) for case in sweep.cases]

    assert cases("--kind", "hugetlb") == [("hugetlb-2m", 256 << 20)]
    assert cases("--kind", "hugetlb", "--folio", "2m,1g") == [("hugetlb-2m", 256 << 20), ("hugetlb-1g", 1 << 30)]
    assert cases("--kind", "hugetlb", "--folio", "1g", "--cpu-hogs", "4") == [("hugetlb-1g", 1 << 30)]
    with pytest.raises(UsageError, match=r"hugetlb.* does not come in folios of 4k"):
        cases("--kind", "hugetlb", "--folio", "4k")
    for kind in ("anon", "shmem", "file", "swapcache"):
        with pytest.raises(UsageError, match="does not come in folios of 1g"):
            cases("--kind", kind, "--folio", "1g")
    with pytest.raises(UsageError, match="for anonymous memory"):
        cases("--kind", "hugetlb", "--read-only")


def test_folios_of_1g_get_a_board_that_has_them(made_up_guest: Guest) -> None:
    assert bench("--folio", "4k") == 0
    assert bench("--kind", "hugetlb", "--folio", "1g") == 1, "this guest makes up no sample of hugetlb"
    small, large = made_up_guest.boards
    assert small == load("x86-numa")
    assert [node.memory_mib for node in large.nodes] == [4096, 2048]
    assert large.append[-2:] == ("hugepagesz=1G", "hugepages=0:1,1:1")
    with pytest.raises(UsageError, match="zcu102 has no memory for folios of 1g"):
        bench("--kind", "hugetlb", "--folio", "1g", "--board", "zcu102")


def test_the_bar_is_as_long_as_the_sweep() -> None:
    args = parsed("--baseline", "stock", "--quick", "--folio", "4k", "--threads", "1,2")
    sweep = move_pages.plan_for(args, load("x86-numa"))
    assert move_pages.rounds(sweep) == 2 * (5 + 1 + stalls.SAMPLES) * (5 + 1)


def test_dcbm_needs_a_board_with_an_engine() -> None:
    with pytest.raises(UsageError, match="no DMA engine"):
        move_pages.plan_for(parsed("--migrator", "dcbm"), load("x86-numa"))
    assert not any(one.migrator == "dcbm" for one in move_pages.plan_for(parsed(), load("x86-numa")).configs)


def test_the_drivers_of_a_boards_engines_are_loaded_before_dcbm() -> None:
    modules = {name: Path(f"/m/{name}.ko") for name in ("ptdma", "ae4dma", "ferry_dcbm")}
    kernel = Kernel(Path("/m/bzImage"), modules, Path("/m/config"), "key", Path("/m/log"), "7.3.4", Path("/m/tree"))
    assert move_pages.insmods(kernel, [*load("x86-ptdma").drivers, "ferry_dcbm"]) == [
        ["insmod", "/m/ptdma.ko"], ["insmod", "/m/ae4dma.ko", "max_hw_q=16"], ["insmod", "/m/ferry_dcbm.ko"]]


def test_lists_of_kinds_calls_and_orders_are_cases_of_their_own() -> None:
    sweep = move_pages.plan_for(parsed("--folio", "4k", "--kind", "anon,shmem", "--pages-per-call", "1,32", "--order",
                                       "random,every8", "--board", "x86-icount"), load("x86-icount"))
    assert len({case.name for case in sweep.cases}) == 2 * 2 * 2
