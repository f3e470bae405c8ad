#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Programs of a Debian machine, one function each, called by the name of the link to this file.

/mnt is the directory of the machine. `said` lists the calls. Until the time (s) in the file `down`, the machine does
not answer. state.json has `running`, `enabled`, and

- `installed`: package -> version; `statuses`: package -> dpkg's status if it is not `installed`; `interrupted`: whether
  dpkg was; `unconfigurable`: a package whose postinst fails;
- how the boots of our kernel end: `first_boot` is "", "panic", "hang" or a line of the kernel's log. It panics at the
  call that begins with `panic_at`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

MACHINE, BOOT = Path("/mnt"), Path("/boot")
STATE, ENV, MENU = MACHINE / "state.json", BOOT / "grub/grubenv", BOOT / "grub/grub.cfg"
CONTROL, SETTINGS = Path("/sys/kernel/mm/migration"), Path("/etc/ferry/settings.conf")
#: More than the 10 s for which the role waited once.
PANIC_S = 12
NEVER = "-"
state = json.loads(STATE.read_text())


def grubenv() -> dict[str, str]:
    return dict(line.split("=", 1) for line in ENV.read_text().splitlines())


def set_grubenv(**changes: str) -> None:
    ENV.write_text("".join(f"{key}={value}\n" for key, value in {**grubenv(), **changes}.items() if value))


def kernels() -> list[str]:
    found = [path.name.removeprefix("vmlinuz-") for path in BOOT.glob("vmlinuz-*")]
    return sorted(found, key=lambda release: release.replace("+", "!"), reverse=True)


def uname(*words: str) -> int:
    print(state["running"] if words == ("-r",) else "Linux")
    return 0


def dmesg() -> int:
    print((MACHINE / "dmesg").read_text(), end="")
    return 0


def linux_version(action: str, *words: str) -> int:
    print("\n".join(kernels() if action == "list" else [release for release in kernels() if release in words]))
    return 0


def dpkg_query(show: str, form: str, name: str) -> int:
    if name in state["installed"]:
        print(state["statuses"].get(name, "installed"), name, state["installed"][name])
    return 0 if name in state["installed"] else 1


def apt_get(*words: str) -> int:
    packages = [word for word in words if re.match(r"/|folio-ferry|linux-", word)]
    offered = [Path(package).read_text().split() if package[0] == "/" else [package, "1"] for package in packages]
    new = [package for package in offered if state["installed"].get(package[0]) != package[1]]
    if "--simulate" in words:
        print("\n".join(["Reading package lists...", *(f"Inst {name} ({version} x)" for name, version in new)]))
        return 0
    if state["interrupted"] and words != ("update",):
        print("E: dpkg was interrupted, you must manually run 'dpkg --configure -a'", file=sys.stderr)
        return 100
    if "install" in words:
        # As the real one, it says that a package of that version is the newest, and leaves it half installed.
        state["installed"].update(dict(new))
    elif "purge" in words:
        if "half-installed" in state["statuses"].values():
            print("E: The package needs to be reinstalled, but I can't find an archive for it.", file=sys.stderr)
            return 100
        forget(packages)
    return update_kernels()


def dpkg(action: str, *words: str) -> int:
    if action == "--configure":
        state["interrupted"] = False
        for name, status in list(state["statuses"].items()):
            if status in ("unpacked", "half-configured") and name != state["unconfigurable"]:
                print(f"Setting up {name} ...")
                del state["statuses"][name]
    elif words[0] == "--force-remove-reinstreq":
        forget(words[1:])
    update_kernels()
    return int(action == "--configure" and state["unconfigurable"] in state["statuses"])


def forget(packages: Sequence[str]) -> None:
    for of in ("installed", "statuses"):
        state[of] = {name: one for name, one in state[of].items() if name not in packages}


def update_kernels() -> int:
    """The files of our kernels, and GRUB's menu."""
    for path in BOOT.glob("vmlinuz-*-ferry-*"):
        path.unlink()
    for name in state["installed"]:
        if name.startswith("linux-image-") and name not in state["statuses"]:
            (BOOT / f"vmlinuz-{name.removeprefix('linux-image-')}").touch()
    return update_grub()


def grub_editenv(*words: str) -> int:
    if words == ("list",):
        print(ENV.read_text(), end="")
    else:
        set_grubenv(**{words[2]: ""})
    return 0


def grub_set_default(entry: str) -> int:
    set_grubenv(saved_entry=entry)
    return 0


def grub_reboot(entry: str) -> int:
    set_grubenv(next_entry=entry)
    return 0


