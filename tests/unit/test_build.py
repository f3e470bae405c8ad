# SPDX-License-Identifier: GPL-2.0
"""Configurations, keys, and what becomes of a build that fails or is cut short."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from tiny_kernel import make_clone, make_source, make_tree, write

from ferry import boards, paths, progress
from ferry.boards import Board
from ferry.errors import InfraError, UsageError
from ferry.kernel import build, config
from ferry.series.source import Source


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    made = make_clone(monkeypatch, tmp_path)
    write(made / "kernel/configs", {"base.config": "CONFIG_NUMA=y\n", "ferry.config": "CONFIG_FERRY=y\n",
                                    "debug.config": "CONFIG_DEBUG_VM=y\n"})
    return made


@pytest.fixture
def base(tmp_path: Path) -> Source:
    return make_source(make_tree(tmp_path / "linux"))


@pytest.fixture
def board() -> Board:
    return dataclasses.replace(boards.load("x86-numa"), configs=("base",), ferry_configs=("ferry",),
                               debug_configs=("debug",), ferry_debug_configs=(), external=(), ferry_external=(),
                               image="vmlinux", targets=("vmlinux",))


def test_every_board_loads_and_its_fragments_are_there() -> None:
    for name in boards.names():
        loaded = boards.load(name)
        assert loaded.name == name
        for kernel in ("stock", "ferry"):
            assert config.fragments(loaded, kernel, debug=True)


def test_boards_that_share_a_build_share_its_kernels() -> None:
    """Otherwise each would undo the other's objects."""
    made: dict[str, set[tuple[object, ...]]] = {}
    for board in map(boards.load, boards.names()):
        made.setdefault(board.build, set()).add((
            board.arch, board.image, board.targets, board.configs, board.ferry_configs, board.debug_configs,
            board.ferry_debug_configs, board.external, board.ferry_external))
    assert {build: len(kinds) for build, kinds in made.items() if len(kinds) > 1} == {}


def test_release_kernels_have_no_debug_option() -> None:
    """A figure of a kernel with DEBUG_VM is a figure of DEBUG_VM."""
    for name in boards.names():
        asked = {key for path in config.fragments(boards.load(name), "ferry", False) for key in config.requested(path)}
        assert not asked & {"DEBUG_VM", "PROVE_LOCKING", "KASAN", "PAGE_TABLE_CHECK"}


def test_unknown_board_lists_the_known() -> None:
    with pytest.raises(UsageError) as caught:
        boards.load("vax")
    assert "x86-numa" in str(caught.value.hint)


def test_vanished_symbol_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"a.config": "CONFIG_NUMA=y\nCONFIG_FERRY=m\n# CONFIG_VT is not set\n",
                     ".config": "CONFIG_NUMA=y\nCONFIG_VT=y\n"})
    with pytest.raises(InfraError) as caught:
        config.check_survived(tmp_path / ".config", [tmp_path / "a.config"])
    assert "CONFIG_FERRY=m (a.config; got n)" in caught.value.cause
    assert "CONFIG_VT=n (a.config; got y)" in caught.value.cause
    assert "NUMA" not in caught.value.cause
    assert caught.value.status == 3


def test_later_fragment_overrides_an_earlier(tmp_path: Path) -> None:
    write(tmp_path, {"a.config": "CONFIG_X=y\n", "b.config": "CONFIG_X=m\n", ".config": "CONFIG_X=m\n"})
    config.check_survived(tmp_path / ".config", [tmp_path / "a.config", tmp_path / "b.config"])
    with pytest.raises(InfraError):
        config.check_survived(tmp_path / ".config", [tmp_path / "b.config", tmp_path / "a.config"])


def test_stock_is_ferry_without_its_own_fragments(clone: Path, board: Board) -> None:
    ferry, stock = (config.fragments(board, kernel, False) for kernel in ("ferry", "stock"))
    assert [path.name for path in set(ferry) - set(stock)] == ["ferry.config"]


def test_key_follows_what_goes_in_and_nothing_else(clone: Path, base: Source, board: Board) -> None:
    def key(kernel: str = "ferry", debug: bool = False) -> str:
        return build.kernel_key(base, board, kernel, debug)

    first, stock = key(), key("stock")
    assert len({first, stock, key(debug=True)}) == 3
    write(clone / "kernel/overlay", {"Documentation/mm/ferry.rst": "words\n"})
    assert key() == first
    write(clone / "kernel/overlay", {"mm/ferry/core.c": "int changed;\n"})
    assert key() != first
    assert key("stock") == stock
    write(clone / "kernel/configs", {"base.config": "CONFIG_NUMA=n\n"})
    assert key("stock") != stock


