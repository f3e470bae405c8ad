# SPDX-License-Identifier: GPL-2.0
"""The suite `fleet`: its machines, its inventory, and what it makes of Ansible's output, with made-up programs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ferry.suites import fleet, fleet_guests, package_disk
from ferry.suites.fleet import Fleet, Play
from ferry.suites.fleet_guests import Guest
from ferry.suites.package_disk import Disk
from ferry.suites.result import Outcome

DEBIANS, OURS = "7.3.4+deb13-cloud-amd64", "7.3.4-ferry-board"
Program = Callable[[str, str], None]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a shell script on PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")

    def write(name: str, text: str) -> None:
        (directory / name).write_text(f"#!/bin/sh\n{text}\n")
        (directory / name).chmod(0o755)

    return write


@pytest.fixture
def machines(tmp_path: Path) -> Fleet:
    guests = [Guest(name, 2000 + number, tmp_path / "id") for number, name in enumerate(fleet.GUESTS)]
    return Fleet(guests, OURS, DEBIANS, tmp_path, tmp_path)


def test_the_inventory_has_the_role_s_variables_and_each_machine_s_own(machines: Fleet) -> None:
    group = json.loads(json.dumps(machines.inventory({"two": fleet.WARNS})))["folio_ferry"]
    assert group["vars"]["folio_ferry_release"] == OURS
    assert Path(group["vars"]["folio_ferry_settings"]).read_text().startswith("migrator=mtcopy\n")
    assert [host["ansible_port"] for host in group["hosts"].values()] == [2000, 2001]
    assert "folio_ferry_figure_command" not in group["hosts"]["one"]
    assert group["hosts"]["two"]["folio_ferry_figure_command"].startswith("echo 'WARNING: ")


OUTPUT = {
    0: "one runs x again, because of this: A name: the figure is 1 after the change and was 1 before it",
    1: f"two runs x again, because of this: The kernel has reported no problem: WARNING: {fleet.WARNING}",
    2: "one                        : ok=40   changed=0    unreachable=0    failed=0    skipped=6",
    3: "",
}


def play_out(program: Program, tmp_path: Path, *, output: dict[int, str], kernels: dict[int, str]) -> None:
    """Ansible that prints a text for each play and fails in the first two; `kernels` are those of the first machine."""
    for number in range(len(fleet.PLAYS)):
        (tmp_path / f"output-{number}").write_text(output[number])
        (tmp_path / f"kernel-{number}").write_text(kernels[number])
    (tmp_path / "count").write_text("0")
    program("ansible-playbook", f"cd {tmp_path}; n=$(cat count); echo $((n + 1)) >count; cat output-$n\n"
                                "[ $n -gt 1 ] || exit 2")
    program("ssh", f'cd {tmp_path}; n=$(($(cat count) - 1)); case "$*" in *"-p 2000"*uname*) cat kernel-$n;; '
                   f'*uname*) echo {DEBIANS};; *) echo "$*" >>commands;; esac')


KERNELS = {0: DEBIANS, 1: OURS, 2: OURS, 3: DEBIANS}


def test_a_good_rollout_passes_each_play(program: Program, machines: Fleet, tmp_path: Path) -> None:
    play_out(program, tmp_path, output=OUTPUT, kernels=KERNELS)
    results = machines.plays()
    assert [result.outcome for result in results] == [Outcome.PASSED] * 4, results
    said = (tmp_path / "commands").read_text()
    assert "! test -e /usr/bin/ferry" in said and "[mtcopy]" in said and fleet.NOTHING_LEFT in said


@pytest.mark.parametrize(("output", "kernels", "reason"), [
    ({}, {0: OURS}, f"one runs {OURS}, not {DEBIANS}"),
    ({0: "two runs x again, because of this: the figure is 1 after"}, {}, "Ansible did not say"),
    ({1: "two runs x again, because of this: no answer"}, {}, "Ansible did not say"),
    ({2: OUTPUT[2].replace("changed=0", "changed=1")}, {}, "Ansible did not say"),
    ({2: ""}, {}, "Ansible did not say"),
    ({}, {3: OURS}, f"one runs {OURS}, not {DEBIANS}"),
])
def test_what_is_wrong_is_said_and_ends_the_suite(program: Program, machines: Fleet, tmp_path: Path,
                                                  output: dict[int, str], kernels: dict[int, str], reason: str) -> None:
    play_out(program, tmp_path, output={**OUTPUT, **output}, kernels={**KERNELS, **kernels})
    *before, last = machines.plays()
    assert all(result.outcome is Outcome.PASSED for result in before)
    assert len(before) == next(iter({**output, **kernels})) and reason in last.reason


def test_another_status_of_ansible_is_a_failure() -> None:
    assert fleet.wrong_output(Play("x", ()), 4, "") == ["Ansible's status is 4, not 0"]


def test_the_machines_have_ports_of_their_own_and_end_with_the_block(program: Program, tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"disk")
    (tmp_path / "home").mkdir()
    ended = "".join(f"echo ferry-test: {name}: 0; " for name in fleet_guests.PREPARE)
    program(package_disk.packages.QEMU, f'case "$*" in *"-nic none"*) echo ferry-test: kernel x; {ended};; '
                                        f'*) echo "$$ $*" >>{tmp_path}/started; exec sleep 60;; esac')
    with fleet_guests.running(fleet.GUESTS, Disk(tmp_path / "image", DEBIANS, kvm=False), tmp_path / "home",
                              tmp_path) as guests:
        end = time.monotonic() + 60
        while not (lines := started(tmp_path))[1:] and time.monotonic() < end:
            time.sleep(0.1)
        assert guests[0].port != guests[1].port
        for guest in guests:
            (line,) = (line for line in lines if f"hostfwd=tcp:127.0.0.1:{guest.port}-:22" in line)
            assert f"file={tmp_path / 'home' / guest.name}" in line and "-no-reboot" not in line
    for line in lines:
        assert not Path("/proc", line.split()[0]).exists()
    assert (tmp_path / "home/id").stat().st_mode & 0o77 == 0 and (tmp_path / "home/id.pub").exists()


def started(tmp_path: Path) -> list[str]:
    path = tmp_path / "started"
    return path.read_text().splitlines() if path.exists() else []


def test_without_ansible_the_suite_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_disk, "missing", lambda: "")
    monkeypatch.setattr(fleet.shutil, "which", lambda name: None if name == "ansible-playbook" else "/x")
    assert fleet.missing() == "not installed: ansible-core"
