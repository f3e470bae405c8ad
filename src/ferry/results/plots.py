# SPDX-License-Identifier: GPL-2.0
"""The plots of a document, as SVG to put inline. Each plot names its kind of figure."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import matplotlib
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ferry.results import breakdown_table, compaction_table, figures, stacked, table
from ferry.results.document import (
    KIND_NOTES,
    TOTAL,
    UNIT_NAMES,
    Column,
    Document,
    Ratio,
    Row,
    column,
    is_cost,
    label,
)
from ferry.results.formats import column_name

#: Okabe and Ito's colours, which stay apart for colour-blind eyes; markers tell them apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

#: Inches.
WIDTH = 8.0
#: A logarithmic axis has no place for a ratio of 0: this is the lowest one.
LEAST = 0.1


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
        caption = f"median of {unit(document)} by phase. {better(document)}"
        return [_plot_of(document, place, caption, phases) for place in breakdown_table.cases(document)]
    found = []
    if any(row["ratio_to_baseline"] for row in document["rows"]):
        found.append(_plot(document, f"Ratio to {reading(document)}", ratios))
    found += _further(document)
    if document["kind"] != "emulated":
        caption = f"{unit(document)} of each sample (dots) and their median (bar). {better(document)}"
        found.append(_plot(document, caption, samples))
    caption = "Every sample over the rounds, relative to its row's median: a slope is drift, a step another boot."
    found.append(_plot(document, caption, drift))
    return found


def unit(document: Document) -> str:
    """The document's unit in words."""
    return UNIT_NAMES[document["rows"][0]["unit"]]


def better(document: Document) -> str:
    """Which way is good."""
    return "Lower is better." if is_cost(document["rows"][0]["unit"]) else "Higher is better."


def reading(document: Document) -> str:
    """The baseline, and how to read a plot of ratios to it."""
    return (f"{document['baseline']}: median and 95 % interval; hollow: too few samples for one. Above 1 is better; "
            f"below {LEAST} is drawn as {LEAST}.")


def _further(document: Document) -> list[Plot]:
    """Of each case, the further figures beside the baseline's, and of compaction also where the CPU's time goes."""
    found = []
    for place in places_of(document):
        rows = [row for row in document["rows"] if column(row) == place]
        if any(row.get("ratios", {}).get(key) for row in rows for key in figures.compared(document)):
            found.append(_plot_of(document, place, f"ratio of each figure to {reading(document)}", figure_ratios))
        if any(_cpu_parts(row) for row in rows):
            caption = "where the time of the CPU that allocates goes, as medians."
            found.append(_plot_of(document, place, caption, cpu_time))
    return found


def _plot(document: Document, caption: str, draw: Callable[[Axes, Document], None]) -> Plot:
    figure = Figure(figsize=(WIDTH, 4.2), layout="constrained")
    axes = figure.add_subplot()
    draw(axes, document)
    axes.set_title(f"{document['bench']} on {document['board']}", loc="left", fontsize=11)
    axes.set_title(KIND_NOTES[document["kind"]], loc="right", fontsize=10, color="#b00000", weight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside right center", frameon=False, fontsize=9)
    return Plot(caption, _svg(figure))


def _plot_of(document: Document, place: Column, caption: str,
             draw: Callable[[Axes, Document, Column], None]) -> Plot:
    """A plot of one case."""
    name = column_name(place).replace("\n", ", ")
    return _plot(document, f"{name}: {caption}", lambda axes, document: draw(axes, document, place))


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
    _axis(axes, [column_name(place).replace(", ", "\n") for place in places])


def _axis(axes: Axes, names: Sequence[str]) -> None:
    """Names on the x axis; if they are many the figure is wider than others."""
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_xlim(-0.5, len(names) - 0.5)
    cast(Figure, axes.figure).set_figwidth(max(WIDTH, 3 + 0.8 * len(names)))


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
    """Ratio to the baseline in each case."""
    places = places_of(document)
    _draw_ratios(axes, document, {name: [(places.index(column(row)), row["ratio_to_baseline"]) for row in group]
                                  for name, group in _rows_by_label(document).items()})
    _place_axis(axes, places)


def figure_ratios(axes: Axes, document: Document, place: Column) -> None:
    """Ratio of each further figure to the baseline's in one case."""
    of_rows = {label(row): row.get("ratios", {}) for row in document["rows"] if column(row) == place}
    keys = [key for key in figures.compared(document) if any(ratios.get(key) for ratios in of_rows.values())]
    _draw_ratios(axes, document, {name: [(x, ratios.get(key)) for x, key in enumerate(keys)]
                                  for name, ratios in of_rows.items()})
    _axis(axes, [textwrap.fill(table.heading(document, key), 12) for key in keys])


def _draw_ratios(axes: Axes, document: Document,
                 by_name: Mapping[str, Sequence[tuple[int, Ratio | None]]]) -> None:
    """Medians with their intervals, by label at places on the x axis, above or below the line of the baseline."""
    baseline = document["baseline"]
    axes.axhline(1, color="#666666", linewidth=1, linestyle="--", label=f"{baseline} (baseline)")
    shown = [(index, name) for index, name in enumerate(by_name) if name != baseline]
    for position, (index, name) in enumerate(shown):
        points = [(x + _offset(position, len(shown)), ratio) for x, ratio in by_name[name] if ratio]
        bounded = [(x, max(LEAST, ratio["median"]), [max(LEAST, bound) for bound in ratio["ci95"]])
                   for x, ratio in points if ratio["ci95"] is not None]
        # An interval need not hold its median when it is drawn from several boots; an error bar cannot be negative.
        reach = [[max(0.0, middle - low) for _, middle, (low, _) in bounded],
                 [max(0.0, high - middle) for _, middle, (_, high) in bounded]]
        axes.errorbar([x for x, _, _ in bounded], [middle for _, middle, _ in bounded], yerr=reach, linestyle="none",
                      capsize=3, label=name, **_style(index))
        without = [(x, max(LEAST, ratio["median"])) for x, ratio in points if ratio["ci95"] is None]
        axes.plot([x for x, _ in without], [middle for _, middle in without], linestyle="none",
                  markerfacecolor="none", **_style(index))
    axes.set_ylabel(f"ratio to {baseline}")
    _ratio_axis(axes, f"worse than {baseline}")


def _ratio_axis(axes: Axes, below: str) -> None:
    """A logarithmic y axis, on which half and double are equally far from 1, shaded below 1."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(ticker.LogLocator(base=2) if high > 8 * low else ticker.AutoLocator())
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.axhspan(low, 1, color="#b00000", alpha=0.06, linewidth=0, label=below)
    axes.set_ylim(low, high)


def samples(axes: Axes, document: Document) -> None:
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


def cpu_time(axes: Axes, document: Document, place: Column) -> None:
    """A bar for each configuration of a case of compaction: the parts of the CPU's time that are known."""
    sides = {label(row): parts for row in document["rows"] if column(row) == place and (parts := _cpu_parts(row))}
    names = compaction_table.CPU.values()
    stacked.draw(axes, list(sides), dict(zip(names, zip(*sides.values(), strict=True), strict=True)))
    axes.set_ylabel("% of the time")


def _cpu_parts(row: Row) -> list[float]:
    """The medians of user, system and idle time in per cent; none if they are unknown."""
    parts = [cast(Mapping[str, float | None], row).get(key) for key in compaction_table.CPU]
    return [part for part in parts if part is not None] if None not in parts else []
