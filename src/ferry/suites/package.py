# SPDX-License-Identifier: GPL-2.0
"""Our packages on a Debian machine: installed, booted, used, removed; and the power goes off while they are installed.

The machine is a disk made of Debian's packages (package_disk.py), booted as its owner would (package_boot.py).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry import paths, progress
from ferry.errors import FerryError
from ferry.package import configurations, kernel, naming, tool
from ferry.series import source
from ferry.suites import package_boot, package_disk
from ferry.suites.context import Context
from ferry.suites.package_boot import Booted
from ferry.suites.package_disk import Disk
from ferry.suites.result import Outcome, Result, error, result_of, skipped
from ferry.vm import splat

NAME = "package"
CONFIGURATION = "board"
#: Emulated, apt needs minutes for the packages, and so does update-initramfs.
BOOT_S = 1800
#: The power goes off when apt, or a hook of the kernel's package, prints one of these.
CUTS = ("Unpacking linux-image", "Setting up linux-image", "update-initramfs: Generating", "Generating grub config")
#: The checks of each boot: names and shell commands.
INSTALL = {"apt-install": "apt-get -y install ./*.deb"}
USE = {
    "ctl-show": "ferry ctl show",
    "modprobe": "modprobe ferry_mtcopy",
    "ctl-set": "ferry ctl set migrator=mtcopy runs=1",
    "movebench": f"/{tool.PROGRAMS}/movebench --bytes 16m --samples 2 --warmup 0",
    "top": "ferry top --once --interval 1",
    "metrics": "ferry metrics",
    "man": "ferry man >/dev/null",
    "completion": "ferry completion bash >/dev/null",
    "headers": "test -e /lib/modules/$(uname -r)/build/Module.symvers",
    "save": "mkdir -p /etc/ferry && ferry ctl save /etc/ferry/settings.conf",
    "enable": f"systemctl enable {tool.SERVICE}",
}
_RESTORED = "ferry ctl show migrator runs | grep -cE '\\[mtcopy\\]|runs +1' | grep -qx 2"
MEASURE = {
    "service": f"systemctl is-active {tool.SERVICE}",
    "restored": _RESTORED,
    "doctor": "ferry doctor --board local",
    "bench": "ferry bench move_pages --board local --migrator mtcopy --threads 2 --quick --out $(mktemp -d)/run",
    "test": "ferry test --board local",
    "unchanged": _RESTORED,
}
REMOVE = {"apt-purge": f"apt-get -y purge {tool.NAME} linux-headers-$(uname -r) linux-image-$(uname -r)"}
_OURS = (f"/boot/*-ferry-* /lib/modules/*-ferry-* /usr/src/*-ferry-* /usr/bin/ferry /{tool.LIBRARY} /{tool.PROGRAMS} "
         f"/etc/systemd/system/*/{tool.SERVICE}")
GONE = {"nothing-left": f"! ls -d {_OURS} 2>/dev/null | grep ."}


def run(context: Context) -> list[Result]:
    if reason := package_disk.missing():
        return [skipped(NAME, "disk", reason)]
    with tempfile.TemporaryDirectory(prefix="ferry-package-", dir=paths.cache_dir()) as scratch:
        debs = [tool.build_package(Path(scratch)), *kernel.build_packages(configurations.ALL[CONFIGURATION])]
        ours = naming.release(source.obtain(), CONFIGURATION)
        machine = Machine(package_disk.prepared(), debs, ours, context.logs, Path(scratch) / "disk")
        return [*machine.life(), *(machine.power_cut(text) for text in CUTS)]


@dataclass(frozen=True)
class Machine:
    """`ours` is the release of our kernel; `copy` the file that the machine boots from."""

    disk: Disk
    packages: Sequence[Path]
    ours: str
    logs: Path
    copy: Path

    def life(self) -> list[Result]:
        """The packages are installed, our kernel boots twice, they are removed, Debian's kernel boots."""
        package_disk.copy(self.disk, self.copy)
        steps = (("install", self.disk.kernel, INSTALL), ("use", self.ours, USE),
                 ("measure and remove", self.ours, MEASURE | REMOVE), ("without", self.disk.kernel, GONE))
        results: list[Result] = []
        for name, release, checks in steps:
            results.append(self._result(name, (release,), checks))
            if results[-1].outcome is Outcome.FAILED:
                break
        return results

    def power_cut(self, text: str) -> Result:
        """The power goes off at that line of the installation; then one of the kernels boots."""
        name = f"power cut at {text}"
        package_disk.copy(self.disk, self.copy)
        try:
            cut = self._boot(f"{name}, before", INSTALL, cut=text)
        except FerryError as cause:
            return error(NAME, name, cause)
        if not cut.power_cut:
            return result_of(False, NAME, name, f"apt did not print {text!r}", log=cut.console)
        return self._result(name, (self.disk.kernel, self.ours), {})

    def _result(self, name: str, releases: Sequence[str], checks: Mapping[str, str]) -> Result:
        """Boot: one of the kernels must come up, and each check end with status 0, without a splat of our kernel."""
        started = time.monotonic()
        try:
            booted = self._boot(name, checks)
            if booted.kernel == self.ours:
                splat.refuse(booted.console)
        except FerryError as cause:
            return error(NAME, name, cause, time.monotonic() - started)
        wrong = [] if booted.kernel in releases else [f"kernel {booted.kernel or 'none'}, not {' or '.join(releases)}"]
        ends = {check: booted.checks.get(check, "not run") for check in checks}
        wrong += [f"{check}: {end}" for check, end in ends.items() if end != 0]
        return result_of(not wrong, NAME, name, "; ".join(wrong), time.monotonic() - started, booted.console)

    def _boot(self, name: str, checks: Mapping[str, str], cut: str = "") -> Booted:
        console = self.logs / f"{NAME}-{name.replace(' ', '-').replace(':', '')}.log"
        with progress.stage(f"{NAME}: {name}"):
            return package_boot.boot(self.copy, checks, console, kvm=self.disk.kvm, timeout_s=BOOT_S,
                                     files=self.packages, cut=cut)
