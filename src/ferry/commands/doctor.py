# SPDX-License-Identifier: GPL-2.0
"""The verb `doctor`: list what this machine has and lacks to build and boot kernels, and the next command."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ferry import boards, paths, proc
from ferry.commands import doctor_local
from ferry.commands.finding import Finding
from ferry.debian import packages
from ferry.errors import FerryError, InfraError
from ferry.series import source

MEMORY_BYTES = 4_000_000_000
"""Two guest nodes of 1 GiB, QEMU, and one compiler per core."""
DISK_BYTES = 8_000_000_000
"""The source, two trees, the object directories of all boards, and the kernels."""


@dataclass(frozen=True)
class Requirement:
    """A Debian package, and a program on PATH, a header or a Perl module that shows that it, or its like, is there."""

    package: str
    probe: str
    purpose: str
    only: str = ""
    """All that needs it: a board, a verb or a suite; "": everything needs it."""

    @property
    def present(self) -> bool:
        if self.probe.endswith((".h", ".pm")):
            roots = ("/usr/include", f"/usr/include/{platform.machine()}-linux-gnu", "/usr/local/include")
            return any((Path(root) / self.probe).is_file() for root in roots)
        return bool(shutil.which(self.probe, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"))


REQUIREMENTS = (
    Requirement("gcc", "gcc", "compiles the kernel"),
    Requirement("libc6-dev", "stdio.h", "compiles the kernel's host programs"),
    Requirement("make", "make", "builds"),
    Requirement("flex", "flex", "builds Kconfig"),
    Requirement("bison", "bison", "builds Kconfig"),
    Requirement("bc", "bc", "builds time constants"),
    Requirement("perl", "perl", "checkpatch, and the kernel's own scripts"),
    Requirement("patch", "patch", "applies the series"),
    Requirement("git", "git", "exports and imports the series"),
    Requirement("git-email", "/usr/lib/git-core/git-send-email", "checks that the exported mails can be sent",
                "suite pytest"),
    Requirement("libmailtools-perl", "/usr/share/perl5/Mail/Address.pm", "git-email needs it", "suite pytest"),
    Requirement("rsync", "rsync", "installs kernel headers for selftests"),
    Requirement("libelf-dev", "libelf.h", "builds objtool"),
    Requirement("libssl-dev", "openssl/opensslv.h", "builds the kernel's signing tools"),
    Requirement("libnuma-dev", "numaif.h", "builds the guest programs"),
    Requirement("xz-utils", "xz", "unpacks the kernel's source"),
    Requirement("zstd", "zstd", "unpacks other sources"),
    Requirement("cpio", "cpio", "packs initramfs archives"),
    Requirement("kmod", "modprobe", "loads modules in the guest"),
    Requirement("e2fsprogs", "mkfs.ext4", "file systems for tests"),
    *([] if os.geteuid() else [Requirement("bubblewrap", "bwrap", "keeps root's User-Mode Linux from the host")]),
    Requirement("spin", "spin", "checks the models of migrc and dcbm"),
    Requirement("qemu-system-x86", "qemu-system-x86_64", "runs the x86 boards"),
    Requirement("qemu-system-arm", "qemu-system-aarch64", "runs arm64", "zcu102"),
    Requirement("gcc-aarch64-linux-gnu", "aarch64-linux-gnu-gcc", "compiles for arm64", "zcu102"),
    Requirement("libc6-dev-arm64-cross", "/usr/aarch64-linux-gnu/include/stdio.h", "compiles for arm64", "zcu102"),
    Requirement("device-tree-compiler", "dtc", "compiles the device tree", "zcu102"),
    Requirement("debhelper", "dh_builddeb", "makes kernel packages", "ferry package"),
    Requirement("mmdebstrap", "mmdebstrap", "makes a Debian disk", "suite package"),
    Requirement("fdisk", "sfdisk", "makes a Debian disk", "suite package"),
)


def absent() -> list[Requirement]:
    """The requirements that this machine lacks."""
    return [requirement for requirement in REQUIREMENTS if not requirement.present]


def findings() -> Iterator[Finding]:
    """Everything that a first build needs; the first finding that is not ok has the next command."""
    yield Finding(True, "Python", platform.python_version())
    yield _system()
    for requirement in REQUIREMENTS:
        without = f"; only for {requirement.only}" if requirement.only else ""
        found = "installed" if requirement.present else f"missing ({requirement.purpose}{without})"
        well = requirement.present or bool(requirement.only)
        yield Finding(well, requirement.package, found, "./ferry setup (as root)")
    yield _program("virtme-ng", ["vng", "--version"])
    yield _room("cache", paths.cache_dir(), DISK_BYTES)
    yield _memory()
    yield _kvm()
    yield _vfio_user()
    yield _source()


def _system() -> Finding:
    """The boards need an x86-64 host; other hosts would need a cross compiler, which is untested."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    ok = sys.platform == "linux" and platform.machine() == "x86_64"
    return Finding(ok, "machine", machine, "an x86-64 Linux machine")


