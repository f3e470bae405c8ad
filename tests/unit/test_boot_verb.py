# SPDX-License-Identifier: GPL-2.0
"""The verb `boot`: output while the guest runs, and a shell on a terminal."""

from __future__ import annotations

import os
import pty
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ferry import boards
from ferry.commands import boot as verb
from ferry.commands import cli
from ferry.errors import InfraError, Splat
from ferry.kernel.build import Kernel
from ferry.vm import qemu, shell
from ferry.vm.boot import BootResult

KERNEL = Kernel(Path("/bzImage"), {}, Path(), "key", Path(), "7.3.4", Path())


@pytest.fixture
def no_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache in which every kernel is built, and a board that this machine can run."""
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(verb.build, "build", lambda *words: KERNEL)
    monkeypatch.setattr(boards, "unavailable", lambda board: None)
    return tmp_path


def pretend_boot(monkeypatch: pytest.MonkeyPatch, guest: Any, status: int = 0) -> list[str]:
    """A guest that is a function of the share; returns the commands it is given."""
    commands: list[str] = []

    def boot(board: object, kernel: object, command: str, *, share: Path, **more: object) -> BootResult:
        commands.append(command)
        guest(share)
        return BootResult(status, share / "console.log", share)

    monkeypatch.setattr(verb, "boot", boot)
    return commands


def test_output_is_shown_while_the_guest_runs(no_build: Path, monkeypatch: pytest.MonkeyPatch,
                                              capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    early: list[bytes] = []

    def guest(share: Path) -> None:
        with (share / verb.OUTPUT).open("wb", buffering=0) as out:
            out.write(b"first \xff\n")
            deadline = time.monotonic() + 10
            shown = b""
            while not shown and time.monotonic() < deadline:
                time.sleep(verb.LOOK_S)
                shown = capfdbinary.readouterr().out
            early.append(shown)
            out.write(b"last, without a newline")

    pretend_boot(monkeypatch, guest, status=7)
    monkeypatch.setattr(sys, "stdout", os.fdopen(os.dup(1), "w"))
    assert cli.main(["boot", "the", "command"]) == 7
    assert early == [b"first \xff\n"]
    assert capfdbinary.readouterr().out == b"last, without a newline"


def test_what_a_guest_printed_before_it_died_is_shown(no_build: Path, monkeypatch: pytest.MonkeyPatch,
                                                      capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    def guest(share: Path) -> None:
        share.mkdir()
        (share / verb.OUTPUT).write_text("so far\n")
        raise Splat("kernel splat: BUG")

    pretend_boot(monkeypatch, guest)
    monkeypatch.setattr(sys, "stdout", os.fdopen(os.dup(1), "w"))
    assert cli.main(["boot", "--share", str(no_build / "share"), "x"]) == 5
    assert capfdbinary.readouterr().out == b"so far\n"


def terminals(monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(sys, stream, SimpleNamespace(isatty=lambda: there, buffer=sys.__stdout__.buffer,
                                                         flush=lambda: None))


@pytest.mark.parametrize(("words", "there", "gives_shell"), [
    ([], True, True), ([], False, False), (["true"], True, False), (["--board", "uml"], True, False),
])
def test_a_shell_needs_a_terminal_no_command_and_a_board_of_qemu(no_build: Path, monkeypatch: pytest.MonkeyPatch,
                                                                 words: list[str], there: bool,
                                                                 gives_shell: bool) -> None:
    shells: list[Path] = []
    monkeypatch.setattr(shell, "run", lambda board, kernel, share, append: shells.append(share))
    commands = pretend_boot(monkeypatch, lambda share: None)
    terminals(monkeypatch, there=there)
    assert cli.main(["boot", *words]) == 0
    assert (len(shells), len(commands)) == ((1, 0) if gives_shell else (0, 1))


def test_a_shell_has_no_script_and_keeps_the_monitor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(qemu.kvm, "used", lambda board, image: False)
    monkeypatch.setattr(qemu.shutil, "which", lambda name: f"/usr/bin/{name}")
    script, none = (qemu.command_line(boards.load("x86-numa"), KERNEL, tmp_path, (), name) for name in ("s", None))
    assert "--exec" in script and "--disable-monitor" in script
    assert not {"--exec", "--disable-monitor"} & set(none)


GUEST = 'test -t 0 && stty size; echo "in $VIRTME_NG_CONFIG"; read -r line; echo "got $line"; exit 3'


def on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: bytes) -> tuple[int, bytes]:
    """The status and the log of a program whose user has a terminal and types."""
    user, ours = pty.openpty()
    monkeypatch.setattr(pty, "STDIN_FILENO", ours)
    monkeypatch.setattr(pty, "STDOUT_FILENO", ours)
    monkeypatch.setattr(shell.shutil, "get_terminal_size", lambda: os.terminal_size((132, 43)))
    log = tmp_path / "console.log"

    def type_when_asked() -> None:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not (log.exists() and b"in " in log.read_bytes()):
            time.sleep(0.02)
        os.write(user, typed)

    typist = threading.Thread(target=type_when_asked)
    typist.start()
    status = shell.on_terminal(["sh", "-c", GUEST], log)
    typist.join()
    os.close(ours)
    os.close(user)
    return status, log.read_bytes()


def test_the_guest_has_the_users_terminal_and_all_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, log = on_a_terminal(tmp_path, monkeypatch, b"hello\n")
    assert status == 3
    lines = log.decode().replace("\r", "").splitlines()
    assert lines[0] == "43 132"
    assert f"in {os.devnull}" in lines and "got hello" in lines
    assert "VIRTME_NG_CONFIG" not in os.environ


@pytest.mark.parametrize(("shown", "status", "error"), [
    ("fine\n", 0, None), ("fine\n", 1, InfraError), ("[    1.0] BUG: Bad page state in process a\n", 0, Splat),
])
def test_a_splat_during_a_shell_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str, status: int,
                                            error: type[Exception] | None) -> None:
    def on_terminal(command: list[str], log: Path) -> int:
        log.write_text(shown)
        return status

    monkeypatch.setattr(boards, "unavailable", lambda board: None)
    monkeypatch.setattr(qemu, "command_line", lambda *words: ["vng"])
    monkeypatch.setattr(shell, "on_terminal", on_terminal)
    if error:
        with pytest.raises(error):
            shell.run(boards.load("x86-numa"), KERNEL, share=tmp_path)
    else:
        assert shell.run(boards.load("x86-numa"), KERNEL, share=tmp_path) == tmp_path / "console.log"


@pytest.mark.parametrize(("words", "line"), [
    ((), "uname -a"), (("ls /sys; pwd",), "ls /sys; pwd"), (("sh", "-c", "ls /sys; pwd"), "sh -c 'ls /sys; pwd'"),
])
def test_several_words_are_a_program_and_its_arguments(words: tuple[str, ...], line: str) -> None:
    assert verb.line(words) == line
