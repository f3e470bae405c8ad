# SPDX-License-Identifier: GPL-2.0
"""The layers of the tool's own modules and of the guest programs: each folder uses only those below it."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from ferry.series.layers import circles

GROUND = "ground"
RANKS = {GROUND: 0, "devices": 1, "results": 1, "debian": 1, "control": 1, "boards": 2, "series": 3, "kernel": 4,
         "vm": 5, "bench": 6, "package": 6, "profile": 7, "suites": 8, "commands": 9}
"""A package may use those of a lower rank; ground are the modules beside the packages."""
STRESSORS = "integrity/stressors/stressors.h"
MAY_STRESS = ("integrity/main.c", "integrity/stressor_set.c")
ENTRY = "ferry.__main__"
"""Runs the command line, and nothing uses it."""


def python(source: Path) -> Iterator[str]:
    """Imports of the package `ferry` in `source` that break a rule: layers, circles, imports inside functions."""
    modules = {_name(source, path): path for path in sorted((source / "ferry").rglob("*.py"))}
    graph: dict[str, dict[str, set[str]]] = {}
    for name, path in modules.items():
        parsed = ast.parse(path.read_text())
        for function in ast.walk(parsed):
            if isinstance(function, ast.FunctionDef):
                yield from (f"{name}: {function.name}() imports in line {node.lineno}" for node in ast.walk(function)
                            if isinstance(node, ast.Import | ast.ImportFrom))
        graph[name] = {}
        for used, what in _imported(parsed, modules):
            if used != name:
                graph[name].setdefault(used, set()).add(what)
        for used in graph[name]:
            mine, other = _package(name), _package(used)
            if name != ENTRY and mine != other and RANKS.get(other, 99) >= RANKS.get(mine, -1):
                yield f"{name} imports {used}, which is not below it"
    yield from circles(graph)


def _name(source: Path, path: Path) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def _package(module: str) -> str:
    """The package of a module, by its name below ferry."""
    parts = module.split(".")
    return parts[1] if len(parts) > 2 or module.removeprefix("ferry.") in RANKS else GROUND


def _imported(parsed: ast.Module, modules: dict[str, Path]) -> Iterator[tuple[str, str]]:
    """(module, name) of each import from ferry: of a package's module, the module and not the package."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ferry":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield (whole, "module") if whole in modules else (node.module, alias.name)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "module") for alias in node.names if alias.name in modules)


def guest(directory: Path) -> Iterator[str]:
    """Each header that a guest program includes of another program, and each that lib includes of a program.

    tests/ may include all; only main.c and stressor_set.c of integrity include the stressors' header.
    """
    for path in sorted(directory.rglob("*.[ch]")):
        name = path.relative_to(directory).as_posix()
        top = name.partition("/")[0]
        for header in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), header))
            used = beside if (directory / beside).is_file() else f"lib/{header}"
            if top != "tests" and used.partition("/")[0] not in (top, "lib"):
                yield f"{name} includes {used}"
            if used == STRESSORS and not name.startswith(f"{posixpath.dirname(STRESSORS)}/") and name not in MAY_STRESS:
                yield f"{name} includes {used}"
