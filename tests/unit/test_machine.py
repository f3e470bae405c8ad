# SPDX-License-Identifier: GPL-2.0
"""What the board `local` finds out about a machine, from a made-up /sys and /proc."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ferry import boards
from ferry.commands import doctor_local
from ferry.control import machine
from ferry.control.machine import Engine, MemoryNode
from ferry.errors import InfraError


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def node(root: Path, number: int, kib: int, cpus: str) -> None:
    home = f"sys/devices/system/node/node{number}"
    write(root, {f"{home}/meminfo": f"Node {number} MemTotal:   {kib} kB\nNode {number} MemFree:  1 kB",
                 f"{home}/cpulist": cpus})


def test_nodes_with_and_without_cpus_and_their_tiers(tmp_path: Path) -> None:
    node(tmp_path, 0, 2 << 20, "0-3")
    node(tmp_path, 10, 4 << 20, "")
    node(tmp_path, 2, 0, "4")
    tiers = "sys/devices/virtual/memory_tiering"
    write(tmp_path, {f"{tiers}/memory_tier4/nodelist": "0,2", f"{tiers}/memory_tier22/nodelist": "8-11"})
    assert machine.nodes(tmp_path) == [MemoryNode(0, 2048, "0-3", "memory_tier4"),
                                       MemoryNode(2, 0, "4", "memory_tier4"),
                                       MemoryNode(10, 4096, "", "memory_tier22")]


@pytest.mark.parametrize(("nodes", "ends"), [
    ({0: "0-1", 1: "2-3"}, (0, 1)),
    ({0: "", 1: "0-3"}, (1, 0)),
    ({0: "0-1", 1: "2-3", 2: ""}, (0, 2)),
    ({3: "0"}, (3,)),
    ({}, ()),
])
def test_memory_moves_from_a_node_with_cpus_to_one_without(tmp_path: Path, nodes: dict[int, str],
                                                           ends: tuple[int, ...]) -> None:
    for number, cpus in nodes.items():
        node(tmp_path, number, 1 << 20, cpus)
    assert machine.ends(tmp_path) == ends


def test_a_node_without_memory_is_no_end(tmp_path: Path) -> None:
    node(tmp_path, 0, 1 << 20, "0")
    node(tmp_path, 1, 0, "1")
    assert machine.ends(tmp_path) == (0,)


def test_lists_of_numbers() -> None:
    assert machine.numbers("0-2,7") == {0, 1, 2, 7} and machine.numbers("") == set()


def test_engines_with_their_drivers(tmp_path: Path) -> None:
    device, driver = tmp_path / "sys/devices/pci0000:00/0000:00:04.0", tmp_path / "sys/bus/pci/drivers/ptdma"
    write(tmp_path, {"sys/devices/pci0000:00/0000:00:04.0/numa_node": "1", "sys/bus/pci/drivers/ptdma/bind": ""})
    (device / "driver").symlink_to(driver)
    for number in range(2):
        channel = tmp_path / f"sys/class/dma/dma0chan{number}"
        channel.mkdir(parents=True)
        (channel / "device").symlink_to(device)
    assert machine.engines(tmp_path) == [Engine("0000:00:04.0", "ptdma", 1, 2)]
    assert machine.engines(tmp_path / "nothing") == []


def test_huge_pages(tmp_path: Path) -> None:
    mm = "sys/kernel/mm"
    write(tmp_path, {f"{mm}/transparent_hugepage/enabled": "always [madvise] never",
                     f"{mm}/transparent_hugepage/hugepages-2048kB/enabled": "always [inherit] madvise never",
                     f"{mm}/transparent_hugepage/hugepages-64kB/enabled": "always inherit madvise [never]",
                     f"{mm}/hugepages/hugepages-2048kB/nr_hugepages": "8",
                     f"{mm}/hugepages/hugepages-2048kB/free_hugepages": "6"})
    assert machine.huge_pages(tmp_path) == {"THP enabled": "madvise", "THP 64 kB": "never", "THP 2048 kB": "inherit",
                                            "hugetlb 2048 kB": "6 of 8 free"}


def test_a_module_is_there_or_has_a_file(tmp_path: Path) -> None:
    files = tmp_path / "lib/modules" / os.uname().release / "kernel/drivers/ferry"
    write(files, {"ferry_mtcopy.ko.xz": "", "ferry_dcbm.ko": "", "dmatest.ko": ""})
    (tmp_path / "sys/module/ferry_dcbm").mkdir(parents=True)
    assert machine.modules(tmp_path) == {"ferry_mtcopy": files / "ferry_mtcopy.ko.xz", "ferry_dcbm": None}


CPU = "sys/devices/system/cpu"


@pytest.mark.parametrize(("files", "words"), [
    ({f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave"}, "governor powersave"),
    ({f"{CPU}/intel_pstate/no_turbo": "0"}, "turbo is on"),
    ({f"{CPU}/cpufreq/boost": "1"}, "boost is on"),
    ({"proc/cpuinfo": "model name\t: QEMU TCG CPU version 2.5+"}, "emulated"),
    ({"proc/cpuinfo": "flags\t\t: fpu hypervisor lahf_lm"}, "virtual"),
    ({"proc/sys/kernel/numa_balancing": "1"}, "NUMA balancing"),
    ({"proc/sys/kernel/tainted": "512"}, "warned or failed"),
    ({"proc/lockdep": "all lock classes:"}, "debugging"),
    ({"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"}, "time from hpet"),
])
def test_what_makes_figures_worthless(tmp_path: Path, files: dict[str, str], words: str) -> None:
    write(tmp_path, files)
    (doubt,) = machine.doubts(tmp_path)
    assert words in doubt.reason


def test_a_quiet_machine_leaves_no_doubt(tmp_path: Path) -> None:
    write(tmp_path, {f"{CPU}/cpu0/cpufreq/scaling_governor": "performance", f"{CPU}/cpufreq/boost": "0",
                     f"{CPU}/intel_pstate/no_turbo": "1", "proc/sys/kernel/numa_balancing": "0",
                     "proc/sys/kernel/tainted": "4096", "proc/cpuinfo": "flags\t\t: fpu lahf_lm"})
    assert list(machine.doubts(tmp_path)) == []


def test_the_board_is_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "nodes", lambda: [MemoryNode(0, 64, "0", ""), MemoryNode(4, 32, "", "")])
    monkeypatch.setattr(machine, "ends", lambda: (0, 4))
    monkeypatch.setattr(machine, "engines", lambda: [Engine("a", "ioatdma", 0, 8), Engine("b", "ioatdma", 1, 8)])
    monkeypatch.setattr(machine, "hypervisor", lambda: "")
    monkeypatch.setattr(machine, "modules", lambda: {"ferry_dcbm": None})
    board = boards.load("local")
    assert (board.kind, board.channels, board.ends, board.memory_mib) == ("native", 16, (0, 4), 96)
    monkeypatch.setattr(machine, "modules", dict)
    monkeypatch.setattr(machine, "hypervisor", lambda: machine.EMULATOR)
    board = boards.load("local")
    assert (board.kind, board.channels) == ("emulated", 0)
    assert "local" not in boards.names()


def test_one_node_is_an_error_that_offers_something(monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(machine, "ends", lambda: (0,))
    with pytest.raises(InfraError, match="only 1 has memory") as caught:
        boards.two_nodes(boards.load("local"))
    assert "ferry test --board local" in str(caught.value.hint)
    found = {finding.what: finding for finding in doctor_local.findings()}
    assert not found["two nodes"].ok and "ferry test --board local" in found["two nodes"].next


def test_doctor_tells_doubts_from_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "doubts", lambda: iter([machine.Doubt("the CPUs run backwards", "turn them")]))
    said = [finding.line for finding in doctor_local.findings() if finding.doubt]
    assert said[-1] == f"{'DOUBT':8}{'figures':22}the CPUs run backwards; remedy: turn them"
