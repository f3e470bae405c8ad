# SPDX-License-Identifier: GPL-2.0
"""The device tree of our own: what is near what, and that dtc takes it."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import pytest

from ferry import boards
from ferry.boards import Board, Node
from ferry.errors import InfraError, UsageError
from ferry.vm import devicetree


@pytest.fixture
def board() -> Board:
    return boards.load("zcu102")


def blocks(text: str, name: str) -> list[str]:
    """What stands between the braces of each node whose name starts with `name`."""
    return re.findall(rf"{name}[^{{;]*{{(.*?)}};", text, re.DOTALL)


def nodes(found: list[str]) -> list[int]:
    return [int(number) for block in found for number in re.findall(r"numa-node-id = <(\d+)>", block)]


def test_half_of_everything_is_near_each_node(board: Board) -> None:
    text = devicetree.source(board)
    assert nodes(blocks(text, "dma-controller@")) == [0] * 8 + [1] * 8
    assert nodes(blocks(text, "cpu@")) == [0, 0, 1, 1]
    assert nodes(blocks(text, "ram@")) == [0, 1]


def test_memory_is_the_boards_and_contiguous(board: Board) -> None:
    regions = [[int(word, 16) for word in re.findall(r"0x[0-9a-f]+", block)]
               for block in blocks(devicetree.source(board), "ram@")]
    assert regions == [[0, 0, 0, 1 << 30], [0, 1 << 30, 0, 1 << 30]]


def test_what_can_be_added_is_near_the_last_node_and_no_nodes_yet(board: Board) -> None:
    [block] = blocks(devicetree.source(board), "pmem@800000000")
    assert nodes([block]) == [1] and "device_type" not in block
    assert [int(word, 16) for word in re.findall(r"0x[0-9a-f]+", block)] == [8, 0, 0, board.added_mib << 20]


def test_there_need_be_none_to_add(board: Board) -> None:
    assert "pmem" not in devicetree.source(dataclasses.replace(board, added_mib=0))


@pytest.mark.parametrize(("added", "node", "machine"), [(256, 1024, 2304), (256, 256, 2304), (0, 256, 512)])
def test_what_can_be_added_lies_high_in_the_machine(board: Board, added: int, node: int, machine: int) -> None:
    nodes = (Node(node, "0-1"), Node(node, "2-3"))
    assert devicetree.machine_mib(dataclasses.replace(board, added_mib=added, nodes=nodes)) == machine


def test_behind_larger_nodes_nothing_can_be_added(board: Board) -> None:
    with pytest.raises(UsageError, match="2048 MiB together at most, not 4096"):
        devicetree.source(dataclasses.replace(board, nodes=(Node(2048, "0-1"), Node(2048, "2-3"))))


def test_no_node_is_named_as_those_that_qemu_replaces(board: Board) -> None:
    assert not re.search(r"^\s*memory", devicetree.source(board), re.MULTILINE)


def test_the_other_node_is_twice_as_far(board: Board) -> None:
    assert "distance-matrix = <0 0 10>, <0 1 20>, <1 1 10>;" in devicetree.source(board)


def test_no_two_devices_share_an_address_or_an_interrupt(board: Board) -> None:
    text = devicetree.source(board)
    for pattern in (r"@([0-9a-f]{8}) {", r"interrupts = <0 (\d+) 4>"):
        found = re.findall(pattern, text)
        assert len(found) >= 18 and len(set(found)) == len(found)


def test_a_node_may_have_no_cpus(board: Board) -> None:
    lopsided = dataclasses.replace(board, cpus=2, nodes=(Node(1024, "0-1"), Node(1024)))
    assert nodes(blocks(devicetree.source(lopsided), "cpu@")) == [0, 0]


@pytest.mark.parametrize(("text", "numbers"), [("", []), ("3", [3]), ("2-3", [2, 3])])
def test_cpus_in_qemus_spelling(text: str, numbers: list[int]) -> None:
    assert devicetree.cpu_numbers(text) == numbers


@pytest.mark.skipif(not shutil.which("dtc"), reason="dtc is not installed")
def test_dtc_takes_it_without_a_word(board: Board, tmp_path: Path) -> None:
    devicetree.compile_to(board, tmp_path / "board.dtb")
    assert (tmp_path / "board.dtb").read_bytes().startswith(b"\xd0\x0d\xfe\xed")
    assert (tmp_path / "board.log").read_text() == ""


@pytest.mark.skipif(not shutil.which("dtc"), reason="dtc is not installed")
def test_what_dtc_refuses_is_an_error_with_its_words(board: Board, tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devicetree, "source", lambda board: "/dts-v1/; / { half = ")
    with pytest.raises(InfraError, match="syntax error"):
        devicetree.compile_to(board, tmp_path / "board.dtb")
