# SPDX-License-Identifier: GPL-2.0
"""Debian machines that run until the block ends, reboot as they like, and are reached by SSH.

Their disk is that of the suite `package`, on which a first boot installs a key and an address of QEMU's user network.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry import proc
from ferry.errors import InfraError
from ferry.suites import package_boot, package_disk
from ferry.suites.package_disk import Disk
from ferry.vm import qemu

_ADDRESS = "127.0.0.1"
_NETWORK = "[Match]\nType=ether\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n"
#: The first boot, which is the last one that runs the script of a second disk and turns the machine off.
PREPARE = {
    "key": "install -D -m 600 id.pub ~root/.ssh/authorized_keys",
    "network": "install -D -m 644 ether.network /etc/systemd/network/ether.network",
    "services": "systemctl enable systemd-networkd ssh && systemctl disable ferry-test",
}
_PREPARE_S = 1200
_SSH = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR")


@dataclass(frozen=True)
class Guest:
    """A machine, and the port of this machine that leads to its SSH server."""

    name: str
    port: int
    key: Path

    def variables(self) -> dict[str, object]:
        """Ansible's, for the connection."""
        return {"ansible_host": _ADDRESS, "ansible_port": self.port, "ansible_user": "root", "ansible_become": False,
                "ansible_ssh_private_key_file": str(self.key), "ansible_ssh_common_args": " ".join(_SSH),
                "ansible_python_interpreter": "/usr/bin/python3"}

    def run(self, command: str) -> str:
        """What a shell command prints there. Raises InfraError if it fails."""
        return proc.capture(["ssh", *_SSH, "-i", self.key, "-p", str(self.port), f"root@{_ADDRESS}", command]).strip()


@contextlib.contextmanager
def running(names: Sequence[str], disk: Disk, home: Path, logs: Path) -> Iterator[list[Guest]]:
    """The machines, which may still be booting; their consoles are in `logs`. Raises InfraError, TimedOut."""
    key, prepared = _prepared(disk, home, logs)
    guests = [Guest(name, _free_port(), key) for name in names]
    with contextlib.ExitStack() as stack:
        for guest in guests:
            image = home / guest.name
            proc.capture(["cp", "--sparse=always", "--reflink=auto", prepared, image])
            log = stack.enter_context((logs / f"fleet-console-{guest.name}.log").open("wb"))
            line = [*package_boot.machine(image, disk.kvm), *network(guest.port)]
            process = subprocess.Popen([str(word) for word in line], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, env={**os.environ, **qemu.ENVIRONMENT},
                                       start_new_session=True)
            stack.callback(proc.kill_group, process)
        yield guests


def network(port: int) -> list[str]:
    """QEMU's options of a network card whose address' port 22 is a port of this machine's own address."""
    return ["-nic", f"user,model=virtio-net-pci,restrict=on,hostfwd=tcp:{_ADDRESS}:{port}-:22"]


def _prepared(disk: Disk, home: Path, logs: Path) -> tuple[Path, Path]:
    """The private key, and a disk that lets it in."""
    key, image, link = home / "id", home / "prepared", home / "ether.network"
    proc.capture(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key])
    link.write_text(_NETWORK)
    package_disk.copy(disk, image)
    booted = package_boot.boot(image, PREPARE, logs / "fleet-prepare.log", kvm=disk.kvm, timeout_s=_PREPARE_S,
                               files=[key.with_suffix(".pub"), link])
    if booted.checks != dict.fromkeys(PREPARE, 0):
        raise InfraError(f"the disk could not be prepared: {booted.checks}", hint="read the log", log=booted.console)
    return key, image


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_ADDRESS, 0))
        port: int = probe.getsockname()[1]
        return port
