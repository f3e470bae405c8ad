# SPDX-License-Identifier: GPL-2.0
"""The modelled speed of engines, with a clock that only a sleep or a copy moves on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ferry.devices.faults import Plan
from ferry.devices.pace import Bandwidth, Pace

MIB = 1 << 20
MB = 1_000_000


class Queue:
    """A queue whose copies take `copy` seconds, and whose sleeps end `late` seconds late; `at` is its clock."""

    def __init__(self, plan: Plan, shared: Bandwidth, copy: float = 0.0, late: float = 0.0) -> None:
        self.at = 0.0
        self.slept = self.overdue = 0
        self.copy = copy
        self._plan, self._late = plan, late
        self._pace = Pace(shared, lambda: self.at)
        self._pace.begin()

    def run(self, length: int) -> float:
        """One descriptor; returns when it is complete."""
        due = self._pace.due(self._plan, length)
        self.at += self.copy
        self.overdue += self._pace.is_overdue(due)
        assert self._pace.sleep_until(due, self._sleep)
        return self.at

    def _sleep(self, seconds: float) -> bool:
        assert seconds > 0
        self.slept += 1
        self.at += seconds + self._late
        return True


def side_by_side(queues: Sequence[Queue], length: int, each: int) -> float:
    """Run `each` descriptors of every queue, always that of the queue which is free first; returns the end of all."""
    for _ in range(each * len(queues)):
        min(queues, key=lambda queue: queue.at).run(length)
    return max(queue.at for queue in queues)


def test_without_a_speed_nothing_sleeps() -> None:
    queue = Queue(Plan(), Bandwidth(), copy=0.001)
    assert queue.run(MIB) == pytest.approx(0.001)
    assert queue.slept == queue.overdue == 0


def test_a_descriptor_takes_its_latency_and_its_bytes() -> None:
    queue = Queue(Plan(queue_mb_per_s=500, latency_us=50), Bandwidth())
    assert queue.run(MB) == pytest.approx(0.002050)


def test_a_delay_is_added() -> None:
    pace = Pace(Bandwidth(), lambda: 3.0)
    pace.begin()
    assert pace.due(Plan(queue_mb_per_s=500, device_mb_per_s=400), MB, 0.25) == pytest.approx(3.2525)


def test_a_descriptor_starts_when_that_before_it_ends() -> None:
    """Whatever the queue does in between is a part of its time."""
    queue = Queue(Plan(queue_mb_per_s=500), Bandwidth())
    for _ in range(3):
        queue.run(MB)
        queue.at += 0.001
    assert queue.run(MB) == pytest.approx(0.008)


@pytest.mark.parametrize(("copy", "takes"), [(0.0005, 0.002), (0.0019, 0.002), (0.003, 0.003)])
def test_the_longer_one_of_the_modelled_and_the_real_time(copy: float, takes: float) -> None:
    queue = Queue(Plan(queue_mb_per_s=500), Bandwidth(), copy=copy)
    assert queue.run(MB) == pytest.approx(takes)
    assert queue.run(MB) == pytest.approx(2 * takes)
    assert queue.overdue == (2 if copy == 0.003 else 0)


def test_late_sleeps_average_out() -> None:
    """20 us each; a sleep ends 100 us late."""
    queue = Queue(Plan(queue_mb_per_s=200), Bandwidth(), copy=1e-6, late=1e-4)
    for _ in range(1000):
        queue.run(4000)
    assert 0.02 <= queue.at <= 0.02 + 1e-4 + 1e-5
    assert queue.slept < 1000 / 5


def test_a_slow_copy_is_not_made_up_for() -> None:
    queue = Queue(Plan(queue_mb_per_s=500), Bandwidth(), copy=0.005)
    queue.run(MB)
    queue.copy = 0.0
    assert queue.run(MB) == pytest.approx(0.007)


def test_a_disturbed_sleep_says_so_and_takes_nothing_off_the_next() -> None:
    pace = Pace(Bandwidth(), lambda: 0.0)
    pace.begin()
    due = pace.due(Plan(latency_us=100), MIB)
    assert not pace.sleep_until(due, lambda seconds: False)
    asked: list[float] = []
    assert not pace.sleep_until(due, lambda seconds: bool(asked.append(seconds)))
    assert asked == [pytest.approx(1e-4)]


@pytest.mark.parametrize("late", [0.0, 1e-4])
def test_sixteen_queues_are_sixteen_times_one_until_the_limit_of_the_device(late: float) -> None:
    def rate(count: int, limit: int) -> float:
        plan, shared = Plan(queue_mb_per_s=100, device_mb_per_s=limit), Bandwidth()
        queues = [Queue(plan, shared, copy=1e-5, late=late) for _ in range(count)]
        return count * 100 * MIB / side_by_side(queues, MIB, 100) / MB

    assert [rate(count, 0) for count in (1, 4, 16)] == [pytest.approx(expected, rel=0.01)
                                                        for expected in (100, 400, 1600)]
    assert [rate(count, 800) for count in (1, 4, 16)] == [pytest.approx(expected, rel=0.01)
                                                          for expected in (100, 400, 800)]


def test_an_idle_device_saves_nothing_up() -> None:
    shared = Bandwidth()
    assert shared.reserve(5.0, 1.0) == 6.0
    assert shared.reserve(5.5, 1.0) == 7.0
    assert shared.reserve(20.0, 1.0) == 21.0
