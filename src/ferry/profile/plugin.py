# SPDX-License-Identifier: GPL-2.0
"""Build the plugin for QEMU into the cache, keyed by its source."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ferry import paths, proc
from ferry.errors import InfraError

SOURCE = Path(__file__).with_name("record_blocks.c")
_FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden")


def built() -> Path:
    """The plugin. Raises InfraError with the compiler's log."""
    key = hashlib.sha256(SOURCE.read_bytes() + repr(_FLAGS).encode()).hexdigest()[:20]
    home = paths.cache_dir() / "plugin" / key
    if not paths.use(home):
        log = paths.cache_dir() / "plugin.log"
        with paths.lock("plugin"), paths.publish(home) as scratch:
            done = proc.run(["cc", *_FLAGS, "-o", scratch / "record_blocks.so", SOURCE], log=log, timeout=60)
            if done.status:
                raise InfraError("the plugin for QEMU does not build", hint="./ferry doctor, or read the log", log=log)
    return home / "record_blocks.so"
