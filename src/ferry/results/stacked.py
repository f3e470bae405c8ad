# SPDX-License-Identifier: GPL-2.0
"""Stacked bars of phases, in the same colours wherever they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.axes import Axes

#: From the colour map tab20, whose neighbours are pairs: dark ones first.
_COLOURS = (*range(0, 20, 2), *range(1, 20, 2))


def draw(axes: Axes, labels: Sequence[str], heights: Mapping[str, Sequence[float]], least: float = 0.5) -> None:
    """A bar for each label: the first phase at the bottom, but last in the legend. No bar has a phase below `least`."""
    colours = matplotlib.colormaps["tab20"]
    tops = [sum(parts) for parts in zip(*heights.values(), strict=True)]
    for index, (phase, parts) in reversed(list(enumerate(heights.items()))):
        bottoms = [top - part for top, part in zip(tops, parts, strict=True)]
        if max(parts) >= least:
            axes.bar(labels, parts, bottom=bottoms, label=phase, width=0.6, color=colours(_COLOURS[index]))
        tops = bottoms