def pretend_make(monkeypatch: pytest.MonkeyPatch, base: Source, calls: list[Path], *, fail: bool = False) -> None:
    """A source, a configuration and a make that take no time."""
    def configure(tree: Path, objects: Path, arch: str, files: list[Path]) -> Path:
        write(objects, {".config": ""})
        return objects / ".config"

    def make(where: Path, objects: Path, arch: str, targets: tuple[str, ...], log: Path,
             stage: progress.Stage, steps: int) -> None:
        calls.append(where)
        write(objects, {"vmlinux": "image", "System.map": "", "build.log": ""})
        write(objects, {"modules.order": "drivers/ferry/a_b.o\n", "drivers/ferry/a_b.ko": "module"})
        if fail:
            raise KeyboardInterrupt

    monkeypatch.setattr(build.source, "obtain", lambda: base)
    monkeypatch.setattr(config, "configure", configure)
    monkeypatch.setattr(build, "make", make)


def test_second_build_builds_nothing(clone: Path, base: Source, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []
    pretend_make(monkeypatch, base, calls)
    first = build.build(board, "ferry")
    assert build.build(board, "ferry") == first
    assert len(calls) == 1
    assert first.image.read_text() == "image"
    assert first.modules["a_b"].read_text() == "module"


def test_a_build_applies_the_series_once(clone: Path, base: Source, board: Board,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_make(monkeypatch, base, [])
    real, applied = build.tree.prepare, []
    monkeypatch.setattr(build.tree, "prepare", lambda *words: applied.append(words) or real(*words))
    build.build(board, "ferry")
    assert len(applied) == 1


def test_modules_with_our_symbols_are_of_our_kernel_only(clone: Path, base: Source, board: Board) -> None:
    write(clone, {"samples/m/Kbuild": "obj-m := plain.o\n", "samples/m/plain.c": "one\n"})
    mine = dataclasses.replace(board, ferry_external=("samples/m",))
    before = [build.kernel_key(base, mine, kernel, False) for kernel in ("ferry", "stock")]
    write(clone, {"samples/m/plain.c": "two\n"})
    after = [build.kernel_key(base, mine, kernel, False) for kernel in ("ferry", "stock")]
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, True]


def test_interrupted_build_is_not_taken_for_whole(clone: Path, base: Source, board: Board,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []
    pretend_make(monkeypatch, base, calls, fail=True)
    with pytest.raises(KeyboardInterrupt):
        build.build(board, "ferry")
    pretend_make(monkeypatch, base, calls)
    assert build.build(board, "ferry").image.is_file()
    assert len(calls) == 2


def test_half_published_kernel_is_not_taken_for_whole(clone: Path, base: Source, board: Board,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up while the artefacts are copied."""
    calls: list[Path] = []
    pretend_make(monkeypatch, base, calls)
    real = json.dumps

    def full(*args: object, **kwargs: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build.json, "dumps", full)
    with pytest.raises(OSError, match="No space"):
        build._build_and_publish(base, board, "stock", False, build._home(base, board, "stock", False))
    monkeypatch.setattr(build.json, "dumps", real)
    assert not list((paths.cache_dir() / "kernels").iterdir())


def test_a_kernel_is_not_published_under_the_key_of_other_sources(clone: Path, base: Source, board: Board,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """The clone changes while make runs."""
    pretend_make(monkeypatch, base, [])
    keys = iter(["before", "before", "after"])
    monkeypatch.setattr(build, "kernel_key", lambda *arguments: next(keys))
    with pytest.raises(InfraError, match="were changed while"):
        build.build(board, "ferry")
    assert not (paths.cache_dir() / "kernels/before").exists()


def test_full_disk_is_said_before_the_build(clone: Path, base: Source, board: Board,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_make(monkeypatch, base, [])
    monkeypatch.setattr(build, "BUILD_BYTES", 1 << 60)
    with pytest.raises(InfraError, match="are free") as caught:
        build.build(board, "ferry")
    assert "--cache" in str(caught.value.hint)


@pytest.mark.parametrize(("text", "cause"), [
    ("  CC a.o\nmm/a.c:3:1: error: expected ';'\nmake[1]: *** [Makefile:9: mm/a.o] Error 1\n", "expected ';'"),
    ("ld: final link failed: No space left on device\nmake: *** Error 1\n", "the disk is full"),
    ("ERROR: modpost: \"x\" [a.ko] undefined!\nmake: *** [x] Error 2\n", "undefined!"),
    ("make: *** No rule to make target 'vmlinuz'.  Stop.\n", "No rule to make target"),
    ("", "does not build"),
])
def test_build_error_names_the_first_cause(tmp_path: Path, text: str, cause: str) -> None:
    write(tmp_path, {"build.log": text})
    error = build.build_error(tmp_path / "build.log")
    assert cause in error.cause
    assert error.log == tmp_path / "build.log"
