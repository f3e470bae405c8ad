# SPDX-License-Identifier: GPL-2.0
"""The plots of a document, as SVG to put inline. Each plot names its kind of figure."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ferry.results import breakdown_table, stacked
from ferry.results.document import (
    COSTS,
    KIND_NOTES,
    TOTAL,
    UNIT_NAMES,
    Column,
    Document,
    Row,
    column,
    is_baseline,
    label,
)
from ferry.results.formats import column_name

#: Okabe and Ito's colours, which stay apart for colour-blind eyes; markers tell them apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True)
class Plot:
    """An SVG and its caption."""

    caption: str
    svg: str


def all_of(document: Document) -> list[Plot]:
    """The plots that make sense for the document: absolute figures only where they mean something."""
    if not any(row["samples"] for row in document["rows"]):
        return []
    if document["bench"] == breakdown_table.NAME:
        return [_phases_of(document, place) for place in breakdown_table.cases(document)]
    found = []
    if any(row["ratio_to_baseline"] for row in document["rows"]):
        caption = f"Ratio to {document['baseline']}: median and 95 % interval. Above 1 is better."
        found.append(_plot(document, caption, ratios))
    if document["kind"] != "emulated":
        caption = f"{unit(document)} of each sample (dots) and their median (bar). {better(document)}"
        found.append(_plot(document, caption, figures))
    caption = "Every sample over the rounds, relative to its row's median: a slope is drift, a step another boot."
    found.append(_plot(document, caption, drift))
    return found


def unit(document: Document) -> str:
    """The document's unit in words."""
    return UNIT_NAMES[document["rows"][0]["unit"]]


def better(document: Document) -> str:
    """Which way is good."""
    return "Lower is better." if document["rows"][0]["unit"] in COSTS else "Higher is better."


def _plot(document: Document, caption: str, draw: Callable[[Axes, Document], None]) -> Plot:
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    draw(axes, document)
    axes.set_title(f"{document['bench']} on {document['board']}", loc="left", fontsize=11)
    axes.set_title(KIND_NOTES[document["kind"]], loc="right", fontsize=10, color="#b00000", weight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside right center", frameon=False, fontsize=9)
    return Plot(caption, _svg(figure))


def _phases_of(document: Document, place: Column) -> Plot:
    """One case of a breakdown."""
    name = column_name(place).replace("\n", ", ")
    return _plot(document, f"{name}: median of {unit(document)} by phase. {better(document)}",
                 partial(phases, place=place))


def _svg(figure: Figure) -> str:
    """The <svg> element alone; the same figure gives the same bytes, and its text stays text."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "ferry", "svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()[out.getvalue().index("<svg") :]


def places_of(document: Document) -> list[Column]:
    """The columns of the table, which the x axis takes as names: they are few and far apart."""
    return sorted({column(row) for row in document["rows"]})


def _place_axis(axes: Axes, places: list[Column]) -> None:
    axes.set_xticks(range(len(places)), [column_name(place).replace(", ", "\n") for place in places], fontsize=8)
    axes.set_xlim(-0.5, len(places) - 0.5)


def _rows_by_label(document: Document) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for row in document["rows"]:
        rows.setdefault(label(row), []).append(row)
    return rows


def _style(index: int) -> dict[str, Any]:
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}


def _offset(index: int, count: int) -> float:
    """Rows of one size stand side by side within 0.7 of the distance to the next size."""
    return 0.7 * ((index + 0.5) / count - 0.5)


def ratios(axes: Axes, document: Document) -> None:
    """Ratio to the baseline with its interval."""
    places = places_of(document)
    axes.axhline(1, color="#666666", linewidth=1, linestyle="--", label=f"{document['baseline']} (baseline)")
    rows = _rows_by_label(document)
    for index, (name, group) in enumerate(rows.items()):
        if is_baseline(document, group[0]):
            continue
        points = [(places.index(column(row)) + _offset(index, len(rows)), row["ratio_to_baseline"])
                  for row in group if row["ratio_to_baseline"]]
        middles = [ratio["median"] for _, ratio in points]
        bounds = [ratio["ci95"] or [ratio["median"]] * 2 for _, ratio in points]
        # An interval need not hold its median when it is drawn from several boots; an error bar cannot be negative.
        reach = [[max(0.0, middle - low) for middle, (low, _) in zip(middles, bounds, strict=True)],
                 [max(0.0, high - middle) for middle, (_, high) in zip(middles, bounds, strict=True)]]
        axes.errorbar([x for x, _ in points], middles, yerr=reach, linestyle="none", capsize=3, label=name,
                      **_style(index))
    _place_axis(axes, places)
    axes.set_ylabel(f"ratio to {document['baseline']}")


def figures(axes: Axes, document: Document) -> None:
    """Every sample as a dot, the median as a bar."""
    places = places_of(document)
    rows = _rows_by_label(document)
    for index, (name, group) in enumerate(rows.items()):
        style = _style(index)
        at = [(places.index(column(row)) + _offset(index, len(rows)), row) for row in group if row["samples"]]
        dots = [(x, sample) for x, row in at for sample in row["samples"]]
        axes.plot([x for x, _ in dots], [y for _, y in dots], linestyle="none", alpha=0.45, markersize=4, label=name,
                  **style)
        for x, row in at:
            axes.hlines(row["median"] or 0.0, x - 0.04, x + 0.04, color=style["color"], linewidth=2.5)
    _place_axis(axes, places)
    axes.set_ylabel(unit(document))
    axes.set_ylim(bottom=0)


def drift(axes: Axes, document: Document) -> None:
    """Samples in the order they were taken, each relative to the median of its row."""
    for index, (name, group) in enumerate(_rows_by_label(document).items()):
        for position, row in enumerate(row for row in group if row["samples"] and row["median"]):
            relative = [sample / (row["median"] or 1.0) for sample in row["samples"]]
            axes.plot(range(len(relative)), relative, linewidth=0.8, markersize=3, alpha=0.7,
                      label=name if position == 0 else None, **_style(index))
    axes.axhline(1, color="#666666", linewidth=1, linestyle="--")
    axes.set_xlabel("sample, in the order taken")
    axes.set_ylabel("relative to the median")


def phases(axes: Axes, document: Document, place: Column) -> None:
    """A bar for each configuration of a breakdown's case, of the phases that are known."""
    sides = {name: side for name, side in breakdown_table.cases(document)[place].items()
             if side[TOTAL]["samples"] and len(side) > 1}
    names = [phase for phase in next(iter(sides.values()), {}) if phase != TOTAL]
    stacked.draw(axes, list(sides), {phase: [side[phase]["median"] or 0.0 for side in sides.values()]
                                     for phase in names})
    axes.set_ylabel(unit(document))
