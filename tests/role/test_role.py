# SPDX-License-Identifier: GPL-2.0
"""The role folio_ferry, carried out by Ansible on machines that are directories (fleet_machine/)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import migration_tree
import pytest

from ferry import paths

ANSIBLE = paths.repo_root() / "packaging/ansible"
HERE = Path(__file__).parent / "fleet_machine"
OURS, FORMER = "7.3.4-ferry-board", "7.3.4+deb13-cloud-amd64"
MENU = "submenu 'x' $menuentry_id_option 'gnulinux-advanced-UU' {\n" + "".join(
    f"\tmenuentry 'x' $menuentry_id_option 'gnulinux-{release}-advanced-UU' {{\n\t}}\n" for release in (OURS, FORMER))
PROGRAMS = {"bin": ("uname", "dmesg", "linux-version", "dpkg-query", "dpkg", "apt-get", "systemctl", "ferry"),
            "sbin": ("grub-editenv", "grub-set-default", "grub-reboot", "grub-probe", "update-grub", "systemctl")}
DIRECTORIES = ("etc/default/grub.d", "boot/grub", "sys/kernel/mm", "sbin", "bin", "cache", "tmp")


def missing() -> str:
    """Why the role cannot be carried out here; "" if it can."""
    absent = [name for name in ("ansible-playbook", "bwrap") if not shutil.which(name)]
    return f"not installed: {', '.join(absent)}" if absent else ""


pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def entry(release: str) -> str:
    """A kernel's entry in GRUB's menu."""
    return f"gnulinux-advanced-UU>gnulinux-{release}-advanced-UU"


@dataclass
class Machine:
    """A machine that runs Debian's kernel, with nothing of ours."""

    directory: Path
    variables: dict[str, Any]

    def __post_init__(self) -> None:
        for name in DIRECTORIES:
            (self.directory / name).mkdir(parents=True)
        for place, names in PROGRAMS.items():
            for name in names:
                (self.directory / place / name).symlink_to("/mnt/programs.py")
        shutil.copy(HERE / "programs.py", self.directory)
        (self.directory / "programs.py").chmod(0o755)
        for name in ("passwd", "group", "os-release"):
            shutil.copy(f"/etc/{name}", self.directory / "etc")
        for name, text in {"boot_id": "first\n", "tainted": "0\n", "dmesg": "", "said": "", "boot/grub/grubenv": "",
                           "boot/grub/grub.cfg": "", f"boot/vmlinuz-{FORMER}": ""}.items():
            (self.directory / name).write_text(text)
        migration_tree.make(self.directory / "control")
        self.write(running=FORMER, installed={}, statuses={}, interrupted=False, unconfigurable="", enabled=False,
                   first_boot="", panic_at="-", grub={"abstraction": "", "fs": "ext2"}, python=sys.executable,
                   src=str(paths.repo_root() / "src"))

    def write(self, **changes: object) -> None:
        path = self.directory / "state.json"
        path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **changes}))

    @property
    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.directory / "state.json").read_text())
        return state

    def keeps_ours(self, version: str, settings: str) -> None:
        """As a rollout leaves it, except that no setting has been applied since the boot."""
        self.write(running=OURS, enabled=True, installed={"folio-ferry": "0", **{
            f"linux-{kind}-{OURS}": version for kind in ("image", "headers")}})
        files = {f"boot/vmlinuz-{OURS}": "", "etc/ferry/settings.conf": settings,
                 "etc/ferry/off.conf": "migrator=off\nruns=0\n",
                 "etc/default/grub.d/folio-ferry.cfg": (ANSIBLE / "roles/folio_ferry/files/grub.cfg").read_text(),
                 "boot/grub/grubenv": f"saved_entry={entry(OURS)}\n",
                 "boot/grub/grub.cfg": "# default: saved\n" + MENU}
        for name, text in files.items():
            (self.directory / name).parent.mkdir(exist_ok=True)
            (self.directory / name).write_text(text)
        shutil.copytree(self.directory / "control", self.directory / "sys/kernel/mm/migration",
                        ignore=shutil.ignore_patterns("drain"))

    @property
    def default(self) -> str:
        """The release of the kernel that GRUB starts."""
        text = (self.directory / "boot/grub/grubenv").read_text()
        found = re.search(r"saved_entry=.*>gnulinux-(.+)-advanced-UU", text)
        return found[1] if found else ""

    def said(self) -> list[str]:
        """The calls that change the machine, since the last time."""
        path = self.directory / "said"
        lines = path.read_text().splitlines()
        path.write_text("")
        return lines

    def control(self, name: str) -> str:
        return (self.directory / "sys/kernel/mm/migration" / name).read_text().strip()


