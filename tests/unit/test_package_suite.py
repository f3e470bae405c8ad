# SPDX-License-Identifier: GPL-2.0
"""The suite `package`: a boot's checks, a power cut, and what its results say, with a made-up QEMU."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ferry.suites import package, package_boot, package_disk
from ferry.suites.package import Machine
from ferry.suites.package_disk import Disk
from ferry.suites.result import Outcome

DEBIANS, OURS = "7.3.4+deb13-cloud-amd64", "7.3.4-ferry-board"
Play = Callable[..., None]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Replaces QEMU by a program that prints lines, a text for each boot, and then runs a command."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def write(*boots: str, then: str = "true") -> None:
        for number, text in enumerate(boots):
            (tmp_path / f"boot-{number}").write_text(text)
        (tmp_path / "count").write_text("0")
        program = tmp_path / package_disk.packages.QEMU
        program.write_text(f"#!/bin/sh\ncd {tmp_path}\nn=$(cat count)\necho $((n + 1)) >count\ncat boot-$n\n{then}\n")
        program.chmod(0o755)

    return write


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "image").write_bytes(b"disk")
    return Machine(Disk(tmp_path / "image", DEBIANS, kvm=False), [], OURS, tmp_path, tmp_path / "copy")


def booted(kernel: str, checks: dict[str, int]) -> str:
    """A console of a whole boot; the kernel's messages come in between."""
    lines = [f"ferry-test: {name}: {status}[   30.2] y" for name, status in checks.items()]
    return "\n".join(["SeaBIOS", f"[   20.1] x\rferry-test: kernel {kernel}", *lines, "[   90.0] reboot: off", ""])


def good(checks: dict[str, str]) -> dict[str, int]:
    return dict.fromkeys(checks, 0)


def test_the_second_disk_has_the_script_and_the_files(tmp_path: Path) -> None:
    """A check runs in a subshell: what it changes or how it ends does not reach the next one."""
    (tmp_path / "a.deb").write_text("package")
    disk = package_boot._second_disk(tmp_path, {"one": "exit 3", "two": "cat a.deb >/dev/null"}, [tmp_path / "a.deb"])
    listed = subprocess.run(["/usr/sbin/debugfs", "-R", "ls -p /", disk], capture_output=True, text=True, check=True)
    assert "a.deb" in listed.stdout and "script" in listed.stdout
    script = (tmp_path / "content/script").read_text().replace("cd /mnt", f"cd {tmp_path / 'content'}")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["ferry-test: one: 3", "ferry-test: two: 0"]


def test_the_life_of_the_packages_passes_in_four_boots(play: Play, machine: Machine) -> None:
    play(booted(DEBIANS, good(package.INSTALL)), booted(OURS, good(package.USE)),
         booted(OURS, good(package.MEASURE | package.REMOVE)), booted(DEBIANS, good(package.GONE)))
    assert [result.outcome for result in machine.life()] == [Outcome.PASSED] * 4


@pytest.mark.parametrize(("second", "reason"), [
    (booted(DEBIANS, good(package.USE)), f"kernel {DEBIANS}, not {OURS}"),
    ("grub rescue>\n", "kernel none"),
    (booted(OURS, good(package.USE) | {"ctl-show": 3}), "ctl-show: 3"),
    (booted(OURS, {"ctl-show": 0}), "enable: not run"),
    ("[    5.000000] BUG: KASAN: x\n" + booted(OURS, good(package.USE)), "KASAN"),
])
def test_what_is_wrong_in_a_boot_is_said_and_ends_the_life(play: Play, machine: Machine, second: str,
                                                            reason: str) -> None:
    play(booted(DEBIANS, good(package.INSTALL)), second)
    first, other = machine.life()
    assert (first.outcome, other.outcome) == (Outcome.PASSED, Outcome.FAILED)
    assert reason in other.reason


def test_at_a_power_cut_the_machine_is_killed_at_once(play: Play, machine: Machine) -> None:
    play("Reading package lists...\nUnpacking linux-image-x\n", booted(DEBIANS, {}),
         then="[ $n = 1 ] || { sleep 60; echo 'ferry-test: apt-install: 0'; }")
    started = time.monotonic()
    result = machine.power_cut("Unpacking linux-image")
    assert time.monotonic() - started < 30
    assert result.outcome is Outcome.PASSED
    assert machine.copy.read_bytes() == b"disk"


@pytest.mark.parametrize("kernel", [DEBIANS, OURS, ""])
def test_after_a_power_cut_either_kernel_may_boot_but_one_must(play: Play, machine: Machine, kernel: str) -> None:
    play("Unpacking linux-image-x\n", booted(kernel, {}) if kernel else "grub>\n")
    assert (machine.power_cut("Unpacking linux-image").outcome is Outcome.PASSED) == bool(kernel)


def test_a_power_cut_that_did_not_happen_is_a_failure(play: Play, machine: Machine) -> None:
    play(booted(DEBIANS, good(package.INSTALL)))
    result = machine.power_cut("Unpacking linux-image")
    assert result.outcome is Outcome.FAILED and "did not print" in result.reason


def test_files_that_stay_are_found(tmp_path: Path) -> None:
    """ls fails if one of many is missing; the check must not take that for success."""
    (check,) = package.GONE.values()
    mine = check.replace(" /", f" {tmp_path}/").replace(f"2>{tmp_path}/dev", "2>/dev")
    assert subprocess.run(["sh", "-c", mine], check=False).returncode == 0
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/ferry").touch()
    assert subprocess.run(["sh", "-c", mine], check=False, stdout=subprocess.DEVNULL).returncode == 1


def test_without_its_tools_or_root_the_suite_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_disk.os, "geteuid", lambda: 1000)
    assert "root" in package_disk.missing()
    monkeypatch.setattr(package_disk.os, "geteuid", lambda: 0)
    monkeypatch.setattr(package_disk.shutil, "which", lambda name, path: None if name == "sfdisk" else "/x")
    assert package_disk.missing() == "not installed: fdisk"
