# SPDX-License-Identifier: GPL-2.0
"""The control file of the device models."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.devices.faults import Fault, Faults, Plan, parse

DEVICES = ("ptdma", "ae4dma")


def test_device_replaces_single_keys() -> None:
    plans = parse('{"seed": 1, "error": 5, "ae4dma": {"error": 0, "late": 9, "late_ms": 50}}', DEVICES)
    assert plans["ptdma"] == Plan(seed=1, error=5)
    assert plans["ae4dma"] == Plan(seed=1, late=9, late_ms=50)


@pytest.mark.parametrize(("text", "said"), [
    ("", "Expecting value"),
    ("[]", "not a JSON object"),
    ('{"eror": 5}', "unknown key 'eror'"),
    ('{"error": -1}', "error is -1"),
    ('{"error": 0.2}', "error is 0.2"),
    ('{"error": true}', "error is True"),
    ('{"ptdma": 5}', "ptdma is not an object"),
    ('{"ptdma": {"ptdma": {}}}', "unknown key"),
])
def test_what_makes_no_sense_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse(text, DEVICES)


@pytest.mark.parametrize("fault", Fault)
def test_one_in_so_many(fault: Fault) -> None:
    plan = Plan(seed=11, **{fault.value: 10})
    drawn = [plan.draw("ptdma", 0, number) for number in range(5000)]
    assert set(drawn) == {None, fault}
    assert 400 <= drawn.count(fault) <= 600
    assert drawn == [plan.draw("ptdma", 0, number) for number in range(5000)]


def test_each_descriptor_or_none() -> None:
    assert all(Plan(error=1).draw("ptdma", 0, number) is Fault.ERROR for number in range(50))
    assert not any(Plan().draw("ptdma", 0, number) for number in range(50))


def test_queues_devices_and_seeds_differ() -> None:
    def drawn(seed: int, device: str, queue: int) -> list[Fault | None]:
        return [Plan(seed=seed, error=3).draw(device, queue, number) for number in range(60)]

    streams = [drawn(1, "ptdma", 0), drawn(2, "ptdma", 0), drawn(1, "ae4dma", 0), drawn(1, "ae4dma", 1)]
    assert all(one != other for at, one in enumerate(streams) for other in streams[:at])


def test_one_rate_does_not_move_another() -> None:
    alone, beside = Plan(error=7), Plan(error=7, stall=5)
    for number in range(500):
        if alone.draw("ptdma", 0, number):
            assert beside.draw("ptdma", 0, number) in (Fault.STALL, Fault.ERROR)


def test_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "faults"
    faults = Faults(path, DEVICES)
    assert faults.current().plans["ptdma"] == Plan()
    path.write_text('{"error": 5}')
    changed = faults.current()
    assert (changed.plans["ptdma"], changed.error) == (Plan(error=5), None)
    assert faults.current() is changed
    path.unlink()
    assert faults.current().plans["ptdma"] == Plan()
    assert faults.current().generation == changed.generation + 1


def test_half_written_file_changes_nothing_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "faults"
    path.write_text('{"error": 5}')
    faults = Faults(path, DEVICES)
    before = faults.current()
    path.write_text('{"error": 5, "st')
    half = faults.current()
    assert (half.plans, half.generation) == (before.plans, before.generation)
    assert half.error
    path.write_text('{"error": 5, "stall": 2}')
    assert faults.current().plans["ae4dma"] == Plan(error=5, stall=2)
    assert faults.current().error is None
