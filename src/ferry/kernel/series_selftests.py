# SPDX-License-Identifier: GPL-2.0
"""The kselftests of the series, built one by one with the harness of the kernel's tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ferry import paths, proc
from ferry.errors import InfraError
from ferry.kernel import toolchain
from ferry.series import patches, source

SOURCES = "tools/testing/selftests/mm"
HEADERS = ("tools/testing/selftests", "tools/testing/selftests/kselftest", "tools/include")
#: Those that change nothing but control files and their own memory: the others swap, compact and make control groups.
LIVE = ("ferry_dcbm", "ferry_migrc", "ferry_selector", "ferry_thp", "migration_mthp")
INSTALLED = "selftests"
"""Below paths.LIBEXEC: the LIVE ones, in the installed package."""


def programs(into: Path, arch: str, names: Sequence[str] = ("*",), *, static: bool = False) -> list[Path]:
    """Build the selftests whose names match into a directory, which gets their logs, too.

    Without a clone they are those of the installed package. Raises InfraError with the compiler's first error.
    """
    if not paths.in_clone():
        return [paths.LIBEXEC / INSTALLED / name for name in names]
    tests = sorted(path for name in names for path in (patches.overlay_dir() / SOURCES).glob(f"{name}.c"))
    tree = source.obtain().path
    return [_compiled(test, tree, into, arch, static or toolchain.is_foreign(arch)) for test in tests]


def _compiled(test: Path, tree: Path, into: Path, arch: str, static: bool) -> Path:
    """Failed checks print names of files: they are relative, so that a program holds no directory of its build."""
    out, log = into / test.stem, into / f"{test.stem}.build.log"
    include = [word for headers in HEADERS for word in ("-I", str(tree / headers))]
    command = [toolchain.compiler(arch), "-O2", "-Wall", "-Werror", f"-ffile-prefix-map={tree}=.", *include,
               *(["-static"] if static else []), test.name, "-o", str(out)]
    done = proc.run(command, cwd=test.parent, log=log)
    if done.status:
        reason = toolchain.first_error(done.tail)
        raise InfraError(f"{test.name} does not build: {reason}", hint="./ferry doctor", log=log)
    return out
