# SPDX-License-Identifier: GPL-2.0
"""Compilers and packages for an architecture that is not this machine's."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry import proc
from ferry.debian import apt, packages
from ferry.errors import InfraError
from ferry.kernel import build, toolchain
from ferry.vm import guest_programs


def test_this_machines_own_architecture_needs_no_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's Makefile ignores $CC."""
    monkeypatch.setenv("CC", "gcc-13")
    assert toolchain.make_variables("x86_64") == ["ARCH=x86_64"]
    assert (toolchain.compiler("x86_64"), toolchain.is_foreign("x86_64")) == ("gcc", False)
    assert toolchain.compiler("um") == toolchain.compiler() == "gcc"


def test_another_architecture_has_its_own_compiler() -> None:
    assert toolchain.make_variables("arm64") == ["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"]
    assert (toolchain.compiler("arm64"), toolchain.is_foreign("arm64")) == ("aarch64-linux-gnu-gcc", True)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """What apt-get would have been asked; it leaves a file as the real one does."""
    asked: list[list[str]] = []

    def run(command: list[str], *, cwd: Path, log: Path, **_: object) -> proc.Result:
        asked.append([str(word) for word in command])
        if "download" in command:
            (cwd / f"{command[-1]}_1.0_arm64.deb").touch()
        return proc.Result(0, 1.0, (), log)

    def unpack(command: list[object]) -> str:
        Path(str(command[-1]), "usr").mkdir()
        return ""

    monkeypatch.setenv("FERRY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(apt, "mirror", lambda etc=None: "http://m.example/debian")
    monkeypatch.setattr(apt, "release", lambda: "bookworm")
    monkeypatch.setattr(apt.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(proc, "run", run)
    monkeypatch.setattr(proc, "capture", unpack)
    return asked


def test_a_foreign_package_is_fetched_once_and_dpkg_is_not_told(fetched: list[list[str]]) -> None:
    home = packages.unpacked("libnuma-dev", "arm64")
    assert packages.unpacked("libnuma-dev", "arm64") == home and (home / "usr").is_dir()
    assert [command[-1] for command in fetched] == ["update", "libnuma-dev"]
    for command in fetched:
        assert "APT::Architecture=arm64" in command
        assert next(word for word in command if word.startswith("Dir::State::status=")).endswith("apt-arm64/status")


def test_a_package_that_was_interrupted_is_not_taken_for_whole(fetched: list[list[str]],
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "capture", lambda command: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        packages.unpacked("libnuma-dev", "arm64")
    assert not packages._home("libnuma-dev", "arm64").exists()


def test_what_the_cache_has_needs_no_mirror(fetched: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    def none(etc: Path | None = None) -> str:
        raise InfraError("apt's sources name no Debian mirror")

    home = packages.unpacked("libnuma-dev", "arm64")
    monkeypatch.setattr(apt, "mirror", none)
    assert packages.unpacked("libnuma-dev", "arm64") == home
    with pytest.raises(InfraError, match="no Debian mirror"):
        packages.unpacked("busybox-static", "arm64")


def test_guest_programs_differ_by_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "version", lambda arch="": f"gcc for {arch}")
    directory = build.paths.repo_root() / "guest"
    assert guest_programs._key(directory, "arm64") != guest_programs._key(directory, "x86_64")


def test_the_error_is_that_of_the_linker_and_no_command_line() -> None:
    found = "ld: libnuma.a(sysfs.o): in function `sysfs_read':\n(.text+0x0): multiple definition of `sysfs_read'"
    assert toolchain.first_error(["gcc -Werror -c a.c", *found.splitlines()]) == found.splitlines()[1]
    assert toolchain.first_error(["gcc -Werror -c a.c"]) == "see the log"
