# SPDX-License-Identifier: GPL-2.0
"""The models' own process, started for real: it serves, answers, and never outlives the boot."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ferry import boards
from ferry.boards import Board
from ferry.devices import COUNTERS, FAULTS, LOG, REQUEST
from ferry.errors import InfraError
from ferry.vm import device_models
from ferry.vm.device_models import attached

PATIENCE_S = 10.0


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Board:
    """Sockets where the test can count them."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(device_models.tempfile, "tempdir", str(tmp_path / "tmp"))
    return boards.load("x86-ptdma")


def gone(path: Path) -> bool:
    end = time.monotonic() + PATIENCE_S
    while path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return not path.exists()


def device_options(board: Board) -> list[dict[str, object]]:
    return [json.loads(option) for option in board.qemu_options if option.startswith("{")]


def test_board_without_devices_is_left_alone(tmp_path: Path) -> None:
    plain = boards.load("x86-numa")
    with attached(plain, tmp_path) as same:
        assert same is plain
    assert not list(tmp_path.iterdir())


def test_qemu_finds_each_device_behind_a_port_of_the_node(board: Board, tmp_path: Path) -> None:
    with attached(board, tmp_path) as equipped:
        found = device_options(equipped)
        assert [(one["driver"], one["bus"]) for one in found] == [
            ("vfio-user-pci", port) for port in ("dma0", "dma1", "dma2")]
        assert any("numa_node=1" in option for option in equipped.qemu_options)
        for one in found:
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(one["socket"]["path"])  # type: ignore[index]
    final = json.loads((tmp_path / COUNTERS).read_text())
    assert final["final"]
    assert set(final["devices"]) == {"ptdma", "ae4dma", "ioat"}
    assert not list((tmp_path / "tmp").iterdir())


def test_counters_on_request(board: Board, tmp_path: Path) -> None:
    (tmp_path / FAULTS).write_text('{"seed": 4, "ptdma": {"error": 9}}')
    with attached(board, tmp_path):
        (tmp_path / REQUEST).touch()
        assert gone(tmp_path / REQUEST)
        now = json.loads((tmp_path / COUNTERS).read_text())
        assert (now["schema"], now["final"], now["control_error"]) == (1, False, None)
        assert now["devices"]["ptdma"]["faults"]["error"] == 9
        assert now["devices"]["ae4dma"]["faults"]["error"] == 0
        (tmp_path / FAULTS).write_text('{"sed": 4}')
        (tmp_path / REQUEST).touch()
        assert gone(tmp_path / REQUEST)
        assert "sed" in json.loads((tmp_path / COUNTERS).read_text())["control_error"]


def test_counters_of_another_boot_are_not_taken_for_this_ones(board: Board, tmp_path: Path) -> None:
    (tmp_path / COUNTERS).write_text("{}")
    with attached(board, tmp_path):
        assert not (tmp_path / COUNTERS).exists()


def test_models_that_do_not_start_say_why(board: Board, tmp_path: Path) -> None:
    wrong = dataclasses.replace(board, devices=("floppy",))
    with pytest.raises(InfraError, match="floppy") as caught, attached(wrong, tmp_path):
        pytest.fail("no boot without its devices")
    assert caught.value.log == tmp_path / LOG
    assert not list((tmp_path / "tmp").iterdir())


def test_models_that_die_are_an_error_even_if_the_guest_was_well(board: Board, tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = device_models._start

    def remembered(*args: object) -> subprocess.Popen[bytes]:
        started.append(real(*args))  # type: ignore[arg-type]
        return started[-1]

    monkeypatch.setattr(device_models, "_start", remembered)
    with pytest.raises(InfraError, match="ended before the guest"), attached(board, tmp_path):
        started[0].kill()
        started[0].wait()
    with pytest.raises(KeyError), attached(board, tmp_path):
        raise KeyError("what went wrong in the boot is what is reported")


def test_process_does_not_outlive_a_parent_that_was_killed(tmp_path: Path) -> None:
    """Nobody is left to end it: it notices by itself, and takes its sockets with it."""
    sockets = tmp_path / "sockets"
    sockets.mkdir()
    parent = f"""
import sys, time
from pathlib import Path
from ferry.vm import device_models
import ferry.paths
process = device_models._start(("ptdma",), Path({str(tmp_path)!r}), Path({str(sockets)!r}), 2)
device_models._await_ready(process, Path("log"))
print(process.pid, flush=True)
time.sleep(60)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert (sockets / "ptdma").exists()
        process.send_signal(signal.SIGKILL)
    assert gone(sockets)
    assert gone(Path(f"/proc/{child}/fd/0"))
    assert json.loads((tmp_path / COUNTERS).read_text())["final"]
