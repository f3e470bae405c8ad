# SPDX-License-Identifier: GPL-2.0
"""Boots a Debian machine from its disk, as its owner would: firmware, its boot loader, its init system, no network.

The tests' second disk has files and a script, which a unit on the first disk runs once the system is up. The unit then
turns the machine off.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry import proc
from ferry.debian import packages
from ferry.package import tool
from ferry.vm import qemu

LABEL = "ferry-test"
MIB = 1 << 20
_RAN = re.compile(LABEL + r": ([a-z-]+): (\d+)")
_KERNEL = re.compile(LABEL + r": kernel (\S+)")
UNIT = f"""\
[Unit]
Description=Script of the disk {LABEL}
After={tool.SERVICE}
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'mount -o ro LABEL={LABEL} /mnt && sh /mnt/script'
ExecStopPost=/bin/systemctl --no-block poweroff
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class Booted:
    """The running kernel's release ("" if the system did not come up), and the status of each check that ended."""

    kernel: str
    checks: dict[str, int]
    console: Path
    power_cut: bool


class _PowerCut(Exception):
    pass


def boot(disk: Path, checks: Mapping[str, str], console: Path, *, kvm: bool, timeout_s: float,
         files: Sequence[Path] = (), cut: str = "", direct: Sequence[str | Path] = ()) -> Booted:
    """Boot from `disk`, which changes, and run the shell commands of `checks` in turn, beside copies of `files`.

    `cut`: at the first line with this text the power goes off: QEMU is killed, and what the guest has not written is
    lost. `direct`: options of QEMU with which it starts a kernel itself, for a disk without a boot loader.
    Raises InfraError, TimedOut.
    """
    seen: list[str] = []

    def on_line(line: str) -> None:
        seen.append(line)
        if cut and cut in line:
            raise _PowerCut

    with tempfile.TemporaryDirectory(prefix="ferry-second-disk-", dir=disk.parent) as scratch:
        second = _second_disk(Path(scratch), checks, files)
        line = [*machine(disk, kvm), "-drive", f"file={second},format=raw,if=virtio,readonly=on",
                "-nic", "none", "-no-reboot", *direct]
        power_cut = False
        try:
            proc.run(line, log=console, timeout=timeout_s, progress=on_line, env=qemu.ENVIRONMENT)
        except _PowerCut:
            power_cut = True
    kernel = next((found[1] for line in seen if (found := _KERNEL.search(line))), "")
    ended = {found[1]: int(found[2]) for line in seen if (found := _RAN.search(line))}
    return Booted(kernel, ended, console, power_cut)


def _second_disk(scratch: Path, checks: Mapping[str, str], files: Sequence[Path]) -> Path:
    content, image = scratch / "content", scratch / "image"
    content.mkdir()
    script = [f'echo "{LABEL}: kernel $(uname -r)"', "cd /mnt", "export DEBIAN_FRONTEND=noninteractive TERM=dumb"]
    for name, command in checks.items():
        script.append(f'( {command} ); echo "{LABEL}: {name}: $?"')
    (content / "script").write_text("\n".join([*script, ""]))
    for path in files:
        shutil.copy2(path, content)
    size_mib = sum(path.stat().st_size for path in files) * 5 // 4 // MIB + 32
    make_ext4(content, image, LABEL, size_mib)
    return image


def make_ext4(content: Path, image: Path, label: str, size_mib: int, offset_bytes: int = 0) -> None:
    """Make a file system with a directory's files, from `offset_bytes` of the file `image` on. Raises InfraError."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    proc.capture(["mkfs.ext4", "-q", "-F", "-L", label, "-d", content, "-E", f"offset={offset_bytes}", image,
                  f"{size_mib}M"], env={"PATH": path})


def machine(disk: Path, kvm: bool) -> list[str | Path]:
    """QEMU's command line of two memory nodes of a CPU each, without a network; the console is standard output.

    cache=unsafe: what the guest has written is in this machine's page cache.
    """
    accelerated = ["-machine", "q35,accel=kvm", "-cpu", "host"]
    line: list[str | Path] = [packages.QEMU]
    line += accelerated if kvm else ["-machine", "q35,accel=tcg", "-cpu", "max,-erms,-fsrm"]
    line += ["-smp", "2,sockets=2", "-m", "2048"]
    for node in range(2):
        line += ["-object", f"memory-backend-ram,id=m{node},size=1G", "-numa", f"node,memdev=m{node},cpus={node}"]
    line += ["-drive", f"file={disk},format=raw,if=virtio,cache=unsafe"]
    return [*line, "-display", "none", "-monitor", "none", "-serial", "stdio"]
