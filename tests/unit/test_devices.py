# SPDX-License-Identifier: GPL-2.0
"""The models of PTDMA, AE4DMA and I/OAT: what a driver sees of them, in health and in each of their faults."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from vfio_client import BASE, MEMORY, TARGET, Ae4dmaDriver, Driver, IoatDriver, PtdmaDriver

from ferry.devices import ae4dma, ioat, ptdma

AnyDriver = PtdmaDriver | Ae4dmaDriver | IoatDriver


@pytest.fixture
def pt(tmp_path: Path) -> Iterator[PtdmaDriver]:
    driver = PtdmaDriver(tmp_path)
    yield driver
    driver.close()


@pytest.fixture
def ae4(tmp_path: Path) -> Iterator[Ae4dmaDriver]:
    driver = Ae4dmaDriver(tmp_path)
    yield driver
    driver.close()


@pytest.fixture
def intel(tmp_path: Path) -> Iterator[IoatDriver]:
    driver = IoatDriver(tmp_path)
    yield driver
    driver.close()


@pytest.fixture(params=[PtdmaDriver, Ae4dmaDriver, IoatDriver])
def each(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyDriver]:
    driver = request.param(tmp_path)
    yield driver
    driver.close()


def untouched(driver: Driver) -> bool:
    return not any(driver.target())


def test_ptdma_copies_round_its_ring(pt: PtdmaDriver) -> None:
    for number in range(70):
        pt.client.memory[TARGET : TARGET + 64] = bytes(64)
        pt.submit()
        assert pt.interrupted(), number
        assert pt.handle() == 0
        assert pt.target() == pt.source
    assert pt.row() | {"completed": 70, "interrupts": 70, "bytes": 70 * 4096} == pt.row()


def test_ptdma_without_interrupts_is_polled(pt: PtdmaDriver) -> None:
    pt.put(ptdma.INTERRUPT_ENABLE, 0)
    pt.submit()
    pt.await_row("completed", 1)
    assert pt.get(ptdma.INTERRUPT_STATUS) == ptdma.COMPLETED
    assert not pt.interrupted(seconds=0)
    pt.put(ptdma.INTERRUPT_ENABLE, 3)
    assert pt.interrupted()


def test_ptdma_halts_at_an_error_until_the_driver_moves_on(pt: PtdmaDriver) -> None:
    pt.fault(error=1)
    pt.submit()
    assert pt.interrupted()
    assert not pt.get(ptdma.CONTROL) & ptdma.RUN
    assert pt.handle() == ptdma.ERROR_CODE
    assert untouched(pt)
    pt.fault()
    pt.submit()
    assert pt.interrupted()
    assert pt.handle() == 0
    assert pt.target() == pt.source
    assert (pt.row()["errors"], pt.row()["completed"]) == (1, 1)


def test_ptdma_does_not_run_what_failed_again(pt: PtdmaDriver) -> None:
    pt.fault(error=1)
    pt.submit()
    assert pt.interrupted()
    pt.fault()
    pt.put(ptdma.CONTROL, pt.control | ptdma.RUN)
    assert not pt.interrupted(seconds=0.05)
    assert pt.row()["descriptors"] == 1


def test_ptdma_stopped_fetches_nothing(pt: PtdmaDriver) -> None:
    pt.put(ptdma.TAIL, (BASE & 0xFFFFFFFF) + 32)
    pt.put(ptdma.CONTROL, pt.control)
    assert not pt.interrupted(seconds=0.05)
    assert pt.row()["descriptors"] == 0


def test_ae4dma_copies_round_its_ring_and_says_so_in_the_descriptor(ae4: Ae4dmaDriver) -> None:
    for number in range(70):
        mine = ae4.submit()
        assert ae4.interrupted(), number
        assert ae4.outcome(mine) == (ae4dma.COMPLETED, 0)
        assert ae4.get(ae4dma.READ_INDEX) == ae4.index
    assert ae4.target() == ae4.source
    assert ae4.get(ae4dma.INTERRUPT_STATUS) == 1


def test_ae4dma_goes_on_after_an_error(ae4: Ae4dmaDriver) -> None:
    ae4.fault(error=1)
    assert ae4.outcome_after(ae4.submit()) == (ae4dma.FAILED, ae4dma.ERROR_CODE)
    assert untouched(ae4)
    ae4.fault()
    assert ae4.outcome_after(ae4.submit()) == (ae4dma.COMPLETED, 0)
    assert ae4.target() == ae4.source


def test_ae4dma_goes_on_after_a_termination(ae4: Ae4dmaDriver) -> None:
    """pt_terminate_all() writes this to a queue that has no such register, and nobody sets it again."""
    ae4.put(ae4dma.CONTROL, 0)
    assert ae4.outcome_after(ae4.submit()) == (ae4dma.COMPLETED, 0)


def test_ae4dma_last_queue_has_its_own_vector(tmp_path: Path) -> None:
    driver = Ae4dmaDriver(tmp_path, queue=15)
    driver.submit()
    assert driver.interrupted(vector=15)
    assert driver.target() == driver.source
    assert [row["queue"] for row in driver.client.device.report()["queues"]] == [15]
    driver.close()


def test_ioat_copies_round_its_chain_and_says_so_in_memory(intel: IoatDriver) -> None:
    for number in range(70):
        mine = intel.submit()
        assert intel.interrupted(), number
        assert intel.completion == intel.state == (mine, ioat.IDLE)
    assert intel.target() == intel.source
    assert intel.row() | {"completed": 70, "interrupts": 70} == intel.row()


def test_ioat_reports_only_what_the_driver_asks_for(intel: IoatDriver) -> None:
    """The first descriptor of a channel copies nothing, and only the last of a transfer is reported."""
    intel.submit(target=0, flags=ioat.NOTHING | ioat.WRITE_COMPLETION)
    intel.await_row("completed", 1)
    assert intel.completion == (0, ioat.IDLE)
    intel.submit(flags=0)
    intel.await_row("completed", 2)
    assert (intel.completion, intel.state) == ((0, ioat.IDLE), (1, ioat.IDLE))
    assert intel.row() | {"bytes": 4096, "interrupts": 0} == intel.row()


def test_ioat_halts_at_an_error_until_a_reset(intel: IoatDriver) -> None:
    good = intel.submit()
    assert intel.interrupted()
    intel.fault(error=1)
    intel.client.memory[TARGET : TARGET + 4096] = bytes(4096)
    intel.submit()
    assert intel.interrupted()
    assert intel.completion == intel.state == (good, ioat.HALTED)
    assert intel.get(ioat.ERROR) == ioat.WRITE_DATA_ERROR
    intel.put(ioat.ERROR, ioat.WRITE_DATA_ERROR)
    assert intel.get(ioat.ERROR) == 0
    intel.fault()
    intel.submit()
    assert not intel.interrupted(seconds=0.05)
    assert untouched(intel)
    intel.put(ioat.COMMAND, ioat.RESET, 1)
    assert not intel.get(ioat.COMMAND, 1) & ioat.RESET
    assert intel.state == (-1, ioat.SUSPENDED)
    intel.restart()
    intel.submit()
    assert intel.interrupted()
    assert intel.target() == intel.source


def test_ioat_says_how_long_a_reset_takes(intel: IoatDriver) -> None:
    intel.fault(reset_ms=300)
    for _ in range(2):
        intel.put(ioat.COMMAND, ioat.RESET, 1)
        assert intel.get(ioat.COMMAND, 1) & ioat.RESET
        time.sleep(0.1)
    time.sleep(0.2)
    assert not intel.get(ioat.COMMAND, 1) & ioat.RESET


def test_ioat_suspends_after_the_copy_under_way(intel: IoatDriver) -> None:
    intel.fault(latency_us=300_000)
    intel.submit()
    intel.await_row("bytes", 4096)
    intel.submit()
    intel.put(ioat.COMMAND, ioat.SUSPEND, 1)
    assert intel.state == (-1, ioat.ACTIVE)
    assert intel.interrupted()
    assert intel.state == (0, ioat.SUSPENDED)
    assert not intel.interrupted(seconds=0.4)
    assert intel.row()["descriptors"] == 1


def test_ioat_tells_its_driver_what_it_is(intel: IoatDriver) -> None:
    values = {ioat.CHANNEL_COUNT: 2, ioat.TRANSFER_CAPACITY: 20, ioat.VERSION: 0x34}
    intel.client.write(ioat.REGISTER_BAR, ioat.VERSION, 0, 1)
    intel.client.device.reset()
    assert {at: intel.client.read(ioat.REGISTER_BAR, at, 1) for at in values} == values


def test_corrupt_is_a_success_that_copied_nothing(each: AnyDriver) -> None:
    each.fault(corrupt=1)
    each.submit()
    assert each.interrupted()
    assert untouched(each)
    assert each.row() | {"completed": 1, "corrupt": 1, "errors": 0, "bytes": 0} == each.row()


def test_partial_is_a_success_that_copied_half(each: AnyDriver) -> None:
    each.fault(partial=1)
    each.submit()
    assert each.interrupted()
    assert each.target() == each.source[:2048] + bytes(2048)
    assert each.row() | {"completed": 1, "partial": 1, "bytes": 2048} == each.row()


def test_delay_holds_for_each(each: AnyDriver) -> None:
    each.fault(delay_us=100_000)
    started = time.monotonic()
    each.submit()
    assert each.interrupted()
    assert time.monotonic() - started >= 0.1


def test_speed_holds_for_each(each: AnyDriver) -> None:
    """Of 4096 bytes at 10^6 bytes a second; the data is there before."""
    each.fault(queue_mb_per_s=1, latency_us=500_000)
    started = time.monotonic()
    each.submit()
    each.await_row("bytes", 4096)
    assert each.row()["completed"] == 0
    assert each.interrupted()
    assert time.monotonic() - started >= 0.504


def test_queues_sleep_side_by_side(tmp_path: Path) -> None:
    driver = Ae4dmaDriver(tmp_path)
    driver.fault(latency_us=300_000)
    started = time.monotonic()
    for queue in range(ae4dma.QUEUES):
        driver.queue = queue
        driver.probe()
        driver.submit()
    assert all(driver.interrupted(vector=queue) for queue in range(ae4dma.QUEUES))
    assert 0.3 <= time.monotonic() - started < ae4dma.QUEUES * 0.3
    driver.close()


def test_reset_abandons_what_is_copied_but_not_due(each: AnyDriver) -> None:
    each.fault(latency_us=1_200_000)
    each.submit()
    each.await_row("bytes", 4096)
    each.client.device.reset()
    assert not each.interrupted(seconds=1.5)
    assert each.row() | {"abandoned": 1, "completed": 0} == each.row()


def test_late_writes_late(each: AnyDriver) -> None:
    each.fault(late=1, late_ms=1000)
    each.submit()
    assert not each.interrupted(seconds=0.1)
    assert untouched(each)
    assert each.interrupted()
    assert each.target() == each.source
    assert each.row()["late"] == 1


@pytest.mark.parametrize("how", ["reset", "bus master"])
def test_reset_abandons_what_is_late(each: AnyDriver, how: str) -> None:
    each.fault(late=1, late_ms=1200)
    each.submit()
    each.await_row("descriptors", 1)
    if how == "reset":
        each.client.device.reset()
    else:
        each.client.bus_master(False)
    assert not each.interrupted(seconds=1.5)
    assert untouched(each)
    assert each.row() | {"abandoned": 1, "late": 0, "completed": 0} == each.row()


def test_stall_lasts_until_the_driver_is_bound_anew(each: AnyDriver) -> None:
    each.fault(stall=1)
    each.submit()
    each.await_row("stalls", 1)
    each.fault()
    each.submit()
    assert not each.interrupted(seconds=0.2)
    assert untouched(each)
    each.client.bus_master(False)
    each.probe()
    each.submit()
    assert each.interrupted()
    assert each.target() == each.source
    assert each.row() | {"descriptors": 2, "completed": 1, "stalls": 1, "abandoned": 0} == each.row()


def test_bad_address_is_an_error_and_touches_nothing(each: AnyDriver) -> None:
    """The target's end is not the guest's memory."""
    each.submit(target=BASE + MEMORY - 2048)
    assert each.interrupted()
    assert each.row() | {"bad_addresses": 1, "completed": 0, "bytes": 0} == each.row()
    assert not any(each.client.memory[MEMORY - 2048 :])


def test_ring_that_is_not_there_stops_the_queue_until_reset(each: AnyDriver) -> None:
    each.client.device.memory.clear()
    each.submit()
    assert not each.interrupted(seconds=0.1)
    each.client.map()
    each.client.bus_master(False)
    each.probe()
    each.submit()
    assert each.interrupted()


def test_ring_that_vanishes_during_a_copy_stops_the_queue_until_reset(ae4: Ae4dmaDriver) -> None:
    ae4.fault(latency_us=600_000)
    ae4.submit()
    ae4.await_row("bytes", 4096)
    ae4.client.device.memory.clear()
    assert not ae4.interrupted(seconds=0.9)
    assert ae4.row() | {"completed": 0, "abandoned": 0} == ae4.row()
    ae4.client.map()
    ae4.client.bus_master(False)
    ae4.fault()
    ae4.probe()
    assert ae4.outcome_after(ae4.submit()) == (ae4dma.COMPLETED, 0)
    assert ae4.row() | {"descriptors": 2, "completed": 1, "abandoned": 1} == ae4.row()


def test_same_seed_same_fate_in_each_run(tmp_path: Path) -> None:
    def errors(name: str) -> list[int]:
        (tmp_path / name).mkdir()
        driver = Ae4dmaDriver(tmp_path / name)
        driver.fault(seed=5, error=3)
        fates = [driver.outcome_after(driver.submit())[0] for _ in range(40)]
        driver.close()
        return fates

    first = errors("a")
    assert first == errors("b")
    assert {ae4dma.COMPLETED, ae4dma.FAILED} == set(first)


def test_change_of_the_file_starts_the_numbering_anew(ae4: Ae4dmaDriver) -> None:
    def fates(seed: int) -> list[int]:
        ae4.fault(seed=seed, error=3)
        return [ae4.outcome_after(ae4.submit())[0] for _ in range(20)]

    first = fates(5)
    fates(6)
    assert fates(5) == first
