# SPDX-License-Identifier: GPL-2.0
"""The kernel's own reader of KTAP: of the source under test, or the copy in the installed package."""

from __future__ import annotations

from pathlib import Path

from ferry import paths
from ferry.series import source

FILES = ("kunit_parser.py", "kunit_printer.py")
"""The reader, and what it imports by name."""
INSTALLED = "kunit"
"""Below paths.LIBEXEC: the copy."""


def directory() -> Path:
    """Where FILES are. Raises InfraError if the source cannot be had."""
    return source.obtain().path / "tools/testing/kunit" if paths.in_clone() else paths.LIBEXEC / INSTALLED
