# SPDX-License-Identifier: GPL-2.0
"""What the role reads from files and programs of Debian and of `ferry`."""

from __future__ import annotations

import json
import re

MISSING = "missing"
#: The features' control files -> what switches them off.
OFF = {"migrator": "off", "runs": "0", "migrc/enabled": "0"}
#: Bytes; the packages are for amd64 alone.
PAGE = 4096


def grub_entry(menu: str, release: str) -> str:
    """The entry of a kernel in /boot/grub/grub.cfg, as grub-set-default and grub-reboot take it; "" if there is none.

    Entries are below a submenu, except with GRUB_DISABLE_SUBMENU.
    """
    name = f"gnulinux-{re.escape(release)}-advanced-[^']+"
    entry = re.search(rf"^(\s*)menuentry .* \$menuentry_id_option '({name})'", menu, re.MULTILINE)
    if not entry:
        return ""
    submenus = re.findall(r"^submenu .* \$menuentry_id_option '([^']+)'", menu[:entry.start()], re.MULTILINE)
    return f"{submenus[-1]}>{entry[2]}" if entry[1] and submenus else entry[2]


def pending(files: list[str], installed: list[str]) -> list[str]:
    """The package files that are to be installed; `installed` has lines of dpkg-query, STATUS NAME VERSION."""
    names = {file: file.rpartition("/")[2].split("_") for file in files}
    return [file for file, (name, version, *_) in names.items() if f"installed {name} {version}" not in installed]


def differing(shown: str, wanted: str) -> list[str]:
    """A line for each setting of a file for `ferry ctl restore` that `ferry ctl show --format json` shows otherwise.

    A feature that the file does not name must be off. It is off if the kernel has no such file.
    """
    files = json.loads(shown)["files"]
    pairs = [line.partition("=") for line in wanted.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    # The last one counts, as it does when they are written.
    settings = OFF | {name.strip(): value.strip() for name, _, value in pairs}
    values = {name: _value(files, name) for name in settings}
    return [f"{name} is {values[name]}, not {value}" for name, value in settings.items()
            if values[name] != _as_shown(name, value) and (values[name], value) != (MISSING, OFF.get(name))]


def _as_shown(name: str, value: str) -> str:
    """A value as the kernel shows it after a write."""
    if name == "dcbm/devices":
        return value.replace(",", " ").strip()
    if name == "migrc/max_bytes" and value.isdecimal():
        return str(int(value) // PAGE * PAGE)
    return value


def _value(files: object, name: str) -> str:
    """The text whose write selects a file's present value; MISSING if the kernel has no such file."""
    for part in name.split("/"):
        if not isinstance(files, dict) or part not in files:
            return MISSING
        files = files[part]
    return str(files["value"] if isinstance(files, dict) else files)


class FilterModule:
    def filters(self) -> dict[str, object]:
        return {f"folio_ferry_{one.__name__}": one for one in (grub_entry, pending, differing)}
