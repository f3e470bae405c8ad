# SPDX-License-Identifier: GPL-2.0
"""Golden files: what a command printed the last time someone looked and agreed."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden"
REFRESH = "FERRY_REFRESH_GOLDEN"


def check(name: str, text: str) -> None:
    """Fail, naming the command that refreshes the file, when `text` is not what the golden file holds."""
    path = GOLDEN / name
    if os.environ.get(REFRESH):
        path.write_text(text + "\n")
    expected = path.read_text() if path.exists() else ""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0]
    advice = f"not what {path.name} holds; if the new output is right: {REFRESH}=1 pytest '{test}'"
    assert text + "\n" == expected, advice
