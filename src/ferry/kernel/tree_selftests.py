# SPDX-License-Identifier: GPL-2.0
"""The mm selftests of the unpatched kernel's tree, built by the tree's own Makefile into the cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ferry import paths, proc, progress
from ferry.errors import InfraError
from ferry.kernel import build, toolchain
from ferry.series import source
from ferry.series.source import Source

#: What the Makefile reads, from the tree's root. It writes beside its sources, so they are copied.
_COPIED = ("tools/testing/selftests", "tools/include", "mm/gup_test.h", "lib/test_hmm_uapi.h",
           "include/vdso/time64.h")
_SUBJECT = "tools/testing/selftests/mm"
_TIMEOUT_S = 900


def programs(names: tuple[str, ...]) -> dict[str, Path]:
    """Selftests by name, for this machine's architecture. Raises InfraError with the compiler's first error."""
    base = source.obtain()
    key = build.key_of([base.key, toolchain.version(), *names])
    home = paths.cache_dir() / "tree-selftests" / key
    if not paths.use(home):
        with paths.lock("tree-selftests"):
            if not paths.use(home):
                _build(base, names, home)
    return {name: home / name for name in names}


def _build(base: Source, names: tuple[str, ...], home: Path) -> None:
    log = paths.cache_dir() / "tree-selftests.log"
    with progress.stage("building the selftests of the kernel's tree"), paths.publish(home) as out:
        work = out / "work"
        for name in _COPIED:
            _copy(base.path / name, work / name)
        headers = work / "headers"
        _make([f"O={headers}", "headers"], base.path, log)
        found = f"KHDR_INCLUDES=-isystem {headers}/usr/include"
        _make([found, f"OUTPUT={out}", *(str(out / name) for name in names)], work / _SUBJECT, log, append=True)
        shutil.rmtree(work)


def _copy(path: Path, target: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, target, symlinks=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


def _make(words: list[str], cwd: Path, log: Path, append: bool = False) -> None:
    done = proc.run(["make", f"-j{os.cpu_count() or 1}", *words], cwd=cwd, log=log, append=append, timeout=_TIMEOUT_S)
    if done.status:
        raise InfraError(f"the selftests of the kernel's tree do not build: {toolchain.first_error(done.tail)}",
                         hint="./ferry doctor", log=log)
