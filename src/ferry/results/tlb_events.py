# SPDX-License-Identifier: GPL-2.0
"""The events of a row of `ferry bench tlb`: TLB shootdown IPIs and remote flushes, per 1,000 pages that migrated."""

from __future__ import annotations

from collections.abc import Callable

from ferry.results import stats
from ferry.results.document import Event, TlbRow


def counted(name: str) -> Callable[[Event], float | None]:
    """A counter of the kernel: to the end of the wait where there was one, else to the end of the work."""
    return lambda event: event.get(f"settled_{name}", event.get(name))


def per_1000(name: str) -> Callable[[Event], float | None]:
    """A counter per 1,000 pages that the kernel migrated in the same time."""

    def of(event: Event) -> float | None:
        events, pages = counted(name)(event), counted("pgmigrate_success")(event)
        return 1000 * events / pages if events is not None and pages else None

    return of


PER_1000 = {"ipis": per_1000("ipis"), "flushes": per_1000("nr_tlb_remote_flush")}


def ratios(ours: TlbRow, base: TlbRow, key: str) -> list[list[float]]:
    """Per boot, how many times fewer events each sample has than the baseline's; none if one has no event at all."""
    sides = [_by_turn(row, key) for row in (ours, base)]
    shared = sides[0].keys() & sides[1].keys()
    if not all(side[turn] for side in sides for turn in shared):
        return []
    return stats.groups_of({turn: sides[1][turn] / sides[0][turn] for turn in shared})


def left(ours: TlbRow, base: TlbRow, key: str) -> list[list[float]]:
    """Per boot, each sample's part of the baseline's median of events; none if that is 0 or unknown."""
    whole = list(_by_turn(base, key).values())
    middle = stats.median(whole) if whole else 0.0
    return stats.groups_of({turn: value / middle for turn, value in _by_turn(ours, key).items()}) if middle else []


def _by_turn(row: TlbRow, key: str) -> dict[tuple[int, int], float]:
    """The events of each sample, by boot and round."""
    return {(event["boot"], event["round"]): value for event in row["events"]
            if (value := PER_1000[key](event)) is not None}
