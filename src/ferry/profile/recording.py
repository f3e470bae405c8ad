# SPDX-License-Identifier: GPL-2.0
"""The record of one boot: a QEMU with the plugin, and the files that it and the guest leave in the boot's share."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ferry.boards import Board
from ferry.profile import trace
from ferry.profile.trace import Blocks, Window
from ferry.vm import plugin

#: The plugin's source.
PLUGIN = Path(__file__).with_name("record_blocks.c")
_RECORD, _SYMBOLS = "record", "kallsyms"
#: The guest's command that writes down where its functions are; modules must be loaded before.
SYMBOLS_COMMAND = ["sh", "-c", f"cat /proc/kallsyms >{_SYMBOLS}"]


def recorded(board: Board, share: Path) -> Board:
    """The board with a QEMU that records into `share`."""
    recording = ("-plugin", f"{plugin.built(PLUGIN)},out={share.resolve() / _RECORD}")
    return dataclasses.replace(board, qemu_options=(*board.qemu_options, *recording))


def load(share: Path) -> tuple[list[Window], Blocks]:
    """The windows between the guest's markers, in order, and the blocks in them. Raises InfraError if one is open."""
    symbols = trace.Symbols((share / _SYMBOLS).read_text())
    return trace.windows(share / f"{_RECORD}.trace"), trace.blocks(share / f"{_RECORD}.blocks", symbols)


def remove(share: Path) -> None:
    """Delete the record: it has four bytes for each block that was executed."""
    for name in (f"{_RECORD}.trace", f"{_RECORD}.blocks", _SYMBOLS):
        (share / name).unlink(missing_ok=True)
