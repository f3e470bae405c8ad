# SPDX-License-Identifier: GPL-2.0
"""The settings of the machine that a measurement or a test changes: read before, and written back after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ferry.control import settings, tree
from ferry.control.settings import Setting

#: Directories, and the beginnings of the names of those of their files that programs of guest/ write. The settings of
#: migration come last. The pools of hugetlb pages, which each node has, come before all.
FILES: Mapping[Path, Sequence[str]] = {
    Path("/sys/kernel/mm/transparent_hugepage"): ("",),
    Path("/proc/sys/kernel"): ("numa_balancing",),
    Path("/sys/kernel/debug/ferry_dcbm"): ("force_offload",),
    tree.ROOT: ("",),
}
NODES = Path("/sys/devices/system/node")

Kept = Mapping[Path, Sequence[Setting]]


def read() -> Kept:
    """The present settings by directory, each in an order that is safe while memory moves."""
    pools = dict.fromkeys(sorted(NODES.glob("node*/hugepages")), ("",))
    return {root: settings.ordered(Setting(file.name, file.setting) for file in tree.files(root, prefixes)
                                   if file.writable and file.text is not None)
            for root, prefixes in {**pools, **FILES}.items() if root.is_dir()}


def write_back(before: Kept) -> Iterator[str]:
    """Write the settings that have changed since, each by itself; a line for each that has another value still."""
    for root, was in before.items():
        errors = {}
        for setting in changed(root, was):
            try:
                tree.write(root / setting.name, setting.value)
            except OSError as error:
                errors[setting.name] = f": {error.strerror}"
        for setting in changed(root, was):
            yield f"{root / setting.name} could not be set to {setting.value} again{errors.get(setting.name, '')}"


def changed(root: Path, was: Sequence[Setting]) -> list[Setting]:
    """The settings that have another value now. A file that has vanished, as its module has, has none."""
    prefixes = FILES.get(root, ("",))
    now = {file.name: file.setting for file in tree.files(root, prefixes)} if root.is_dir() else {}
    return [setting for setting in was if now.get(setting.name, setting.value) != setting.value]
