# SPDX-License-Identifier: GPL-2.0
"""Which compiler makes code for an architecture: the machine's own, or Debian's cross compiler."""

from __future__ import annotations

import os

from ferry import proc

_CROSS = {"arm64": "aarch64-linux-gnu-"}
"""What a foreign architecture's tools start with, by the kernel's name for it (ARCH=)."""


def is_foreign(arch: str) -> bool:
    """Whether this machine cannot run what is made for `arch`."""
    return arch in _CROSS


def make_variables(arch: str) -> list[str]:
    """What the kernel's make must be told."""
    prefix = _CROSS.get(arch)
    return [f"ARCH={arch}", *([f"CROSS_COMPILE={prefix}"] if prefix else [])]


def compiler(arch: str = "") -> str:
    """The C compiler's command for `arch`; for the machine's own, $CC where it is set."""
    prefix = _CROSS.get(arch)
    return f"{prefix}gcc" if prefix else os.environ.get("CC", "gcc")


def version(arch: str = "") -> str:
    """The compiler's own name for itself. Raises InfraError when there is none."""
    return proc.capture([compiler(arch), "--version"]).splitlines()[0]
