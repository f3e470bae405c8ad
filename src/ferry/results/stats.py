# SPDX-License-Identifier: GPL-2.0
"""Medians, their spread, and ratios with bootstrap intervals.

Samples come in groups, one group per boot. Samples of one boot resemble each other more than those of another, so
with several boots the bootstrap draws boots first and samples of the drawn boots second; with one boot it is the
ordinary percentile bootstrap of the median. Two or three boots cannot tell how much boots differ: where they differ
more than the samples of one, the interval is narrower than it says (tests/unit/test_stats.py shows by how much).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ferry.results.document import Ratio, Row, is_cost

RESAMPLES = 9999
#: Fewer tell too little of the spread: the interval of a bootstrap would be far too narrow.
MIN_SAMPLES = 10
#: A fixed seed: the same samples give the same interval in the table, the report and a later comparison.
SEED = 73

Groups = Sequence[Sequence[float]]
Array = npt.NDArray[np.float64]


def median(samples: Sequence[float]) -> float:
    """The median, in the samples' unit; ValueError when there are none."""
    if not samples:
        raise ValueError("no samples")
    return float(np.median(samples))


def mad(samples: Sequence[float]) -> float:
    """The median absolute deviation from the median, in the samples' unit."""
    middle = median(samples)
    return median([abs(sample - middle) for sample in samples])


def by_boot(row: Row) -> dict[tuple[int, int], float]:
    """A row's samples by (boot, round)."""
    return {(boot, turn): sample for (boot, turn), sample in zip(row["sample_ids"], row["samples"], strict=True)}


def groups_of(samples: Mapping[tuple[int, int], float]) -> list[list[float]]:
    """Samples by (boot, round), as one group per boot."""
    boots: dict[int, list[float]] = {}
    for (boot, _), sample in sorted(samples.items()):
        boots.setdefault(boot, []).append(sample)
    return list(boots.values())


def paired_ratios(row: Row, baseline: Row) -> list[list[float]]:
    """Per boot, how much better each sample is than the baseline's of the same boot and round (above 1 is better).

    None at all if a sample of 0 makes one of them no number.
    """
    sides = by_boot(row), by_boot(baseline)
    above, below = sides[::-1] if is_cost(row["unit"]) else sides
    shared = above.keys() & below.keys()
    return groups_of({at: above[at] / below[at] for at in shared}) if all(below[at] for at in shared) else []


def ratio(row: Row, baseline: Row) -> Ratio | None:
    """The median of the paired ratios and its 95 % interval; None when there is no such ratio."""
    groups = paired_ratios(row, baseline)
    return ratio_of(groups) if groups else None


def ratio_of(groups: Groups) -> Ratio:
    """The median of paired ratios and its 95 % interval."""
    return Ratio(median=median(flat(groups)), ci95=_interval(_medians(groups, np.random.default_rng(SEED))))


def ratio_between(ours: Groups, theirs: Groups) -> Ratio:
    """The ratio of two medians measured independently of each other, and its 95 % interval."""
    rng = np.random.default_rng(SEED)
    left, right = _medians(ours, rng), _medians(theirs, rng)
    spread = None if left is None or right is None else left / right
    return Ratio(median=median(flat(ours)) / median(flat(theirs)), ci95=_interval(spread))


def differ(ours: Groups, theirs: Groups) -> bool | None:
    """Whether the 95 % interval of the difference of two medians excludes 0; None when there are too few samples."""
    rng = np.random.default_rng(SEED)
    left, right = _medians(ours, rng), _medians(theirs, rng)
    bounds = _interval(None if left is None or right is None else left - right)
    return None if bounds is None else not bounds[0] <= 0 <= bounds[1]


def flat(groups: Groups) -> list[float]:
    """The samples of all groups."""
    return [sample for group in groups for sample in group]


def _interval(medians: Array | None) -> list[float] | None:
    if medians is None:
        return None
    return [float(bound) for bound in np.percentile(medians, [2.5, 97.5])]


def _medians(groups: Groups, rng: np.random.Generator) -> Array | None:
    """Bootstrap medians; None when there are too few samples to tell."""
    if len(flat(groups)) < MIN_SAMPLES:
        return None
    if len(groups) > 1:
        return _nested_medians(groups, rng)
    samples = np.asarray(groups[0], dtype=np.float64)
    drawn = samples[rng.integers(len(samples), size=(RESAMPLES, len(samples)))]
    return np.asarray(np.median(drawn, axis=1), dtype=np.float64)


def _nested_medians(groups: Groups, rng: np.random.Generator) -> Array:
    """Medians of resamples that draw boots with replacement, then each drawn boot's samples with replacement."""
    longest = max(len(group) for group in groups)
    table = np.array([list(group) + [np.nan] * (longest - len(group)) for group in groups])
    sizes = np.array([len(group) for group in groups])
    boots = rng.integers(len(groups), size=(RESAMPLES, len(groups)))
    picks = (rng.random((RESAMPLES, len(groups), longest)) * sizes[boots][..., None]).astype(int)
    drawn = table[boots[..., None], picks]
    drawn[np.arange(longest) >= sizes[boots][..., None]] = np.nan  # a boot gives as many samples as it has
    return np.asarray(np.nanmedian(drawn.reshape(RESAMPLES, -1), axis=1), dtype=np.float64)
