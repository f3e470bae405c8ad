# SPDX-License-Identifier: GPL-2.0
"""Run a board's device models during a boot, and make QEMU's options for them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ferry import paths
from ferry.boards import Board
from ferry.devices import COUNTERS, LOG, REQUEST
from ferry.errors import InfraError

END_S = 10.0
"""The time that the models' process has to write its counters at the end (s)."""


@contextlib.contextmanager
def attached(board: Board, share: Path) -> Iterator[Board]:
    """The board with QEMU's options for its devices, whose models run until the block ends.

    Raises InfraError if the models do not start, or if they ended before a block that raised nothing.
    """
    if not board.devices:
        yield board
        return
    for stale in (COUNTERS, REQUEST):
        (share / stale).unlink(missing_ok=True)
    # Not in the share: the path of a socket has at most 107 bytes.
    sockets = Path(tempfile.mkdtemp(prefix="ferry-"))
    with (share / LOG).open("wb") as log:
        process = _start(board.devices, share, sockets, log.fileno())
    try:
        _await_ready(process, share / LOG)
        options = qemu_options(board.devices, board.device_node, sockets)
        yield dataclasses.replace(board, qemu_options=(*board.qemu_options, *options))
        if process.poll() is not None:
            raise InfraError(f"the models of {', '.join(board.devices)} ended before the guest did", log=share / LOG)
    finally:
        _end(process)
        shutil.rmtree(sockets, ignore_errors=True)


def qemu_options(devices: Sequence[str], node: int, sockets: Path) -> tuple[str, ...]:
    """A PCI host bridge at the memory node, from which a device takes its node, and a port for each device."""
    options = ["-device", f"pxb-pcie,id=dma,bus_nr=64,numa_node={node}"]
    for number, name in enumerate(devices):
        port = f"dma{number}"
        device = {"driver": "vfio-user-pci", "bus": port, "socket": {"type": "unix", "path": str(sockets / name)}}
        options += ["-device", f"pcie-root-port,id={port},bus=dma,chassis={number + 1}"]
        options += ["-device", json.dumps(device)]
    return tuple(options)


def _start(devices: Sequence[str], share: Path, sockets: Path, log: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ferry.devices", "--share", str(share), "--sockets", str(sockets), *devices]
    source = str(paths.repo_root() / "src")
    inherited = os.environ.get("PYTHONPATH")
    env = {**os.environ, "PYTHONPATH": f"{source}:{inherited}" if inherited else source}
    # A separate session: Ctrl-C ends the guest; then this process ends the models.
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=env,
                            start_new_session=True)


def _await_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for its first line. Raises InfraError if the process ends instead."""
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        lines = log.read_text(errors="replace").splitlines()
        raise InfraError(f"the device models do not start: {lines[-1] if lines else 'they printed nothing'}", log=log)


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream:
            with contextlib.suppress(OSError):
                stream.close()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
