# SPDX-License-Identifier: GPL-2.0
"""Build the plugin for QEMU into the cache, keyed by its source and the API of this machine's QEMU."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

from ferry import paths, proc
from ferry.debian import packages
from ferry.errors import InfraError

SOURCE = Path(__file__).with_name("record_blocks.c")
_FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden")
#: The first QEMU of an API version whose declarations differ (docs/about/removed-features and qemu-plugin.h).
_QEMU_OF_API_3 = (9, 1)


def built() -> Path:
    """The plugin for the QEMU of this machine. Raises InfraError if there is no QEMU, or with the compiler's error."""
    api = api_of(_qemu_version())
    key = hashlib.sha256(SOURCE.read_bytes() + f"{api}{_FLAGS}".encode()).hexdigest()[:20]
    home = paths.cache_dir() / "plugin" / key
    if not home.is_dir():
        log = paths.cache_dir() / "plugin.log"
        with paths.lock("plugin"), paths.publish(home) as scratch:
            done = proc.run(["cc", *_FLAGS, f"-DPLUGIN_API={api}", "-o", scratch / "record_blocks.so", SOURCE],
                            log=log, timeout=60)
            if done.status:
                raise InfraError("the plugin for QEMU does not build", hint="./ferry doctor, or read the log", log=log)
    return home / "record_blocks.so"


def api_of(version: tuple[int, int]) -> int:
    """The plugin API to build for: 1 up to QEMU 9.0, which is the last that has it, then 4."""
    return 4 if version >= _QEMU_OF_API_3 else 1


def _qemu_version() -> tuple[int, int]:
    try:
        said = subprocess.run([packages.QEMU, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise proc.missing_program(packages.QEMU) from error
    found = re.search(r"version (\d+)\.(\d+)", said)
    if not found:
        raise InfraError(f"{packages.QEMU} --version prints no version: {said[:80]}", hint="./ferry doctor")
    return int(found[1]), int(found[2])
