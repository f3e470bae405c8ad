# SPDX-License-Identifier: GPL-2.0
"""From executed blocks to a call tree and phases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ferry import paths
from ferry.errors import InfraError
from ferry.profile import calltree, output, phases, recording, trace
from ferry.profile.calltree import Node
from ferry.profile.move_pages import Profile, supported
from ferry.profile.trace import USER, Block, Blocks, Symbols
from ferry.vm import plugin

KALLSYMS = """\
ffffffff81000100 T entry_SYSCALL_64
ffffffff81000200 T do_syscall_64
ffffffff81000300 t migrate_pages
ffffffff81000300 t an_alias
ffffffff81000400 t folio_mc_copy
ffffffff81000500 t folio_mc_copy.cold
ffffffff81000600 T asm_timer
ffffffff81000700 t schedule
ffffffff81000780 t __switch_to_asm
ffffffff81000800 t kthread
ffffffff81000900 d some_data
"""
BASE = 0xFFFFFFFF81000000
SYMBOLS = Symbols(KALLSYMS)


def block(offset: int, insns: int, kind: str, size: int = 16) -> Block:
    """A block of the made-up kernel; offset 0 is user space."""
    address = BASE + offset if offset else 0x1000
    name, begins = SYMBOLS.at(address)
    return Block(name, begins == address, address, address + size, insns, kind)


def tree(*blocks: Block) -> Node:
    """The call tree of one window."""
    numbered = dict(enumerate(blocks))
    return calltree.build([np.array(list(numbered), dtype=np.uint32)], Blocks(numbered))


def totals(root: Node) -> dict[str, int]:
    return {" ".join(path[1:]): node.insns for path, node in root.walk() if node.insns}


@pytest.mark.parametrize(("code", "kind"), [
    ("e800000000", "call"), ("ffd0", "call"), ("41ff5424", "call"), ("2e41ffd3", "call"), ("ffe0", "other"),
    ("c3", "ret"), ("f3c3", "ret"), ("c20800", "ret"), ("48cf", "iret"), ("0f05", "syscall"), ("480f07", "sysret"),
    ("0f85aabbccdd", "other"), ("7405", "other"), ("90", "other")])
def test_how_an_instruction_leaves_a_block(code: str, kind: str) -> None:
    assert trace.kind_of(bytes.fromhex(code)) == kind


def test_a_symbol_is_found_by_any_address_in_it() -> None:
    assert SYMBOLS.at(BASE + 0x234) == ("do_syscall_64", BASE + 0x200)
    assert SYMBOLS.at(BASE + 0x300)[0] == "migrate_pages" and SYMBOLS.at(BASE + 0x510)[0] == "folio_mc_copy"
    assert SYMBOLS.at(0x400000)[0] == USER


def test_calls_and_returns_make_a_tree() -> None:
    found = tree(block(0, 2, "syscall"), block(0x100, 3, "call"), block(0x200, 5, "call"), block(0x300, 7, "call"),
                 block(0x400, 11, "ret"), block(0x310, 13, "ret"), block(0x210, 17, "ret"), block(0x110, 19, "sysret"),
                 block(0, 23, "other"))
    call = f"{USER} entry_SYSCALL_64"
    assert totals(found) == {
        USER: 25, call: 22, f"{call} do_syscall_64": 22, f"{call} do_syscall_64 migrate_pages": 20,
        f"{call} do_syscall_64 migrate_pages folio_mc_copy": 11}
    assert found.total() == 100


def test_a_jump_to_another_function_is_a_tail_call() -> None:
    found = tree(block(0x200, 1, "call"), block(0x300, 2, "other"), block(0x400, 3, "ret"), block(0x210, 4, "other"))
    (top,) = [node for _, node in found.walk() if node.function == "do_syscall_64"]
    assert top.insns == 5 and list(top.children) == ["migrate_pages"]
    assert list(top.children["migrate_pages"].children) == ["folio_mc_copy"]


def test_an_interrupt_is_a_tree_of_its_own_and_the_function_goes_on() -> None:
    found = tree(block(0x300, 1, "call"), block(0x600, 50, "iret"), block(0x400, 3, "ret"), block(0x310, 4, "other"))
    assert found.children["asm_timer"].insns == 50
    (copy,) = [path for path, node in found.walk() if node.function == "folio_mc_copy"]
    assert copy[-2] == "migrate_pages"


def test_a_task_that_slept_goes_on_where_it_was() -> None:
    ours, theirs = block(0x310, 5, "other"), block(0x810, 70, "call")
    switch = (block(0x700, 2, "call"), block(0x780, 1, "ret"), block(0x710, 3, "ret"))
    found = tree(block(0x300, 1, "call"), *switch, theirs, *switch, ours)
    assert found.children[calltree.LOST].total() == 76
    (mine,) = [node for path, node in found.walk() if node.function == "migrate_pages"]
    assert mine.insns == 6


def test_another_program_does_not_return_into_our_system_call() -> None:
    """All system calls return to the same place, and those of a program that slept before were not recorded."""
    switch = (block(0x700, 2, "call"), block(0x780, 1, "ret"), block(0x710, 3, "ret"))
    begin = (block(0, 1, "syscall"), block(0x100, 1, "call"), block(0x200, 1, "call"), block(0x300, 1, "call"), *switch)
    other = (block(0x810, 70, "ret"), block(0x210, 70, "ret"), block(0x110, 70, "sysret"), block(0, 70, "syscall"),
             block(0x100, 70, "call"), block(0x200, 70, "call"), *switch)
    found = tree(*begin, *other, block(0x310, 5, "ret"), block(0x210, 7, "ret"), block(0x110, 9, "sysret"))
    (mine,) = [node for path, node in found.walk() if node.function == "migrate_pages"]
    assert mine.insns == 6 and found.children[USER].total() == 4 + 6 + 5 + 7 + 9


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_a_loop_is_one_stretch_wherever_a_chunk_ends(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(trace, "_CHUNK", chunk)
    blocks = Blocks({1: block(0x200, 1, "call"), 4: block(0x400, 2, "other"), 5: block(0x410, 3, "ret"),
                     7: block(0x210, 5, "call")})
    window = np.array([1, 4, 4, 4, 5, 7, 5], dtype=np.uint32)
    if chunk == 1000:
        assert [stretch.insns for stretch in blocks.stretches(window)] == [1, 9, 5, 3]
    found = calltree.build([window], blocks)
    assert totals(found) == {f"{USER} do_syscall_64": 6, f"{USER} do_syscall_64 folio_mc_copy": 12}
    assert found.total_of("folio_mc_copy") == 12 and found.total_of("do_syscall_64") == 18


def test_a_block_that_stopped_at_a_device_has_not_returned() -> None:
    found = tree(block(0x200, 1, "call"), block(0x300, 2, "ret"), block(0x308, 3, "ret", size=8),
                 block(0x210, 4, "other"))
    assert totals(found) == {f"{USER} do_syscall_64": 5, f"{USER} do_syscall_64 migrate_pages": 5}


def test_phases_begin_at_the_nearest_caller() -> None:
    root = Node("all")
    call = root.child(USER).child("__x64_sys_move_pages")
    call.insns = 3
    call.child("migrate_pages").insns = 5
    batch = call.child("migrate_pages").child("migrate_pages_batch")
    batch.child("rmap_walk").child("rmap_walk_anon").insns = 7
    batch.child("try_to_migrate").child("rmap_walk").insns = 11
    root.child("asm_timer").insns = 13
    found = phases.split(root)
    assert sum(found.values()) == root.total()
    assert {phase: count for phase, count in found.items() if count} == {
        phases.CALL: 3, "batch lists and locks": 5, "map": 7, "unmap": 11, phases.OTHER: 13}


def test_each_function_begins_one_phase() -> None:
    assert len(phases.names()) == len(set(phases.names()))
    assert all(function.count(" > ") <= 1 for function in phases.load())


def test_files_of_the_plugin_are_read_back(tmp_path: Path) -> None:
    (tmp_path / "a.blocks").write_text(f"7 {BASE + 0x300:x} 4 10 e800000000\n9 {BASE + 0x400:x} 6 1f c3\n")
    found = trace.blocks(tmp_path / "a.blocks", SYMBOLS).by_number
    assert found[7] == Block("migrate_pages", True, BASE + 0x300, BASE + 0x310, 4, "call")
    assert found[9].next_address == BASE + 0x41F
    np.array([0xFFFFFFFF, 7, 9, 0xFFFFFFFE, 0xFFFFFFFF, 9, 0xFFFFFFFE], dtype=np.uint32).tofile(tmp_path / "a.trace")
    assert [window.tolist() for window in trace.windows(tmp_path / "a.trace")] == [[7, 9], [9]]
    np.array([0xFFFFFFFF, 7], dtype=np.uint32).tofile(tmp_path / "a.trace")
    with pytest.raises(InfraError, match="did not end"):
        trace.windows(tmp_path / "a.trace")


def test_the_plugin_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path))
    built = plugin.built(recording.PLUGIN)
    assert built.stat().st_size > 1000 and built.is_relative_to(tmp_path)


def test_our_functions_that_begin_a_phase_exist() -> None:
    """A function that is renamed would silently count for its caller."""
    overlay = "".join(path.read_text() for path in (paths.repo_root() / "kernel/overlay/mm").rglob("*.[ch]"))
    ours = {function for name in phases.load() for function in name.split(" > ") if "ferry" in function}
    assert ours and not [function for function in ours if f"{function}(" not in overlay]


def test_only_a_counted_clock_and_one_cpu_can_be_profiled() -> None:
    assert supported() == ["x86-icount"]


def test_a_profile_as_table_json_and_plot(tmp_path: Path) -> None:
    root = tree(block(0, 2, "syscall"), block(0x100, 3, "call"), block(0x300, 7, "call"), block(0x400, 88, "other"))
    profiles = [Profile(name, "ferry", 10, root, 10.1) for name in ("off", "runs")]
    made = output.output("move_pages", "x86-icount", profiles, with_tree=True)
    assert [grid.rows[-2][1:] for grid in made.grids[:1]] == [[["10.00"], ["10.00"]]]
    column = made.data["columns"][0]
    assert sum(column["phases"].values()) == column["all"] == 10 and column["clock"] == 10.1
    assert {"path": ["all", USER, "entry_SYSCALL_64", "migrate_pages", "folio_mc_copy"], "own": 8.8,
            "calls": 0.1} in column["tree"]
    output.plot("move_pages", "x86-icount", profiles, tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()