def _program(name: str, command: list[str]) -> Finding:
    try:
        return Finding(True, name, proc.capture(command).strip().splitlines()[0])
    except (InfraError, IndexError) as error:
        return Finding(False, name, str(error), "remove the cache's venv directory; ./ferry sets it up again")


def _room(what: str, where: Path, needed: int) -> Finding:
    free = shutil.disk_usage(where).free
    # A cache with kernels in it needs little more space.
    enough = free >= needed or (where / "kernels").is_dir()
    return Finding(enough, what, f"{where}, {free / 1e9:.0f} GB free", f"--cache DIR with {needed / 1e9:.0f} GB free")


def _memory() -> Finding:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Finding(total >= MEMORY_BYTES, "memory", f"{total / 1e9:.0f} GB", f"{MEMORY_BYTES / 1e9:.0f} GB of memory")


def _kvm() -> Finding:
    """Always ok: the boards run without it."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return Finding(True, "KVM", "none: emulation, several times slower")
    return Finding(True, "KVM", "/dev/kvm exists; the first boot tests it")


def _vfio_user() -> Finding:
    """Always ok: only the boards with device models need it, and they fetch it."""
    found = packages.qemu_at_hand()
    return Finding(True, packages.DEVICE,
                   str(found) if found else "to be fetched from Debian when x86-ptdma first boots")


def _source() -> Finding:
    wanted = source.base()
    named = os.environ.get("FERRY_SOURCE")
    if named:
        there = Path(named).exists() or source.to_fetch(named) is not None
        return Finding(there, "kernel source", f"--source {named}", wanted.hint)
    there = (paths.cache_dir() / "source" / str(wanted.debian["tarball_sha256"])[:16]).is_dir()
    can_fetch = bool(shutil.which("apt-get"))
    found = f"Linux {wanted.version} " + ("in the cache" if there else "to be fetched from Debian on first use")
    return Finding(there or can_fetch, "kernel source", found, wanted.hint)


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser(
        "doctor", help="list what this machine has and lacks, and the next command; exit 3 if it lacks anything"
    )
    parser.add_argument("--board", choices=(boards.LOCAL,),
                        help="for measurements of this machine itself, with what would make their figures worthless")


def run(args: argparse.Namespace) -> int:
    # Without a clone no board boots.
    if args.board == boards.LOCAL or not paths.in_clone():
        return listed(doctor_local.findings, doctor_local.NEXT)
    return listed(findings, "make run")


def listed(every: Callable[[], Iterator[Finding]], then: str) -> int:
    """Print all findings and the next command, which is `then` if nothing is missing; the exit status."""
    first: Finding | None = None
    for finding in every():
        print(finding.line)
        first = first or (None if finding.ok else finding)
    print(f"\nnext: {first.next if first else then}")
    return FerryError.status if first else 0
