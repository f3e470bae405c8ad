# SPDX-License-Identifier: GPL-2.0
"""Serves one device to one QEMU at a time; answers each request before it reads the next."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import struct
from collections.abc import Callable

from ferry.devices import vfio_user
from ferry.devices.pci import CONFIG_BYTES, Device
from ferry.devices.vfio_user import Command, Irq, Message, Region

_log = logging.getLogger(__name__)


class Server:
    """Translates requests into calls of the device; a handler returns the reply's payload."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._handlers: dict[int, Callable[[Message], bytes]] = {
            Command.VERSION: self._version,
            Command.DMA_MAP: self._dma_map,
            Command.DMA_UNMAP: self._dma_unmap,
            Command.DEVICE_GET_INFO: self._device_info,
            Command.DEVICE_GET_REGION_INFO: self._region_info,
            Command.DEVICE_GET_IRQ_INFO: self._irq_info,
            Command.DEVICE_SET_IRQS: self._set_irqs,
            Command.REGION_READ: self._region_read,
            Command.REGION_WRITE: self._region_write,
            Command.DEVICE_RESET: self._reset,
        }

    def serve_all(self, listening: socket.socket) -> None:
        """Serve one connection after the other, for ever."""
        while True:
            connection, _ = listening.accept()
            with connection:
                self.serve(connection)

    def serve(self, connection: socket.socket) -> None:
        """Serve until the peer disconnects; then reset the device, and drop the peer's memory and interrupts."""
        try:
            while request := vfio_user.receive(connection):
                self._answer(connection, request)
        except (vfio_user.ProtocolError, OSError) as error:
            _log.warning("%s: %s", self._device.name, error)
        finally:
            self._device.reset()
            self._device.memory.clear()
            self._device.interrupts.clear()

    def _answer(self, connection: socket.socket, request: Message) -> None:
        payload, error = b"", 0
        try:
            handler = self._handlers.get(request.command)
            if handler is None:
                raise OSError(errno.ENOTSUP, f"command {request.command}")
            payload = handler(request)
        except (OSError, ValueError, struct.error) as failure:
            error = getattr(failure, "errno", None) or errno.EINVAL
            _log.warning("%s: command %d: %s", self._device.name, request.command, failure)
        finally:
            for fd in request.fds:
                os.close(fd)
        if request.wants_reply:
            vfio_user.reply(connection, request, payload, error)

    def _version(self, request: Message) -> bytes:
        return vfio_user.version_payload()

    def _dma_map(self, request: Message) -> bytes:
        """Ignores memory without a file (ROMs): drivers do not copy to or from it."""
        _, flags, offset, address, size = vfio_user.DMA_MAP.unpack_from(request.payload)
        if request.fds:
            writable = bool(flags & vfio_user.DMA_WRITABLE)
            self._device.memory.map(address, size, request.fds[0], offset, writable)
        return b""

    def _dma_unmap(self, request: Message) -> bytes:
        _, flags, address, size = vfio_user.DMA_UNMAP.unpack_from(request.payload)
        everything = flags & vfio_user.DMA_UNMAP_ALL
        self._device.memory.unmap(0 if everything else address, 1 << 64 if everything else size)
        return request.payload[: vfio_user.DMA_UNMAP.size]

    def _device_info(self, request: Message) -> bytes:
        flags = vfio_user.DEVICE_CAN_RESET | vfio_user.DEVICE_IS_PCI
        return vfio_user.DEVICE_INFO.pack(vfio_user.DEVICE_INFO.size, flags, Region.COUNT, Irq.COUNT)

    def _region_info(self, request: Message) -> bytes:
        index = vfio_user.REGION_INFO.unpack_from(request.payload)[2]
        size = CONFIG_BYTES if index == Region.CONFIG else self._device.bars.get(index, 0)
        flags = vfio_user.REGION_READABLE | vfio_user.REGION_WRITABLE if size else 0
        return vfio_user.REGION_INFO.pack(vfio_user.REGION_INFO.size, flags, index, 0, size, 0)

    def _irq_info(self, request: Message) -> bytes:
        index = vfio_user.IRQ_INFO.unpack_from(request.payload)[2]
        count = self._device.vectors if index == Irq.MSIX else 0
        flags = vfio_user.IRQ_EVENTFD | (vfio_user.IRQ_NO_RESIZE if index == Irq.MSIX else 0)
        return vfio_user.IRQ_INFO.pack(vfio_user.IRQ_INFO.size, flags, index, count)

    def _set_irqs(self, request: Message) -> bytes:
        """A vector without a file descriptor is disabled."""
        _, flags, index, start, count = vfio_user.SET_IRQS.unpack_from(request.payload)
        if index != Irq.MSIX:
            return b""
        if flags & vfio_user.SET_IRQS_NONE and not count:
            self._device.interrupts.clear()
        elif flags & vfio_user.SET_IRQS_EVENTFD:
            fds = [*request.fds, *[None] * count]
            request.fds.clear()
            for vector, fd in zip(range(start, start + count), fds, strict=False):
                self._device.interrupts.set(vector, fd)
        return b""

    def _region_read(self, request: Message) -> bytes:
        offset, region, count = vfio_user.REGION_ACCESS.unpack_from(request.payload)
        if region == Region.CONFIG:
            data = self._device.read_config(offset, count)
        else:
            data = self._device.read(region, offset, count)
        return vfio_user.REGION_ACCESS.pack(offset, region, count) + data

    def _region_write(self, request: Message) -> bytes:
        offset, region, count = vfio_user.REGION_ACCESS.unpack_from(request.payload)
        data = request.payload[vfio_user.REGION_ACCESS.size :][:count]
        if region == Region.CONFIG:
            self._device.write_config(offset, data)
        else:
            self._device.write(region, offset, data)
        return vfio_user.REGION_ACCESS.pack(offset, region, count)

    def _reset(self, request: Message) -> bytes:
        self._device.reset()
        return b""


def listen(path: str) -> socket.socket:
    """A socket that QEMU can connect to. Raises OSError."""
    listening = socket.socket(socket.AF_UNIX)
    with contextlib.ExitStack() as undo:
        undo.callback(listening.close)
        listening.bind(path)
        listening.listen(1)
        undo.pop_all()
    return listening
