# SPDX-License-Identifier: GPL-2.0
"""A profile as a table, JSON, CSV and a stacked plot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ferry.profile import phases
from ferry.profile.move_pages import Profile
from ferry.results import stacked
from ferry.results.formats import Grid, Output, figure

SCHEMA = 1
#: Functions of fewer instructions a page are in no list.
_LEAST = 0.5


def output(name: str, board: str, found: Sequence[Profile], with_tree: bool) -> Output:
    """Everything that the verb prints; the call trees only if asked for, since they are long."""
    grids = [_phases(name, board, found), *([_tree(profile) for profile in found] if with_tree else [])]
    data = {"schema": SCHEMA, "profile": name, "board": board, "unit": "instructions_per_page",
            "columns": [_column(profile, with_tree) for profile in found]}
    records = [{"profile": name, "board": board, "config": profile.label, "phase": phase,
                "instructions_per_page": count}
               for profile in found for phase, count in _by_phase(profile).items()]
    return Output(grids, data, records)


def _by_phase(profile: Profile) -> dict[str, float]:
    return {phase: count / profile.pages for phase, count in phases.split(profile.tree).items()}


def _phases(name: str, board: str, found: Sequence[Profile]) -> Grid:
    columns = [_by_phase(profile) for profile in found]
    rows = [[[phase], *([figure(column[phase])] for column in columns)]
            for phase in phases.names() if any(column[phase] >= _LEAST for column in columns)]
    rows += [[["all"], *([figure(profile.counted)] for profile in found)],
             [["the guest's clock"], *([figure(profile.clock)] for profile in found)]]
    return Grid(f"{name} on {board}: instructions a page by phase", ["", *(profile.label for profile in found)], rows,
                ["of one sample, all pages there and back; a function belongs to the phase of its nearest caller"])


def _tree(profile: Profile) -> Grid:
    rows = [[[f"{'  ' * (len(path) - 1)}{node.function}"],
             *([f"{count / profile.pages:,.2f}"] for count in (node.total(), node.insns, node.calls))]
            for path, node in profile.tree.walk() if node.total() / profile.pages >= _LEAST]
    return Grid(f"{profile.label}: per page", ["", "with callees", "own", "calls"], rows)


def _column(profile: Profile, with_tree: bool) -> dict[str, Any]:
    own: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for _, node in profile.tree.walk():
        own[node.function] += node.insns
        calls[node.function] += node.calls
    functions = [{"function": function, "own": count / profile.pages, "calls": calls[function] / profile.pages}
                 for function, count in own.most_common() if count / profile.pages >= _LEAST]
    tree = {"tree": [{"path": list(path), "own": node.insns / profile.pages, "calls": node.calls / profile.pages}
                     for path, node in profile.tree.walk() if node.insns / profile.pages >= _LEAST]}
    return {"config": profile.label, "kernel": profile.kernel, "pages": profile.pages, "phases": _by_phase(profile),
            "all": profile.counted, "clock": profile.clock, "functions": functions, **(tree if with_tree else {})}


def plot(name: str, board: str, found: Sequence[Profile], path: Path) -> None:
    """A stacked bar for each configuration, as an SVG or in another format that the file's name ends in."""
    drawn = Figure(figsize=(9, 5), layout="constrained")
    axes = drawn.add_subplot()
    columns = [_by_phase(profile) for profile in found]
    stacked.draw(axes, [profile.label for profile in found],
                 {phase: [column[phase] for column in columns] for phase in phases.names()}, _LEAST)
    axes.set_ylabel("instructions a page")
    axes.set_title(f"{name} on {board}", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    drawn.legend(loc="outside right center", frameon=False, fontsize=9)
    drawn.savefig(path)
