# SPDX-License-Identifier: GPL-2.0
"""Medians, ratios and whether the intervals hold what they claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from ferry.results import stats
from ferry.results.document import Row


def row(samples: Sequence[float], unit: str = "gbps", boots: int = 1) -> Row:
    """A row with only what the statistics look at; its samples are dealt out to boots in order."""
    each = len(samples) // boots
    ids = [[index // each, index % each] for index in range(len(samples))]
    return cast(Row, {"samples": list(samples), "sample_ids": ids, "unit": unit})


def test_median_and_mad_by_hand() -> None:
    assert stats.median([5.0, 1.0, 2.0]) == 2.0
    assert stats.mad([1.0, 2.0, 4.0, 9.0, 2.0]) == 1.0


def test_no_samples_have_no_median() -> None:
    with pytest.raises(ValueError, match="no samples"):
        stats.median([])


def test_more_throughput_is_better_and_less_cost_is_better() -> None:
    twice, once = row([2.0, 4.0] * 5), row([1.0, 2.0] * 5)
    assert stats.ratio(twice, once) == {"median": 2.0, "ci95": [2.0, 2.0]}
    twice["unit"] = once["unit"] = "instructions_per_page"
    assert stats.ratio(twice, once) == {"median": 0.5, "ci95": [0.5, 0.5]}


def test_a_sample_of_0_that_makes_a_ratio_no_number_leaves_none() -> None:
    some, none = row([2.0] * 9 + [4.0]), row([0.0] + [2.0] * 9)
    assert stats.ratio(some, none) is None
    assert stats.ratio(none, some) == {"median": 1.0, "ci95": [0.75, 1.0]}
    some["unit"] = none["unit"] = "p99_us"
    assert stats.ratio(none, some) is None and stats.ratio(some, none) is not None


def test_pairing_takes_out_the_drift_of_the_host() -> None:
    drift = np.linspace(1, 3, 12)
    ratio = stats.ratio(row(list(1.5 * drift)), row(list(drift)))
    assert ratio is not None and ratio["ci95"] is not None
    assert ratio["ci95"][1] - ratio["ci95"][0] < 1e-9


def test_only_samples_of_the_same_boot_and_round_are_paired() -> None:
    ours, theirs = row([10.0, 20.0, 30.0]), row([1.0, 2.0, 5.0])
    ours["sample_ids"] = [[0, 1], [0, 2], [1, 1]]
    theirs["sample_ids"] = [[0, 2], [1, 1], [1, 2]]
    assert stats.paired_ratios(ours, theirs) == [[20.0], [15.0]]


def test_nothing_to_pair_is_no_ratio() -> None:
    ours, theirs = row([1.0]), row([1.0])
    theirs["sample_ids"] = [[7, 7]]
    assert stats.ratio(ours, theirs) is None


def test_a_few_pairs_have_a_ratio_but_no_interval() -> None:
    for count in (1, stats.MIN_SAMPLES - 1):
        assert stats.ratio(row([3.0] * count), row([2.0] * count)) == {"median": 1.5, "ci95": None}
    assert stats.ratio(row([3.0] * 10), row([2.0] * 10)) == {"median": 1.5, "ci95": [1.5, 1.5]}


def test_same_samples_same_interval() -> None:
    ours, theirs = row([1.0, 1.1, 1.3, 0.9] * 3), row([1.0, 0.8, 1.2, 1.0] * 3)
    first, second = stats.ratio(ours, theirs), stats.ratio(ours, theirs)
    assert first == second and first is not None and first["ci95"] is not None


def covered(draws: int, boots: int, boot_spread: float, monkeypatch: pytest.MonkeyPatch) -> float:
    """The share of made-up experiments whose interval holds the ratio 1.5 they were drawn with."""
    monkeypatch.setattr(stats, "RESAMPLES", 599)
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(draws):
        levels = np.repeat(rng.lognormal(0, boot_spread, boots), 15)
        ours = 1.5 * levels * rng.lognormal(0, 0.05, 15 * boots)
        found = stats.ratio(row(list(ours), boots=boots), row([1.0] * len(ours), boots=boots))
        assert found is not None and found["ci95"] is not None
        held += found["ci95"][0] <= 1.5 <= found["ci95"][1]
    return held / draws


def test_interval_of_one_boot_holds_the_truth_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.91 <= covered(400, 1, 0.0, monkeypatch) <= 0.99


def test_interval_of_several_boots_allows_for_boots_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pooling the samples of six differing boots would hold the truth in well under half of the experiments."""
    assert 0.82 <= covered(300, 6, 0.1, monkeypatch) <= 0.99


def test_interval_of_two_boots_is_narrower_than_it_says_where_boots_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """No promise, but what the module's docstring warns of: who mends it may say so there."""
    assert covered(300, 2, 0.0, monkeypatch) >= 0.91
    assert 0.4 <= covered(300, 2, 0.1, monkeypatch) <= 0.9


def test_boots_may_have_given_different_numbers_of_samples() -> None:
    ratio = stats.ratio_between([[2.0] * 9, [2.0]], [[1.0] * 3, [1.0] * 8])
    assert ratio == {"median": 2.0, "ci95": [2.0, 2.0]}


def test_independent_medians_are_resampled_independently() -> None:
    """Resampling both sides with the same draws would give identical samples an interval of no width."""
    same: Any = [[1.0, 1.2, 0.9, 1.1, 1.3, 0.8] * 2]
    ratio = stats.ratio_between(same, same)
    assert ratio["ci95"] is not None
    assert ratio["ci95"][0] < 0.95 and ratio["ci95"][1] > 1.05


def test_medians_differ_if_the_interval_of_their_difference_excludes_0() -> None:
    low, high = [[0.0, 1.0, 2.0] * 4], [[5.0, 6.0, 7.0] * 4]
    assert stats.differ(low, high) is True and stats.differ(high, low) is True
    assert stats.differ(low, low) is False and stats.differ(low, [[6.0] * 9]) is None
