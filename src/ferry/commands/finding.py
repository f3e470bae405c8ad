# SPDX-License-Identifier: GPL-2.0
"""A line of `ferry doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One line of output: whether it is ok, the subject, its state, and the next command if it is not ok.

    A `doubt` is about figures that this machine gives; nothing is missing.
    """

    ok: bool
    what: str
    found: str
    next: str = ""
    doubt: bool = False

    @property
    def line(self) -> str:
        """As it is printed."""
        word = "MISSING" if not self.ok else "DOUBT" if self.doubt else "ok"
        return f"{word:8}{self.what:22}{self.found}"