class Fleet:
    """Machines by name, and the directory of the controller."""

    def __init__(self, home: Path) -> None:
        self.home, self.machines = home, dict[str, Machine]()
        (home / "packages").mkdir()
        self.offer("1")
        (home / "some.conf").write_text("# Some\nmigrator=mtcopy\nmtcopy/threads=2\nruns=1\n")

    def offer(self, version: str) -> None:
        """Packages of that version."""
        for old in (self.home / "packages").glob("*"):
            old.unlink()
        for name in ("folio-ferry", f"linux-image-{OURS}", f"linux-headers-{OURS}"):
            (self.home / f"packages/{name}_{version}_amd64.deb").write_text(f"{name} {version}")

    def add(self, name: str, **variables: object) -> Machine:
        self.machines[name] = Machine(self.home / name, variables)
        return self.machines[name]

    def play(self, *words: str, playbook: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Ansible's output and status."""
        common = {"ansible_connection": "stub_machine", "ansible_python_interpreter": "/usr/bin/python3",
                  "ansible_become": False, "ansible_remote_tmp": "/tmp/ansible", "folio_ferry_release": OURS,
                  "folio_ferry_packages": str(self.home / "packages"), "folio_ferry_watch_s": 0,
                  "folio_ferry_settings": str(self.home / "some.conf"), "folio_ferry_reboot_s": 300}
        hosts = {name: {**common, "stub_directory": str(one.directory), **one.variables}
                 for name, one in self.machines.items()}
        (self.home / "inventory.json").write_text(json.dumps({"folio_ferry": {"hosts": hosts}}))
        settings = {"connection_plugins": HERE / "connection", "roles_path": ANSIBLE / "roles",
                    "home": self.home / "ansible", "nocolor": True, "pipelining": True}
        lines = ["[defaults]", *(f"{key}={one}" for key, one in settings.items())]
        (self.home / "ansible.cfg").write_text("\n".join(lines))
        env = {**os.environ, "ANSIBLE_CONFIG": str(self.home / "ansible.cfg"), "LC_ALL": "C.UTF-8"}
        command = ["ansible-playbook", "-i", self.home / "inventory.json", playbook or self.all_at_once(), *words]
        return subprocess.run(command, capture_output=True, text=True, env=env, check=False, stdin=subprocess.DEVNULL)

    def all_at_once(self) -> Path:
        """The example's play without its batches."""
        text = (ANSIBLE / "rollout.yml").read_text().partition("  post_tasks:\n")[0]
        path = self.home / "all.yml"
        path.write_text(re.sub(r"(?m)^  (serial|max_fail_percentage):.*\n", "", text))
        return path

    def two_first(self) -> Path:
        """The example's play, but two machines are its first batch."""
        path = self.home / "two.yml"
        path.write_text(re.sub(r"serial:.*", 'serial: [2, "100%"]', (ANSIBLE / "rollout.yml").read_text()))
        return path


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def recap(done: subprocess.CompletedProcess[str], name: str) -> dict[str, int]:
    """A machine's line of the play's recap."""
    (line,) = re.findall(rf"^{name} +: (.*)$", done.stdout, re.MULTILINE)
    return {key: int(number) for key, number in re.findall(r"(\w+)=(\d+)", line)}


def test_a_machine_gets_the_kernel_keeps_it_and_returns(fleet: Fleet) -> None:
    machine = fleet.add("one", folio_ferry_figure_command="cat /mnt/figure", folio_ferry_figure_least_ratio=0.5)
    (machine.directory / "figure").write_text("10.5\n")

    checked = fleet.play("--check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert recap(checked, "one")["changed"] == 1 and f"a boot of {OURS}" in checked.stdout
    assert machine.said() == [] and not (machine.directory / "etc/ferry").exists()

    done = fleet.play()
    assert done.returncode == 0, done.stdout
    said = machine.said()
    former, ours = entry(FORMER), entry(OURS)
    install = next(line for line in said if line.startswith("apt-get"))
    assert re.findall(r"/([a-z0-9-]+)[^/]*_1_amd64.deb", install) == ["folio-ferry", "linux-image-7", "linux-headers-7"]
    order = ["update-grub", f"grub-set-default {former}", install, f"grub-reboot {ours}", f"grub-set-default {ours}"]
    assert [line for line in said if line in order] == order
    assert machine.state["running"] == OURS and machine.state["enabled"] and machine.default == OURS
    assert [machine.control(name) for name in ("migrator", "mtcopy/threads", "runs")] == ["mtcopy", "2", "1"]
    assert "migrator=off\n" in (machine.directory / "etc/ferry/off.conf").read_text()

    again = fleet.play()
    assert again.returncode == 0 and recap(again, "one")["changed"] == 0, again.stdout
    assert machine.said() == []

    machine.variables["folio_ferry_state"] = "absent"
    checked = fleet.play("--check")
    assert recap(checked, "one")["changed"] == 1 and machine.said() == []
    removed = fleet.play()
    assert removed.returncode == 0, removed.stdout
    assert machine.state["running"] == FORMER and machine.state["installed"] == {} and not machine.state["enabled"]
    assert machine.default == "" and [path.name for path in (machine.directory / "etc").rglob("*ferry*")] == ["ferry"]
    machine.said()
    again = fleet.play()
    assert again.returncode == 0 and recap(again, "one")["changed"] == 0, again.stdout
    assert machine.said() == []


def failures(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The last message of each machine that failed."""
    found = re.findall(r"^fatal: \[(\w+)\]: FAILED! => (\{.*\})$", done.stdout, re.MULTILINE)
    return {name: json.loads(said)["msg"] for name, said in found}


WARNING = "WARNING: CPU: 1 PID: 77 at mm/migrate.c:1200 migrate_folio+0x5/0x10"
SLOWER = "case $(uname -r) in *ferry*) echo 4;; *) echo 10;; esac"
#: Names of machines, their variables, how the first boot of our kernel ends, and the reason that Ansible gives.
ROLLED_BACK = {
    "warns": ({}, WARNING, "The kernel has reported no problem: .*WARNING: CPU: 1"),
    "warns_later": ({"folio_ferry_figure_command": f"echo '[    9.000000] {WARNING}' >>/mnt/dmesg; echo 1"}, "",
                    "The kernel has reported no problem: .*WARNING: CPU: 1"),
    "slower": ({"folio_ferry_figure_command": SLOWER}, "", r"the figure is 4 after the change and was 10 before it"),
    "panics": ({}, "panic", "the machine runs 7.3.4.deb13-cloud-amd64, not 7.3.4-ferry-board"),
    "unset": ({"folio_ferry_settings": "unknown.conf"}, "", "fpga/lanes is missing, not 2"),
    "no_number": ({"folio_ferry_figure_command": "echo many"}, "", "Measure: .*many"),
}


def test_what_goes_wrong_leads_back_to_the_former_kernel(fleet: Fleet) -> None:
    (fleet.home / "unknown.conf").write_text("runs=1\nfpga/lanes=2\n")
    for name, (variables, first_boot, _) in ROLLED_BACK.items():
        fleet.add(name, **variables).write(first_boot=first_boot)
    fleet.add("hangs", folio_ferry_reboot_s=5).write(first_boot="hang")
    upgraded, drifted, lvm = fleet.add("upgraded"), fleet.add("drifted"), fleet.add("lvm")
    upgraded.keeps_ours("0", "runs=1\n")
    upgraded.write(first_boot=WARNING)
    drifted.keeps_ours("1", (fleet.home / "some.conf").read_text())
    lvm.write(grub={"abstraction": "lvm", "fs": "ext2"})
    archive = fleet.add("archive", folio_ferry_packages="")

    done = fleet.play("--forks", "4")
    said = failures(done)
    for name, (_, _, reason) in {**ROLLED_BACK, "upgraded": (0, 0, "WARNING: CPU: 1")}.items():
        machine = fleet.machines[name]
        assert re.search(f"{name} runs .* again, because of this: .*{reason}", said[name]), said[name]
        assert (machine.state["running"], machine.default) == (FORMER, FORMER), name
        assert "=" not in (machine.directory / "etc/ferry/settings.conf").read_text()
        assert "next_entry" not in (machine.directory / "boot/grub/grubenv").read_text()
    calls = upgraded.said()
    apt = next(number for number, line in enumerate(calls) if line.startswith("apt-get"))
    assert any(line.startswith("grub-set-default") and FORMER in line for line in calls[:apt])
    assert "hangs did not come back" in said["hangs"] and fleet.machines["hangs"].default == FORMER
    assert "GRUB cannot write" in said["lvm"] and lvm.said() == []
    assert set(said) == {*ROLLED_BACK, "upgraded", "hangs", "lvm"}, done.stdout
    assert drifted.control("migrator") == "mtcopy" and drifted.state["installed"]["folio-ferry"] == "1"
    calls = [line for line in drifted.said() if line.startswith(("grub", "systemctl reboot"))]
    assert calls == [f"grub-set-default {entry(release)}" for release in (FORMER, OURS)]
    assert archive.state["running"] == archive.default == OURS and archive.state["installed"]["folio-ferry"] == "1"


def test_after_a_run_that_stopped_before_it_wrote_grubs_menu_another_run_writes_it(fleet: Fleet) -> None:
    """The drop-in file is there, and apt, whose hooks write the menu, has nothing to install."""
    machine = fleet.add("stopped")
    machine.keeps_ours("1", "runs=1\n")
    machine.write(installed=dict.fromkeys(machine.state["installed"], "1"))
    menu = machine.directory / "boot/grub/grub.cfg"
    menu.write_text("# default: 0\n" + MENU)
    done = fleet.play()
    assert done.returncode == 0, done.stdout
    assert machine.said().count("update-grub") == 1 and menu.read_text().startswith("# default: saved\n")


def test_when_the_canary_fails_the_others_stay_as_they_are(fleet: Fleet) -> None:
    canary, other = fleet.add("canary"), fleet.add("other")
    canary.write(first_boot=WARNING)
    done = fleet.play(playbook=ANSIBLE / "rollout.yml")
    assert done.returncode == 2 and set(failures(done)) == {"canary"}, done.stdout
    assert canary.state["running"] == FORMER and other.said() == []


PANIC_WHILE_LEFT = ("case $(uname -r) in *ferry*) sed -i 's/panic_at[^,]*,/panic_at\": \"ferry ctl restore\",/' "
                    "/mnt/state.json; echo 4;; *) echo 10;; esac")


def test_a_panic_during_a_task_leads_back_to_the_former_kernel(fleet: Fleet) -> None:
    settings = (fleet.home / "some.conf").read_text()
    calls = {"saved": "ferry ctl save", "reset": "ferry ctl restore", "restart": "systemctl restart",
             "splats": "ferry splats", "figure": "systemctl is-active",
             "kept": f"grub-set-default {entry(OURS)}"}
    for name, call in calls.items():
        fleet.add(name).write(panic_at=call)
    fleet.machines["figure"].variables["folio_ferry_figure_command"] = "systemctl is-active; echo 1"
    fleet.add("left", folio_ferry_figure_command=PANIC_WHILE_LEFT)
    again = fleet.add("again")
    again.keeps_ours("1", settings)
    again.write(panic_at="systemctl restart")
    done = fleet.play("--forks", "4")
    said = failures(done)
    assert set(said) == set(fleet.machines) and "unreachable=1" not in done.stdout, done.stdout
    for name, machine in fleet.machines.items():
        cause = "the figure is 4" if name == "left" else "the machine went down"
        assert re.search(f"{name} runs .* again, because of this: .*{cause}", said[name]), said[name]
        assert machine.state["panic_at"] == "-", "the machine panicked"
        assert (machine.state["running"], machine.default) == (FORMER, FORMER), name
        assert "=" not in (machine.directory / "etc/ferry/settings.conf").read_text(), name


def test_after_a_panic_the_next_batch_does_not_begin(fleet: Fleet) -> None:
    panics, good, later = (fleet.add(name) for name in ("panics", "good", "later"))
    panics.write(panic_at="systemctl restart")
    done = fleet.play(playbook=fleet.two_first())
    assert done.returncode == 2 and "the machine went down" in failures(done)["panics"], done.stdout
    assert (panics.state["running"], good.default) == (FORMER, OURS) and later.said() == []


def test_after_a_machine_that_cannot_be_reached_the_next_batch_does_not_begin(fleet: Fleet) -> None:
    lost, good, later = (fleet.add(name, folio_ferry_state="absent") for name in ("lost", "good", "later"))
    for machine in (good, later):
        machine.write(installed={"folio-ferry": "1"})
    (lost.directory / "down").write_text("inf")
    done = fleet.play(playbook=fleet.two_first())
    assert done.returncode & 2 and "cannot be reached: lost" in failures(done)["good"], done.stdout
    assert good.state["installed"] == {} and later.said() == []


def test_after_a_power_cut_during_an_installation_another_run_works(fleet: Fleet) -> None:
    image, headers = f"linux-image-{OURS}", f"linux-headers-{OURS}"
    fleet.add("again")
    fleet.add("archive", folio_ferry_packages="")
    fleet.add("absent", folio_ferry_state="absent")
    fleet.add("full", folio_ferry_state="absent").write(unconfigurable=headers)
    for machine in fleet.machines.values():
        machine.write(installed={"folio-ferry": "1", image: "1", headers: "1"}, interrupted=True,
                      statuses={"folio-ferry": "unpacked", image: "half-installed", headers: "half-configured"})
    purge = fleet.add("purge", folio_ferry_state="absent")
    purge.write(installed={"folio-ferry": "1", image: "1"},
                statuses={"folio-ferry": "config-files", image: "config-files"})
    done = fleet.play("--forks", "4")
    assert done.returncode == 0, done.stdout
    for name in ("again", "archive"):
        machine = fleet.machines[name]
        assert (machine.state["running"], machine.default, machine.state["statuses"]) == (OURS, OURS, {}), name
        assert machine.state["installed"][image] == "1"
    for name in ("absent", "full", "purge"):
        assert fleet.machines[name].state["installed"] == {}, name


def test_the_kernel_must_boot_with_all_features_off(fleet: Fleet) -> None:
    runs, migrc, without = (fleet.add(name) for name in ("runs", "migrc", "without"))
    (runs.directory / "control/runs").write_text("1\n")
    (migrc.directory / "control/migrc/enabled").write_text("1\n")
    shutil.rmtree(without.directory / "control/migrc")
    done = fleet.play("--forks", "3")
    said = failures(done)
    assert set(said) == {"runs", "migrc"}, done.stdout
    assert "runs is 1, not 0" in said["runs"] and "migrc/enabled is 1, not 0" in said["migrc"]
    assert (runs.state["running"], migrc.state["running"], without.default) == (FORMER, FORMER, OURS)
