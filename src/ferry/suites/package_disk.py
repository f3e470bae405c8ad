# SPDX-License-Identifier: GPL-2.0
"""The disk of a Debian machine, made from Debian's packages: GPT, ext4, GRUB, systemd, and the distribution's kernel.

It has what our packages depend on, since the machine has no network. GRUB is installed by its own program in a first
boot, for which QEMU starts the distribution's kernel itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from ferry import paths, proc, progress
from ferry.debian import apt, packages
from ferry.errors import InfraError
from ferry.package import tool
from ferry.suites import package_boot
from ferry.suites.package_boot import MIB
from ferry.vm import kvm

TOOLS = {"mmdebstrap": "mmdebstrap", "sfdisk": "fdisk", packages.QEMU: packages.PACKAGE}
"""Programs that make the disk -> Debian's packages with them."""
_SUITE = "trixie"
_KERNEL = "linux-image-cloud-amd64"
# OpenSSH is for the suite fleet; without a network it only listens.
_INCLUDED = ("systemd-sysv", "udev", "kmod", "initramfs-tools", "zstd", "grub-pc", "openssh-server", *tool.DEPENDS,
             f"{_KERNEL}/{_SUITE}-backports")
_SIZE_MIB = 3072
_BIOS_BOOT = "21686148-6449-6E6F-744E-656564454649"
"""The partition type where GRUB's core is on a GPT disk."""
_ROOT_SECTOR = 4096
_SECTOR = 512
_PARTITIONS = f"label: gpt\nstart=2048, size=2048, type={_BIOS_BOOT}\nstart={_ROOT_SECTOR}, type=linux\n"
_GRUB = 'GRUB_TIMEOUT=0\nGRUB_CMDLINE_LINUX="console=ttyS0 loglevel=5 systemd.show_status=false"\n'
_MASKED = "serial-getty@ttyS0.service"
"""A getty hangs up the terminal that it starts on, and with it the script of package_boot.UNIT."""
_INSTALL = {"grub-install": "grub-install /dev/vda", "update-grub": "update-grub"}
_INSTALL_S = 1200


@dataclass(frozen=True)
class Disk:
    """`image` is not to be changed: copy() it. `kernel` is its kernel's release, `kvm` whether that boots in KVM."""

    image: Path
    kernel: str
    kvm: bool


def missing() -> str:
    """Why this machine cannot make or boot the disk; "" if it can. The files of the disk belong to many users."""
    if os.geteuid():
        return "only root can make the disk"
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    absent = [package for program, package in TOOLS.items() if not shutil.which(program, path=search)]
    return f"not installed: {', '.join(absent)}" if absent else ""


def prepared() -> Disk:
    """The disk, made unless the cache has it. Raises InfraError."""
    recipe = (*_INCLUDED, _SUITE, _PARTITIONS, _GRUB, str(_INSTALL), package_boot.UNIT, _MASKED, str(_SIZE_MIB))
    home = paths.cache_dir() / "disks" / hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:20]
    if not paths.use(home):
        with paths.lock("disks"):
            if not paths.use(home):
                paths.need_disk(paths.cache_dir(), 3 * _SIZE_MIB * MIB, "making a Debian disk")
                with paths.publish(home) as scratch:
                    _make(scratch)
    (image,) = home.glob("vmlinuz-*")
    return Disk(home / "disk.raw", image.name.removeprefix("vmlinuz-"), kvm.works(image))


def copy(disk: Disk, target: Path) -> Path:
    """A copy to boot from."""
    proc.capture(["cp", "--sparse=always", "--reflink=auto", disk.image, target])
    return target


def _log(step: str) -> Path:
    """Beside the disk's directory, which is removed if a step fails."""
    return paths.cache_dir() / f"disk-{step}.log"


def _make(home: Path) -> None:
    root = home / "root"
    with progress.stage("making a Debian disk"):
        _unpack(root, _log("unpack"))
        for kind in ("vmlinuz", "initrd.img"):
            (found,) = (root / "boot").glob(f"{kind}-*")
            shutil.copyfile(found, home / found.name)
        _configure(root)
        disk = home / "disk.raw"
        with disk.open("wb") as handle:
            handle.truncate(_SIZE_MIB * MIB)
        proc.capture(["sh", "-c", f"printf '{_PARTITIONS}' | /usr/sbin/sfdisk -q {disk}"])
        package_boot.make_ext4(root, disk, "root", _SIZE_MIB - 4, _ROOT_SECTOR * _SECTOR)
        shutil.rmtree(root)
        _install_grub(home, disk)


def _unpack(root: Path, log: Path) -> None:
    """Debian's packages, installed in a directory.

    mmdebstrap mounts /proc, /sys and /dev/shm there. In a mount namespace of its own they are gone when it is killed,
    and whatever removes the directory does not reach them.
    """
    deb = f"deb [signed-by={apt.KEYRING}] {apt.mirror()}"
    sources = [f"{deb} {suite} main" for suite in (_SUITE, f"{_SUITE}-backports")]
    command = ["unshare", "--mount", "mmdebstrap", "--variant=apt", f"--include={','.join(_INCLUDED)}",
               '--aptopt=APT::Install-Recommends "false"', _SUITE, str(root), *sources]
    if proc.run(command, log=log, timeout=1800).status:
        raise InfraError("mmdebstrap made no Debian", hint="check the network and apt's mirrors", log=log)


def _configure(root: Path) -> None:
    (root / "etc/fstab").write_text("LABEL=root / ext4 errors=remount-ro 0 1\n")
    (root / "etc/hostname").write_text("debian\n")
    with (root / "etc/default/grub").open("a") as handle:
        handle.write(_GRUB)
    unit = root / "etc/systemd/system/ferry-test.service"
    unit.write_text(package_boot.UNIT)
    wants = unit.parent / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / unit.name).symlink_to(f"../{unit.name}")
    (unit.parent / _MASKED).symlink_to("/dev/null")


def _install_grub(home: Path, disk: Path) -> None:
    (kernel,), (initrd,) = home.glob("vmlinuz-*"), home.glob("initrd.img-*")
    words = "root=LABEL=root console=ttyS0 systemd.show_status=false"
    direct: list[str | Path] = ["-kernel", kernel, "-initrd", initrd, "-append", words]
    booted = package_boot.boot(disk, _INSTALL, _log("grub"), kvm=kvm.works(kernel), timeout_s=_INSTALL_S,
                               direct=direct)
    if booted.checks != dict.fromkeys(_INSTALL, 0):
        raise InfraError(f"GRUB could not be installed: {booted.checks}", hint="read the log", log=booted.console)
