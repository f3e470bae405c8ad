# SPDX-License-Identifier: GPL-2.0
"""What the kernel did between two snapshots, per second."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.control import histogram, tree
from ferry.control.histogram import EMPTY, Histogram
from ferry.control.tree import Choice, Copies, Snapshot


@dataclass(frozen=True)
class Interval:
    """Two snapshots, the earlier one first."""

    before: Snapshot
    after: Snapshot

    def increase(self, name: str) -> int:
        """Of a counter. One that shrank, or was not there before, began at 0 when its module was loaded."""
        before, after = number(self.before, name), number(self.after, name)
        return after - before if after >= before else after

    def rate(self, name: str) -> float:
        """The increase per second."""
        return self.increase(name) / (self.after.at_s - self.before.at_s)


@dataclass(frozen=True)
class CopyRates:
    """The copies of one migrator for one reason. Rates are per second, by the file's name."""

    of: Copies
    rates: dict[str, float]
    gbps: float | None
    """Bytes per nanosecond of copying; None if nothing was copied."""


@dataclass(frozen=True)
class ReasonRates:
    """One reason: its settings, what moved, and how long folios were locked."""

    reason: str
    migrator: str
    moved_pages: float
    failed_pages: float
    locked: Histogram
    max_bytes_per_s: int
    throttled_share: float
    """Seconds per second that tasks slept, or DAMON skipped schemes, for the limit; above 1 if several slept."""


def number(snapshot: Snapshot, name: str) -> int:
    """A file's number, 0 if the file is absent or has none."""
    value = snapshot.values.get(name)
    return value if isinstance(value, int) else 0


def copy_rates(interval: Interval) -> list[CopyRates]:
    """One for each migrator and reason that has counted anything in the interval."""
    found = []
    for one in tree.copies(interval.after.values):
        names = [name for name in interval.after.values if name.rpartition("/")[0] == one.path]
        if any(interval.increase(name) for name in names):
            rates = {name.rpartition("/")[2]: interval.rate(name) for name in names}
            copied, spent_ns = (interval.increase(f"{one.path}/{file}") for file in ("bytes", "copy_ns"))
            found.append(CopyRates(one, rates, copied / spent_ns if spent_ns else None))
    return found


def reason_rates(interval: Interval) -> list[ReasonRates]:
    """One for each reason that has counted anything in the interval."""
    values = interval.after.values
    before, after = histogram.locked(interval.before.values), histogram.locked(values)
    reasons = sorted({name.split("/")[-2] for name in values if name.startswith("reasons/")} | set(after)
                     | {name.split("/")[2] for name in values if name.startswith("stats/reasons/")})
    found = []
    for reason in reasons:
        stats = f"stats/reasons/{reason}"
        migrator = values.get(f"reasons/{reason}/migrator")
        selected = migrator.selected if isinstance(migrator, Choice) else ""
        limit = number(interval.after, f"reasons/{reason}/max_bytes_per_s")
        if any(interval.increase(name) for name in values if name.startswith(f"{stats}/")):
            locked = histogram.difference(before.get(reason, EMPTY), after.get(reason, EMPTY))
            found.append(ReasonRates(reason, selected, interval.rate(f"{stats}/moved_pages"),
                                     interval.rate(f"{stats}/failed_pages"), locked, limit,
                                     interval.rate(f"{stats}/throttled_us") / 10**6))
    return found
