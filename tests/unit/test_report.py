# SPDX-License-Identifier: GPL-2.0
"""The report: one file, nothing hidden, and the kind of figure on every plot."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import made_up
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ferry.results import plots
from ferry.results.report import html


class Links(HTMLParser):
    """Whatever a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href") or tag in ("script", "link")]


def test_the_page_fetches_nothing() -> None:
    links = Links()
    links.feed(html([made_up.document()], "made-up"))
    assert [link for link in links.found if not link.startswith("#")] == []


def test_every_plot_of_emulated_figures_says_so_on_the_plot() -> None:
    drawn = plots.all_of(made_up.document())
    assert len(drawn) == 2
    assert all("emulated: ratios only" in plot.svg for plot in drawn)


@pytest.mark.parametrize("kind", ["native", "instructions"])
def test_absolute_figures_are_plotted_only_where_they_mean_something(kind: str) -> None:
    drawn = plots.all_of(made_up.document(kind=kind))
    assert len(drawn) == 3
    assert not any("emulated" in plot.svg for plot in drawn)


def test_the_same_document_gives_the_same_plots() -> None:
    assert plots.all_of(made_up.document()) == plots.all_of(made_up.document())


def ratio_axes(*medians: float, bounded: bool = True) -> Axes:
    """The axes of the ratios of `kernel`, one a folio size, with intervals of a tenth about them, or without."""
    document = made_up.document()
    document["rows"] = [row for row in document["rows"] if row["migrator"] in ("off", "kernel")]
    for row, median in zip([row for row in document["rows"] if row["migrator"] == "kernel"], medians, strict=True):
        row["ratio_to_baseline"] = {"median": median, "ci95": [0.9 * median, 1.1 * median] if bounded else None}
    axes = Figure().add_subplot()
    plots.ratios(axes, document)
    return axes


def test_half_and_double_are_equally_far_from_the_baseline() -> None:
    axes = ratio_axes(0.5, 2)
    heights = axes.transData.transform([(0, 0.5), (0, 1), (0, 2)])[:, 1]
    assert heights[1] - heights[0] == pytest.approx(heights[2] - heights[1])
    low, high = axes.get_ylim()
    assert low < 0.45 and high > 2.2
    (shade,) = [patch for patch in axes.patches if patch.get_label() == "worse than off"]
    assert shade.get_extents().y1 == pytest.approx(heights[1])


def test_a_ratio_of_0_is_on_the_plot() -> None:
    axes = ratio_axes(0, 20)
    middles = axes.containers[0].lines[0].get_ydata()
    assert list(middles) == [plots.LEAST, 20] and axes.get_ylim()[0] < plots.LEAST


def test_a_ratio_without_an_interval_is_a_hollow_point_without_a_bar() -> None:
    axes = ratio_axes(0.5, 2, bounded=False)
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "none"]
    assert [list(line.get_ydata()) for line in hollow] == [[0.5, 2]]
    (bars,) = (container.lines[2][0] for container in axes.containers)
    assert bars.get_segments() == [] and "kernel" in axes.get_legend_handles_labels()[1]
    assert not any(len(line.get_ydata()) for line in ratio_axes(0.5, 2).lines if line.get_markerfacecolor() == "none")


def test_failed_samples_are_in_the_page_and_escaped() -> None:
    document = made_up.document()
    document["rows"][0]["failures"] = [{"boot": 0, "round": 4, "reason": "<b>3 of 512</b> page moves failed"}]
    page = html([document], "made-up")
    assert "failed [0.4]: &lt;b&gt;3 of 512" in page and "<b>3 of 512" not in page


def test_every_sample_is_in_the_page() -> None:
    document = made_up.document()
    page = html([document], "made-up")
    count = sum(len(row["samples"]) for row in document["rows"])
    assert count == 80 and len(re.findall(r"[\d.]+ \[0\.\d+\]", page)) == count


def test_a_document_without_samples_still_makes_a_page() -> None:
    document = made_up.document()
    for row in document["rows"]:
        row |= {"samples": [], "sample_ids": [], "median": None, "mad": None, "ratio_to_baseline": None}
    assert plots.all_of(document) == []
    assert "no sample" in html([document], "made-up")
