# SPDX-License-Identifier: GPL-2.0
"""Output to a file that appears whole, or to standard output."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from ferry.errors import FerryError


def publish(text: str, path: Path | None) -> None:
    """Write to standard output, or replace the file at `path` by a rename, so that no reader ever sees a part.

    A symbolic link stays, and the file that it names is replaced. A device or a pipe is written to. A replaced file has
    mode 0644 whatever the umask is, because node_exporter runs as another user. Raises FerryError if it cannot be
    written.
    """
    if path is None or path == Path("/dev/stdout"):
        sys.stdout.write(text)
        return
    try:
        if path.exists() and not path.is_file():
            path.write_text(text)
        else:
            _replace(Path(os.path.realpath(path)), text)
    except OSError as error:
        raise FerryError(f"{path} cannot be written: {error.strerror}", hint="name another directory") from error


def _replace(target: Path, text: str) -> None:
    """The name of the scratch file does not end in `.prom`, which node_exporter would read."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w") as scratch:
            scratch.write(text)
            scratch.flush()
            os.fchmod(handle, 0o644)
            # Otherwise a crash after the rename may leave an empty file.
            os.fsync(handle)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
