# SPDX-License-Identifier: GPL-2.0
"""The process that serves a boot's models: python -m ferry.devices --share DIR --sockets DIR NAME...

It prints "ready" once QEMU can connect, and ends at the end of its standard input. So neither it nor its sockets
outlive the process that started it, however that ends.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ferry.devices import COUNTERS, FAULTS, REQUEST, ae4dma, counters, ioat, ptdma
from ferry.devices.faults import Faults
from ferry.devices.pci import Device
from ferry.devices.server import Server, listen

MODELS = {ptdma.NAME: ptdma.make, ae4dma.NAME: ae4dma.make, ioat.NAME: ioat.make}
SWITCH_S = 0.0005
"""A register access waits at most this long for a computing thread. Python's default of 5 ms is 100 times an access."""
POLL_S = 0.05
"""Interval at which requests for the counters are polled (s)."""


class Reporter:
    """Writes the counters, at the end and on request."""

    def __init__(self, share: Path, faults: Faults, devices: Sequence[Device]) -> None:
        self._share = share
        self._faults = faults
        self._devices = devices

    def write(self, *, final: bool) -> None:
        control = self._faults.current()
        counters.write(self._share / COUNTERS, {
            "final": final,
            "control_error": control.error,
            "devices": {device.name: device.report() for device in self._devices},
        })

    def answer_requests(self) -> None:
        """Poll for requests for ever; remove each request once it is answered."""
        request = self._share / REQUEST
        while True:
            if request.exists():
                self.write(final=False)
                request.unlink(missing_ok=True)
            time.sleep(POLL_S)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m ferry.devices")
    parser.add_argument("--share", type=Path, required=True, help="where control file and counters are")
    parser.add_argument("--sockets", type=Path, required=True, help="a directory of its own, removed at the end")
    parser.add_argument("names", nargs="+", choices=sorted(MODELS))
    args = parser.parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(relativeCreated)9.0f ms %(message)s")
    sys.setswitchinterval(SWITCH_S)
    try:
        _serve(args.share, args.sockets, args.names)
    finally:
        shutil.rmtree(args.sockets, ignore_errors=True)
    return 0


def _serve(share: Path, sockets: Path, names: Sequence[str]) -> None:
    faults = Faults(share / FAULTS, tuple(names))
    devices = [MODELS[name](faults) for name in names]
    reporter = Reporter(share, faults, devices)
    for device in devices:
        listening = listen(str(sockets / device.name))
        threading.Thread(target=Server(device).serve_all, args=(listening,), daemon=True).start()
    threading.Thread(target=reporter.answer_requests, daemon=True).start()
    print("ready", flush=True)
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 4096):
            pass
    for device in devices:
        device.reset()
    reporter.write(final=True)


if __name__ == "__main__":
    sys.exit(main())
