# SPDX-License-Identifier: GPL-2.0
"""The running machine: memory nodes, tiers, DMA engines, huge pages, and what makes figures worthless here.

`root` is / except in tests. A file that does not exist stands for a feature that the kernel or the machine lacks.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SLASH = Path("/")
_NODES, _CPUS, _DMA, _MM = "sys/devices/system/node", "sys/devices/system/cpu", "sys/class/dma", "sys/kernel/mm"
_TIERS, _CLOCK = "sys/devices/virtual/memory_tiering", "sys/devices/system/clocksource/clocksource0/current_clocksource"
#: Emulated by QEMU, as systemd-detect-virt(1) names it: the clock then says little about hardware.
EMULATOR = "qemu"
#: They are registers of a device, and under a hypervisor a read leaves the guest.
SLOW_CLOCKS = ("hpet", "acpi_pm")
#: Bits of /proc/sys/kernel/tainted: a bad page, an oops or BUG, a warning, a soft lockup.
_FAILED = 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14


@dataclass(frozen=True)
class MemoryNode:
    """A node of the kernel. `cpus` is "" if it has memory only, `tier` if the kernel has no memory tiers."""

    number: int
    memory_mib: int
    cpus: str
    tier: str


@dataclass(frozen=True)
class Engine:
    """A DMA controller, its driver and the number of its channels; `node` is -1 if it is near none."""

    device: str
    driver: str
    node: int
    channels: int


@dataclass(frozen=True)
class Doubt:
    """A reason why figures of this machine may be worthless, and what removes it ("" if nothing does)."""

    reason: str
    remedy: str = ""


def nodes(root: Path = SLASH) -> list[MemoryNode]:
    """All nodes, by number; none on a kernel without CONFIG_NUMA."""
    found = []
    for path in sorted((root / _NODES).glob("node[0-9]*"), key=lambda one: int(one.name[4:])):
        number = int(path.name[4:])
        total = re.search(r"MemTotal:\s+(\d+) kB", _text(path / "meminfo"))
        found.append(MemoryNode(number, int(total[1]) >> 10 if total else 0, _text(path / "cpulist"),
                                _tier(number, root)))
    return found


def ends(root: Path = SLASH) -> tuple[int, ...]:
    """The nodes between which memory is to move: the first with CPUs, and the first other one.

    A node with memory only comes before others: it is the slow tier. Fewer than two if the machine has not so many.
    """
    usable = [node for node in nodes(root) if node.memory_mib]
    near = sorted(usable, key=lambda node: not node.cpus)[:1]
    far = sorted((node for node in usable if node not in near), key=lambda node: bool(node.cpus))[:1]
    return tuple(node.number for node in (*near, *far))


def _tier(node: int, root: Path) -> str:
    tiers = (root / _TIERS).glob("memory_tier*")
    return next((tier.name for tier in tiers if node in numbers(_text(tier / "nodelist"))), "")


def numbers(listed: str) -> set[int]:
    """The numbers in a list as "0-1,3"."""
    spans = (part.partition("-") for part in listed.split(",") if part)
    return {number for first, _, last in spans for number in range(int(first), int(last or first) + 1)}


def engines(root: Path = SLASH) -> list[Engine]:
    """The DMA controllers that have registered channels."""
    channels: dict[Path, int] = {}
    for path in sorted((root / _DMA).glob("dma*chan*")):
        device = (path / "device").resolve()
        channels[device] = channels.get(device, 0) + 1
    return [Engine(device.name, (device / "driver").resolve().name if (device / "driver").exists() else "unknown",
                   int(_text(device / "numa_node") or -1), count) for device, count in channels.items()]


def huge_pages(root: Path = SLASH) -> dict[str, str]:
    """The settings of transparent huge pages, and the number of pages in the pools of hugetlb, by name."""
    thp, pools = root / _MM / "transparent_hugepage", root / _MM / "hugepages"
    found = {f"THP {name}": _selected(_text(thp / name)) for name in ("enabled", "defrag", "shmem_enabled")}
    for size in sorted(thp.glob("hugepages-*kB"), key=_kib):
        found[f"THP {_kib(size)} kB"] = _selected(_text(size / "enabled"))
    for pool in sorted(pools.glob("hugepages-*kB"), key=_kib):
        free, total = (_text(pool / name) for name in ("free_hugepages", "nr_hugepages"))
        found[f"hugetlb {_kib(pool)} kB"] = f"{free} of {total} free"
    return {name: value for name, value in found.items() if value}


def _kib(directory: Path) -> int:
    return int(directory.name.removeprefix("hugepages-").removesuffix("kB"))


def _selected(text: str) -> str:
    found = re.search(r"\[(.+?)\]", text)
    return found[1] if found else text


def modules(root: Path = SLASH) -> dict[str, Path | None]:
    """The kernel's modules of ours by name: None if it has the module already, else the file to load it from."""
    files = sorted((root / "lib/modules" / os.uname().release).rglob("ferry_*.ko*"))
    present = (path.name for path in (root / "sys/module").glob("ferry_*"))
    return {path.name.partition(".")[0]: path for path in files} | dict.fromkeys(present)


