# SPDX-License-Identifier: GPL-2.0
"""The further figures of a row, beside the one that its own samples hold: a percentile, a count, a part of a CPU."""

from __future__ import annotations

from typing import cast

from ferry.results import stats
from ferry.results.document import Document, Ratio, Row
from ferry.results.formats import Record, ratio_record

#: Counts of samples whose length is a figure, too: a faster row has fewer. Plots and comparisons have their rates.
COUNTS = frozenset({"hog_iterations"})


def of(row: Row, key: str) -> Row:
    """The row with a further figure as its samples, as far as these have it, and the figure's key as its unit.

    The row as it is if its samples are that figure.
    """
    if key == row["unit"]:
        return row
    values = row.get("figures", {}).get(key, [None] * len(row["samples"]))
    known = [(at, value) for at, value in zip(row["sample_ids"], values, strict=True) if value is not None]
    return cast(Row, {**row, "unit": key, "sample_ids": [at for at, _ in known],
                      "samples": [value for _, value in known]})


def ratio(row: Row, baseline: Row, key: str) -> Ratio | None:
    """How much better a figure is than the baseline's: above 1 is better, also for a time or a number of interrupts.

    None if a sample of 0 makes that no number, or if none of the samples stand side by side.
    """
    return stats.ratio(of(row, key), of(baseline, key))


def compared(document: Document) -> list[str]:
    """The keys of the further figures that tell whether a row is better than the baseline, in order."""
    return list(dict.fromkeys(key for row in document["rows"] if "figures" in row for key in row.get("ratios", {})
                              if key != row["unit"] and key not in COUNTS))


def records(row: Row) -> Record:
    """The ratios of the further figures, as columns of a line of CSV."""
    return {name: value for key, ratio in row.get("ratios", {}).items()
            for name, value in ratio_record(f"{key}_ratio", ratio).items()}
