# SPDX-License-Identifier: GPL-2.0
"""The Ansible role of packaging/ansible, on stand-ins for machines (tests/role) and on two Debian machines.

On the two machines: a canary, failures that roll back, and removal.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ferry import paths, proc, progress
from ferry.errors import FerryError
from ferry.package import configurations, kernel, naming, tool
from ferry.series import source
from ferry.suites import fleet_guests, package, package_disk, pytest
from ferry.suites.context import Context
from ferry.suites.fleet_guests import Guest
from ferry.suites.result import Outcome, Result, error, result_of, skipped

NAME = "fleet"
TOOLS = {"ansible-playbook": "ansible-core", "ssh": "openssh-client"}
"""Programs beside those of the suite `package` -> Debian's packages with them."""
GUESTS = ("one", "two")
#: Emulated, an installation takes minutes, and so does a reboot.
PLAY_S = 7200
_REBOOT_S = 1800
#: The tests on stand-ins take ten minutes beside other loads.
_STAND_INS_S = 1800
_WATCH_S = 10
_FAILED = 2
"""Ansible's status if a machine failed."""
_SETTINGS = "migrator=mtcopy\nmtcopy/threads=2\nruns=1\n"
_ROLE = "packaging/ansible"


@dataclass(frozen=True)
class Play:
    """A call of ansible-playbook and what must come of it: its status, and a pattern of its output, `said`.

    `ours` are the machines that then run our kernel, `then` has shell commands that must succeed on them afterwards.
    """

    name: str
    ours: tuple[str, ...]
    variables: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    status: int = 0
    said: str = ""
    then: Mapping[str, str] = field(default_factory=dict)


WORSE = {"folio_ferry_figure_command": "echo 1", "folio_ferry_figure_least_ratio": 2}
WARNING = "WARNING: not from the kernel, but from the suite fleet"
WARNS = {"folio_ferry_figure_command": f"echo '{WARNING}' >/dev/kmsg; echo 1"}
NOTHING_LEFT = package.GONE["nothing-left"]
PLAYS = (
    Play("a canary whose figure is worse", (), {"one": WORSE}, status=_FAILED,
         said=r"one runs \S+ again, because of this: .*the figure is 1 after the change and was 1 before it",
         then={"two": "! test -e /usr/bin/ferry"}),
    Play("a canary, then a splat", ("one",), {"two": WARNS}, status=_FAILED,
         said=rf"two runs \S+ again, because of this: .*{WARNING}",
         then={"one": "grep -F '[mtcopy]' /sys/kernel/mm/migration/migrator"}),
    Play("a second time", ("one",), words=("--limit", "one"), said=r"one +: ok=\d+ +changed=0 .*failed=0"),
    Play("removal", (), {"one": {"folio_ferry_state": "absent"}}, ("--limit", "one"), then={"one": NOTHING_LEFT}),
)


def missing() -> str:
    """Why this machine cannot run the suite; "" if it can."""
    absent = [debian for program, debian in TOOLS.items() if not shutil.which(program)]
    return package_disk.missing() or (f"not installed: {', '.join(absent)}" if absent else "")


def run(context: Context) -> list[Result]:
    if reason := missing():
        return [skipped(NAME, "disk", reason)]
    return [*pytest.run_tests(context, NAME, "tests/role", _STAND_INS_S), *_on_guests(context)]


def _on_guests(context: Context) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="ferry-fleet-", dir=paths.cache_dir()) as scratch:
        home = Path(scratch)
        (home / "packages").mkdir()
        for deb in (tool.build_package(home), *kernel.build_packages(configurations.ALL[package.CONFIGURATION])):
            shutil.copy(deb, home / "packages")
        ours = naming.release(source.obtain(), package.CONFIGURATION)
        disk = package_disk.prepared()
        with fleet_guests.running(GUESTS, disk, home, context.logs) as guests:
            fleet = Fleet(guests, ours, disk.kernel, home, context.logs)
            fleet.wait()
            return fleet.plays()


@dataclass(frozen=True)
class Fleet:
    """`ours` and `debians` are the releases of the kernels; `home` is the directory of the controller."""

    guests: Sequence[Guest]
    ours: str
    debians: str
    home: Path
    logs: Path

    def wait(self) -> None:
        """Until each machine answers. Raises FerryError."""
        words = ["-m", "ansible.builtin.wait_for_connection", "-a", f"timeout={_REBOOT_S}"]
        log = self.logs / f"{NAME}-wait.log"
        with progress.stage(f"{NAME}: first boot"):
            if self._ansible(["ansible", "all", *words], {}, log).status:
                raise FerryError("the machines do not answer", hint="read the log", log=log)

    def plays(self) -> list[Result]:
        """One after the other, until one fails."""
        results: list[Result] = []
        for play in PLAYS:
            results.append(self._result(play))
            if results[-1].outcome is Outcome.FAILED:
                break
        return results

    def _result(self, play: Play) -> Result:
        log, started = self.logs / f"{NAME}-{play.name.replace(' ', '-')}.log", time.monotonic()
        try:
            with progress.stage(f"{NAME}: {play.name}"):
                done = self._ansible(["ansible-playbook", paths.repo_root() / _ROLE / "rollout.yml", *play.words],
                                     play.variables, log)
                wrong = [*wrong_output(play, done.status, log.read_text()), *self._wrong_machines(play)]
        except FerryError as cause:
            return error(NAME, play.name, cause, time.monotonic() - started)
        return result_of(not wrong, NAME, play.name, "; ".join(wrong), time.monotonic() - started, log)

    def _ansible(self, command: Sequence[str | Path], variables: Mapping[str, Mapping[str, object]],
                 log: Path) -> proc.Result:
        inventory = self.home / "inventory.json"
        inventory.write_text(json.dumps(self.inventory(variables)))
        env = {"ANSIBLE_HOME": str(self.home / "ansible"), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_PIPELINING": "1",
               "LC_ALL": "C.UTF-8", "PYTHONPATH": ""}
        return proc.run([*command, "-i", inventory], log=log, timeout=PLAY_S, env=env)

    def inventory(self, variables: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
        """Both machines in the group of the example's play, with variables of their own."""
        settings = self.home / "settings.conf"
        settings.write_text(_SETTINGS)
        common = {"folio_ferry_release": self.ours, "folio_ferry_packages": str(self.home / "packages"),
                  "folio_ferry_settings": str(settings), "folio_ferry_reboot_s": _REBOOT_S,
                  "folio_ferry_watch_s": _WATCH_S}
        hosts = {guest.name: {**guest.variables(), **variables.get(guest.name, {})} for guest in self.guests}
        return {"folio_ferry": {"hosts": hosts, "vars": common}}

    def _wrong_machines(self, play: Play) -> list[str]:
        """Each machine must run the kernel that the play leaves it with, and its command succeed."""
        wrong = []
        for guest in self.guests:
            expected, release = self.ours if guest.name in play.ours else self.debians, guest.run("uname -r")
            if release != expected:
                wrong.append(f"{guest.name} runs {release}, not {expected}")
            if command := play.then.get(guest.name):
                guest.run(command)
        return wrong


def wrong_output(play: Play, status: int, text: str) -> list[str]:
    """What is not as it must be in Ansible's status and output."""
    wrong = [f"Ansible's status is {status}, not {play.status}"] if status != play.status else []
    if not re.search(play.said, text):
        wrong.append(f"Ansible did not say: {play.said}")
    return wrong