def grub_probe(target: str, where: str) -> int:
    print(state["grub"][target.removeprefix("--target=")])
    return 0


def update_grub() -> int:
    drop_in = Path("/etc/default/grub.d/folio-ferry.cfg")
    saved = drop_in.exists() and "GRUB_DEFAULT=saved" in drop_in.read_text()
    name = "$menuentry_id_option 'gnulinux"
    lines = [f"# default: {'saved' if saved else '0'}", f"menuentry 'Debian' --class os {name}-simple-UU' {{", "}",
             f"submenu 'Advanced options for Debian' {name}-advanced-UU' {{"]
    for release in kernels():
        for kind in ("advanced", "recovery"):
            lines += [f"\tmenuentry 'Debian, with Linux {release}' --class os {name}-{release}-{kind}-UU' {{", "\t}"]
    MENU.write_text("\n".join([*lines, "}", ""]))
    return 0


def systemctl(*words: str) -> int:
    action = next(word for word in words if not word.startswith("-"))
    there = "folio-ferry" in state["installed"]
    if action == "show":
        active = "active" if CONTROL.exists() else "inactive"
        print(f"LoadState={'loaded' if there else 'not-found'}\nActiveState={active}")
    elif action == "is-enabled":
        print("enabled" if state["enabled"] else "disabled")
        return 0 if state["enabled"] else 1
    elif action in ("enable", "disable"):
        state["enabled"] = action == "enable"
    elif action in ("start", "restart"):
        return restore()
    elif action == "reboot":
        reboot()
    return 0


def restore() -> int:
    """What ferry-restore.service does, if its conditions hold."""
    if not (CONTROL.exists() and SETTINGS.exists()):
        return 0
    return subprocess.run(["ferry", "ctl", "restore", SETTINGS], check=False).returncode


def reboot() -> None:
    """GRUB takes the entry for once, else the default."""
    env = grubenv()
    set_grubenv(next_entry="")
    chosen = env.get("next_entry") or (env.get("saved_entry", "") if "default: saved" in MENU.read_text() else "")
    release = release_of(chosen)
    boot(release_of(env.get("saved_entry", "")) if "-ferry-" in release and state["first_boot"] == "panic" else release)


def release_of(entry: str) -> str:
    return re.sub(r".*gnulinux-(.+)-advanced-.*", r"\1", entry) if entry else kernels()[0]


def panic() -> int:
    """GRUB starts the default after some time; if that is our kernel, it panics again."""
    state["panic_at"] = NEVER
    release = release_of(grubenv().get("saved_entry", ""))
    (MACHINE / "down").write_text("inf" if "-ferry-" in release else str(time.time() + PANIC_S))
    boot(release)
    return 1


def boot(release: str) -> None:
    """The kernel's log and control files as after a boot."""
    ours = "-ferry-" in release
    state["running"] = release
    (MACHINE / "boot_id").write_text(f"{uuid.uuid4()}\n")
    shutil.rmtree(CONTROL, ignore_errors=True)
    log = f"[    0.000000] Linux version {release}\n"
    if ours and state["first_boot"] not in ("", "panic", "hang"):
        log += f"[    3.000000] {state['first_boot']}\n"
    (MACHINE / "dmesg").write_text(log)
    if ours and state["first_boot"] == "hang":
        (MACHINE / "down").write_text("inf")
    elif ours:
        # Not the file that can only be written: without capabilities not even root reads it.
        shutil.copytree(MACHINE / "control", CONTROL, ignore=shutil.ignore_patterns("drain"))
        if state["enabled"]:
            restore()


def ferry(*words: str) -> int:
    return subprocess.run([state["python"], "-BPm", "ferry", *words], check=False,
                          env={**os.environ, "PYTHONPATH": state["src"], "FERRY_CACHE": "/tmp/ferry"}).returncode


def main() -> int:
    name, words = Path(sys.argv[0]).name, sys.argv[1:]
    quiet = ("ferry", "uname", "dmesg", "dpkg-query", "linux-version", "grub-probe")
    if name not in quiet and words[:1] not in (["list"], ["show"], ["is-enabled"], ["--simulate"]):
        with (MACHINE / "said").open("a") as said:
            said.write(" ".join([name, *words]) + "\n")
    panics = "-ferry-" in state["running"] and " ".join([name, *words]).startswith(state["panic_at"])
    status: int = panic() if panics else globals()[name.replace("-", "_")](*words)
    if panics or name in ("apt-get", "dpkg", "systemctl"):
        STATE.write_text(json.dumps(state))
    return status


if __name__ == "__main__":
    sys.exit(main())