def hypervisor(root: Path = SLASH) -> str:
    """The name of the hypervisor as systemd-detect-virt(1) has it, or "vm"; EMULATOR without KVM; "" on hardware."""
    cpuinfo = _text(root / "proc/cpuinfo")
    if "QEMU TCG" in cpuinfo:
        return EMULATOR
    if root == SLASH and (program := shutil.which("systemd-detect-virt")):
        name = subprocess.run([program, "--vm"], capture_output=True, text=True, check=False).stdout.strip()
        return "" if name == "none" else name
    return "vm" if re.search(r"^flags\s*:.* hypervisor\b", cpuinfo, re.MULTILINE) else ""


def doubts(root: Path = SLASH) -> Iterator[Doubt]:
    """Reasons why figures of this machine may be worthless, but for what other programs do at the moment."""
    name = hypervisor(root)
    if name == EMULATOR:
        yield Doubt("the machine is emulated by QEMU: only ratios mean something")
    elif name:
        yield Doubt(f"the machine is virtual ({name}): its host takes CPUs and caches away at any time")
    yield from _frequencies(root)
    clock = _text(root / _CLOCK)
    if clock in SLOW_CLOCKS:
        yield Doubt(f"the kernel reads the time from {clock}, which is slow: migrators read it for each batch",
                    "dmesg | grep -i tsc tells why it is not the TSC")
    if _text(root / "proc/sys/kernel/numa_balancing") not in ("", "0"):
        yield Doubt("NUMA balancing moves pages at the same time", "sysctl kernel.numa_balancing=0")
    if (root / "proc/lockdep").exists():
        yield Doubt("the kernel was built for debugging (lockdep)", "boot one without CONFIG_LOCKDEP")
    if tainted := failed(root):
        yield Doubt(f"the kernel has warned or failed since it booted (tainted {tainted})", "dmesg, then reboot")


def failed(root: Path = SLASH) -> int:
    """The kernel's taint flags if it has warned or failed since it booted, also if the log has lost that; 0 if not."""
    tainted = int(_text(root / "proc/sys/kernel/tainted") or 0)
    return tainted if tainted & _FAILED else 0


def _frequencies(root: Path) -> Iterator[Doubt]:
    """The CPUs' clocks must not change during a measurement."""
    governors = {_text(path) for path in (root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")} - {"performance"}
    if governors:
        yield Doubt(f"the CPUs change their frequency (governor {', '.join(sorted(governors))})",
                    "cpupower frequency-set -g performance")
    if _text(root / _CPUS / "intel_pstate/no_turbo") == "0":
        yield Doubt("turbo is on: a CPU's frequency depends on heat and on the other CPUs",
                    f"echo 1 >/{_CPUS}/intel_pstate/no_turbo")
    elif _text(root / _CPUS / "cpufreq/boost") == "1":
        yield Doubt("boost is on: a CPU's frequency depends on heat and on the other CPUs",
                    f"echo 0 >/{_CPUS}/cpufreq/boost")


def _text(path: Path) -> str:
    """The content of a small file; "" if it does not exist or cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
