# SPDX-License-Identifier: GPL-2.0
"""Build a plugin for QEMU into the cache, keyed by its source."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ferry import paths, proc
from ferry.errors import InfraError

_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden")


def built(source: Path) -> Path:
    """The plugin of a source. Raises InfraError with the compiler's log."""
    key = hashlib.sha256(source.read_bytes() + repr(_FLAGS).encode()).hexdigest()[:20]
    home = paths.cache_dir() / "plugin" / key
    name = f"{source.stem}.so"
    if not paths.use(home):
        log = paths.cache_dir() / "plugin.log"
        with paths.lock("plugin"), paths.publish(home) as scratch:
            done = proc.run(["cc", *_FLAGS, "-o", scratch / name, source], log=log, timeout=60)
            if done.status:
                raise InfraError("the plugin for QEMU does not build", hint="./ferry doctor, or read the log", log=log)
    return home / name
