# SPDX-License-Identifier: GPL-2.0
"""The vfio-user protocol, version 0.0: messages with file descriptors over a UNIX socket (QEMU's docs/interop)."""

from __future__ import annotations

import array
import json
import socket
import struct
from dataclasses import dataclass, field
from enum import IntEnum

HEADER = struct.Struct("<HHIII")
"""Message id, command, size with this header, flags, error number."""
REPLY, NO_REPLY, ERROR = 0x1, 0x10, 0x20
MAX_FDS = 16
"""QEMU accepts no more."""
MAX_TRANSFER_BYTES = 1 << 20
MAX_MESSAGE_BYTES = MAX_TRANSFER_BYTES + 4096


class Command(IntEnum):
    """The requests of a client."""

    VERSION = 1
    DMA_MAP = 2
    DMA_UNMAP = 3
    DEVICE_GET_INFO = 4
    DEVICE_GET_REGION_INFO = 5
    DEVICE_GET_IRQ_INFO = 7
    DEVICE_SET_IRQS = 8
    REGION_READ = 9
    REGION_WRITE = 10
    DEVICE_RESET = 13


class Region(IntEnum):
    """Regions of a PCI device; 0 to 5 are its BARs."""

    CONFIG = 7
    COUNT = 9


class Irq(IntEnum):
    """Kinds of interrupt of a PCI device."""

    MSIX = 2
    COUNT = 5


DEVICE_INFO = struct.Struct("<IIII")
"""Own size, flags, number of regions, number of kinds of interrupt."""
DEVICE_CAN_RESET, DEVICE_IS_PCI = 1, 2
REGION_INFO = struct.Struct("<IIIIQQ")
"""Own size, flags, index, offset of capabilities, size, offset."""
REGION_READABLE, REGION_WRITABLE = 1, 2
IRQ_INFO = struct.Struct("<IIII")
"""Own size, flags, index, number of vectors."""
IRQ_EVENTFD, IRQ_NO_RESIZE = 1, 8
SET_IRQS = struct.Struct("<IIIII")
"""Own size, flags, index, first vector, number of vectors."""
SET_IRQS_NONE, SET_IRQS_EVENTFD = 1, 4
DMA_MAP = struct.Struct("<IIQQQ")
"""Own size, flags, offset in the file, bus address, size."""
DMA_WRITABLE = 2
DMA_UNMAP = struct.Struct("<IIQQ")
"""Own size, flags, bus address, size."""
DMA_UNMAP_ALL = 2
REGION_ACCESS = struct.Struct("<QII")
"""Offset, region, number of bytes; the bytes follow in a write request and in the reply to a read."""
VERSION = struct.Struct("<HH")


class ProtocolError(Exception):
    """The peer does not speak this protocol."""


@dataclass(frozen=True)
class Message:
    """A request; the receiver closes the file descriptors."""

    id: int
    command: int
    flags: int
    payload: bytes
    fds: list[int] = field(default_factory=list)

    @property
    def wants_reply(self) -> bool:
        return not self.flags & NO_REPLY


def receive(connection: socket.socket) -> Message | None:
    """The next request; None if the peer has disconnected. Raises ProtocolError, OSError.

    File descriptors arrive with a message's first byte.
    """
    first, ancillary, _, _ = connection.recvmsg(HEADER.size, socket.CMSG_SPACE(MAX_FDS * 4))
    if not first:
        return None
    number, command, size, flags, _ = HEADER.unpack(first + _exactly(connection, HEADER.size - len(first)))
    if not HEADER.size <= size <= MAX_MESSAGE_BYTES:
        raise ProtocolError(f"a message of {size} bytes")
    return Message(number, command, flags, _exactly(connection, size - HEADER.size), _descriptors(ancillary))


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ProtocolError("the peer left in the middle of a message")
        data += part
    return bytes(data)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return list(found)


def reply(connection: socket.socket, request: Message, payload: bytes = b"", error: int = 0) -> None:
    """Answer a request, with an errno if it failed."""
    flags = REPLY | (ERROR if error else 0)
    connection.sendall(HEADER.pack(request.id, request.command, HEADER.size + len(payload), flags, error) + payload)


def version_payload() -> bytes:
    """The protocol version, and the limits of this server."""
    able = {"capabilities": {"max_msg_fds": MAX_FDS, "max_data_xfer_size": MAX_TRANSFER_BYTES}}
    return VERSION.pack(0, 0) + json.dumps(able).encode() + b"\0"
