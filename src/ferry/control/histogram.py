# SPDX-License-Identifier: GPL-2.0
"""How long the folios of a batch stayed locked: cumulative histograms, their differences and percentiles."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ferry.control.tree import Value

_FILE = re.compile(r"stats/reasons/(?P<reason>[^/]+)/locked/(?:le_(?P<bound>\d+)us|(?P<sum>count|total_us))")


@dataclass(frozen=True)
class Histogram:
    """Batches up to each bound in microseconds, their number, and their time together in microseconds."""

    buckets: Mapping[int, int]
    count: int
    total_us: int


EMPTY = Histogram({}, 0, 0)


def locked(values: Mapping[str, Value]) -> dict[str, Histogram]:
    """The histogram of each reason.

    The kernel counts while the files are read one after the other, so a bucket may be behind a smaller one, and the
    count behind both. Each is raised to the one before it: a cumulative histogram never falls.
    """
    files: dict[str, dict[str, int]] = {}
    for name, value in values.items():
        if (match := _FILE.fullmatch(name)) and isinstance(value, int):
            files.setdefault(match["reason"], {})[match["bound"] or match["sum"]] = value
    found = {}
    for reason, numbers in files.items():
        bounds = sorted(int(key) for key in numbers if key.isdigit())
        counts = [*(numbers[str(bound)] for bound in bounds), numbers.get("count", 0)]
        *buckets, count = itertools.accumulate(counts, max)
        found[reason] = Histogram(dict(zip(bounds, buckets, strict=True)), count, numbers.get("total_us", 0))
    return found


def difference(before: Histogram, after: Histogram) -> Histogram:
    """The batches that came between the two; all of `after` if its counters were restarted from 0."""
    if after.count < before.count or after.total_us < before.total_us:
        before = EMPTY
    counts = [most - before.buckets.get(bound, 0) for bound, most in after.buckets.items()]
    counts.append(after.count - before.count)
    *buckets, count = itertools.accumulate(counts, max)
    return Histogram(dict(zip(after.buckets, buckets, strict=True)), count, after.total_us - before.total_us)


def together(histograms: Iterable[Histogram]) -> Histogram:
    """The batches of all of them, which have the same bounds."""
    buckets: Counter[int] = Counter()
    count = total_us = 0
    for one in histograms:
        buckets.update(one.buckets)
        count, total_us = count + one.count, total_us + one.total_us
    return Histogram(buckets, count, total_us)


def percentile(histogram: Histogram, share: float) -> float | None:
    """The least bound, in microseconds, that at least this share of the batches did not exceed.

    Infinity if it is above the last bound; None without batches. The place within a bucket is not known.
    """
    if not histogram.count:
        return None
    return next((bound for bound, most in histogram.buckets.items() if most >= share * histogram.count), float("inf"))
