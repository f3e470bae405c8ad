# SPDX-License-Identifier: GPL-2.0
"""The machine itself in place of a guest: the script is a child process, and nothing that it changed stays changed.

1. The directory of the control files is locked: no other ferry does the same at that time. The settings of the machine
   and its loaded modules are read, and the kernel's log is opened at its end.
2. The script runs in a mount namespace of its own: what it mounts ends with its last process.
3. Whatever ended the script, also Ctrl-C or a deadline, the former settings are written back, and the modules that the
   script loaded are unloaded. Then the kernel's new messages are added to the console's log, where a splat is found as
   that of a guest is. A signal that comes during this step waits for its end; only SIGKILL does not.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ferry import progress
from ferry.control import kept, tree
from ferry.errors import InfraError

#: More than any record of /dev/kmsg has.
_RECORD_BYTES = 8192
_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def prepared(script: Path, console: Path) -> Iterator[list[str | Path]]:
    """The command that runs a script; when the block ends, the machine is as it was, and `console` is complete.

    Raises InfraError if another ferry does the same, if a setting or a module is left, or if the kernel has overwritten
    messages of the run.
    """
    with alone():
        before, modules, messages = kept.read(), loaded(), kernel_log()
        faults: list[str] = []
        try:
            yield ["unshare", "--mount", "sh", script]
        finally:
            with uninterrupted():
                faults += [*kept.write_back(before), *unload(loaded() - modules), *add_messages(messages, console)]
                os.close(messages)
                for fault in faults:
                    progress.note(fault)
        if faults:
            raise InfraError(faults[0], hint="ferry doctor --board local", log=console)


@contextmanager
def alone() -> Iterator[None]:
    """Lock the directory of the control files, if the kernel has it. Raises InfraError if another ferry has locked it.

    Otherwise each would take the settings of the other's run for those of the machine.
    """
    if not tree.ROOT.is_dir():
        yield
        return
    directory = os.open(tree.ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InfraError("another ferry measures or tests this machine", hint="the same after its end") from error
        yield
    finally:
        os.close(directory)


def loaded() -> set[str]:
    """The modules of ours that are loaded; none on a kernel without CONFIG_MODULES, which has no such file."""
    listed = Path("/proc/modules")
    lines = listed.read_text().splitlines() if listed.exists() else []
    return {name for line in lines if (name := line.split()[0]).startswith("ferry_")}


def kernel_log() -> int:
    """A descriptor of the kernel's log, at its end: a read returns one record, or fails with EAGAIN if none is new."""
    messages = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(messages, 0, os.SEEK_END)
    return messages


def unload(modules: set[str]) -> Iterator[str]:
    """Unload modules; a line for each that the kernel keeps. In a session of its own, where no Ctrl-C reaches rmmod."""
    for name in sorted(modules):
        done = subprocess.run(["rmmod", name], capture_output=True, text=True, check=False, start_new_session=True)
        if done.returncode:
            yield f"the module {name} stays loaded: {done.stderr.strip()}"


def add_messages(messages: int, console: Path) -> Iterator[str]:
    """Add the kernel's messages from the descriptor's position on; a line if it has overwritten some."""
    with console.open("a") as out:
        while True:
            try:
                if line := _line(os.read(messages, _RECORD_BYTES)):
                    out.write(f"{line}\n")
            except BlockingIOError:
                return
            except BrokenPipeError:
                yield "the kernel has overwritten messages of this run, and a splat may have been among them"


def _line(record: bytes) -> str:
    """A record of /dev/kmsg as a console shows it; "" for a message of a program."""
    head, _, text = record.decode("utf-8", "replace").partition(";")
    priority, _, microseconds, *_ = head.split(",")
    seconds, rest = divmod(int(microseconds), 1_000_000)
    return f"[{seconds:5}.{rest:06}] {text.splitlines()[0]}" if int(priority) < 8 and text else ""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C and the signals that end ferry until the block has ended. Of the main thread only."""
    came: list[int] = []

    def note(signum: int, frame: FrameType | None) -> None:
        came.append(signum)

    former = {sig: signal.signal(sig, note) for sig in _SIGNALS}
    try:
        yield
    finally:
        for sig, handler in former.items():
            signal.signal(sig, handler)
    if came:
        raise KeyboardInterrupt
