# SPDX-License-Identifier: GPL-2.0
"""Output to a file that appears whole, or to standard output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ferry.errors import FerryError


def publish(text: str, path: Path | None) -> None:
    """Write to standard output, or replace `path` by a rename, so that no reader ever sees a part.

    The scratch file has no suffix `.prom`, which node_exporter would read. Raises FerryError if it cannot be written.
    """
    if path is None:
        sys.stdout.write(text)
        return
    scratch = path.parent / f".{path.name}.{os.getpid()}"
    try:
        scratch.write_text(text)
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise FerryError(f"{path} cannot be written: {error.strerror}", hint="name another directory") from error
