# SPDX-License-Identifier: GPL-2.0
"""The compiler for an architecture: the machine's own, or Debian's cross compiler."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ferry import proc

_CROSS = {"arm64": "aarch64-linux-gnu-"}
"""The kernel's name of a foreign architecture (ARCH=) -> the prefix of its tools."""


def is_foreign(arch: str) -> bool:
    """Whether this machine cannot run programs for `arch`."""
    return arch in _CROSS


def make_variables(arch: str) -> list[str]:
    """Variables for the kernel's make."""
    prefix = _CROSS.get(arch)
    return [f"ARCH={arch}", *([f"CROSS_COMPILE={prefix}"] if prefix else [])]


def compiler(arch: str = "") -> str:
    """The C compiler for `arch`, which the kernel's Makefile uses whatever $CC is."""
    return f"{_CROSS.get(arch, '')}gcc"


def version(arch: str = "") -> str:
    """The first line of the compiler's --version. Raises InfraError if there is no compiler."""
    return proc.capture([compiler(arch), "--version"]).splitlines()[0]


def first_error(lines: Iterable[str]) -> str:
    """The first line in which the compiler or the linker names an error; a command line with -Werror is none."""
    named = re.compile(r": (fatal )?error: |multiple definition|undefined reference")
    return next((line for line in lines if named.search(line)), "see the log")
