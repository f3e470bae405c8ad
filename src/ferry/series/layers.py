# SPDX-License-Identifier: GPL-2.0
"""The layers of the overlay's C files: no circle of files in a folder, and which headers a part may include.

A file uses another when it names a function or a variable that the other defines and does not declare static, directly
or in an inline function of a header. This is a scan, not a compiler: it relies on the kernel's coding style, and it
takes a local variable for the global one of the same name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

MIGRATOR = frozenset({"linux/ferry.h", "linux/ferry_claim.h", "linux/ferry_mtcopy.h", "linux/ferry_sysfs.h",
                      "linux/copy_nontemporal.h"})
"""The headers of the overlay that parts share."""
HEADERS = {
    "mm/ferry": frozenset({"linux/ferry.h", "linux/ferry_sysfs.h", "trace/events/ferry.h"}),
    "mm/ferry_runs": frozenset({"linux/ferry.h", "linux/ferry_sysfs.h", "linux/migrc.h", "mm/migrate.h"}),
    "mm/migrc": frozenset({"linux/ferry_sysfs.h", "linux/migrc.h", "linux/migrc_check.h", "linux/migrc_file.h",
                           "linux/migrc_types.h"}),
    "mm/zone_device_init": frozenset({"linux/copy_nontemporal.h"}),
    "drivers/ferry/mtcopy": MIGRATOR,
    "drivers/ferry/dcbm": MIGRATOR,
}
"""The headers of the overlay that a part may include, beside those in its own folder."""

Graph = Mapping[str, Mapping[str, Set[str]]]
"""user -> used -> the names by which it is used."""

_SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*',
                      re.DOTALL | re.MULTILINE)
"""Comments, strings and preprocessor lines."""
_DEFINER = re.compile(r"(?:DEFINE_(?!\w*ATTRIBUTE)\w+|LIST_HEAD)\s*\((.*)\)$", re.DOTALL)
_FUNCTION = re.compile(r"(\w+)\s*\([^{}]*\)[^(){}=;]*\{\}$", re.DOTALL)
_VARIABLE = re.compile(r"(\w+)\s*(?:\[[^]]*\]\s*)*(?:__\w+(?:\([^)]*\))?\s*)*(?:=.*)?$", re.DOTALL)
_NAME = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")


@dataclass
class Scan:
    """The names that a file defines for others, each name it uses, and the names used by each of its inline functions.
    """

    defined: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    inline: dict[str, set[str]] = field(default_factory=dict)


def scan(text: str) -> Scan:
    """Read the declarations of a C file."""
    found = Scan()
    for head, body in _declarations(_SKIPPED.sub(" ", text)):
        names = set(_NAME.findall(head)) | set(_NAME.findall(body))
        found.used |= names
        flat = re.sub(r"\s+", " ", head).strip()
        function = _FUNCTION.search(flat)
        if function and "inline" in flat:
            found.inline[function[1]] = names
        if re.match(r"(?:static|extern|typedef|struct \w+ \{\}$|enum|union)\b", flat) or flat.startswith("EXPORT_"):
            continue
        if function:
            found.defined.add(function[1])
        elif macro := _DEFINER.match(flat):
            found.defined |= set(_NAME.findall(macro[1]))
        elif "(" not in flat.partition("=")[0] and (variable := _VARIABLE.search(flat.removesuffix("{}"))):
            found.defined.add(variable[1])
    return found


def _declarations(text: str) -> Iterator[tuple[str, str]]:
    """(head, body) of each declaration at file scope; the head has {} in place of what stands in braces."""
    depth = 0
    head: list[str] = []
    body: list[str] = []
    for token in re.findall(r"[{};]|[^{};]+", text):
        if token == "{":
            depth += 1
            head += ["{}"] * (depth == 1)
        elif token == "}":
            depth -= 1
        elif depth:
            body.append(token)
        elif token != ";":
            head.append(token)
        joined = "".join(head)
        if not depth and (token == ";" or (token == "}" and _FUNCTION.search(re.sub(r"\s+", " ", joined).strip()))):
            yield joined, " ".join(body)
            head, body = [], []


def uses(files: Mapping[str, str]) -> dict[str, dict[str, set[str]]]:
    """user -> used -> names, of the .c files of one folder, given by name, and through inline functions of its headers.
    """
    scans = {name: scan(text) for name, text in files.items()}
    inlines: dict[str, set[str]] = {}
    for name, one in scans.items():
        if name.endswith(".h"):
            inlines |= one.inline
    owners = {name: file for file, one in scans.items() if file.endswith(".c") for name in one.defined}
    graph: dict[str, dict[str, set[str]]] = {}
    for file in (name for name in scans if name.endswith(".c")):
        todo, names = list(scans[file].used), set[str]()
        while todo:
            name = todo.pop()
            if name not in names:
                names.add(name)
                todo += inlines.get(name, ())
        graph[file] = {}
        for name in names:
            if name in owners and owners[name] != file:
                graph[file].setdefault(owners[name], set()).add(name)
    return graph


def file_circles(overlay: Mapping[str, Path]) -> Iterator[str]:
    """Each circle of C files of one folder of the overlay."""
    folders: dict[str, dict[str, str]] = {}
    for name, path in overlay.items():
        if path.suffix in (".c", ".h"):
            folders.setdefault(str(PurePosixPath(name).parent), {})[path.name] = path.read_text()
    for folder, files in folders.items():
        yield from (f"{folder}: {circle}" for circle in circles(uses(files)))


def foreign_includes(overlay: Mapping[str, Path]) -> Iterator[str]:
    """Each header of another part that a part includes though HEADERS does not name it."""
    shared = {name.partition("include/")[2] for name in overlay if "include/" in name}
    for name, path in overlay.items():
        part = next((part for part in HEADERS if name.startswith(part + "/")), None)
        if part is None or path.suffix not in (".c", ".h"):
            continue
        for opening, header in re.findall(r'^#include ([<"])([^>"]+)[>"]', path.read_text(), re.MULTILINE):
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), header))
            mine = header not in shared - HEADERS[part] if opening == "<" else (
                beside not in overlay or beside.startswith(part + "/") or beside in HEADERS[part])
            if not mine:
                yield f"{name} includes {header}, which is of another part"


def wide_lines(overlay: Mapping[str, Path], columns: int = 80) -> Iterator[str]:
    """Each C line that is wider than `columns`, with tabs of 8; a string is never split."""
    for name, path in overlay.items():
        if path.suffix in (".c", ".h"):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if len(line.expandtabs(8)) > columns and not line.lstrip().startswith('"'):
                    yield f"{name}:{number} has {len(line.expandtabs(8))} columns"


def circles(graph: Graph) -> Iterator[str]:
    """One shortest circle through each file that is on one, as "a -> b (name) -> a (name)"; each set of files once."""
    seen: set[frozenset[str]] = set()
    for start in sorted(graph):
        path = _back_to(start, graph)
        if path and frozenset(path) not in seen:
            seen.add(frozenset(path))
            steps = zip(path, [*path[1:], start], strict=True)
            yield start + "".join(f" -> {used} ({', '.join(sorted(graph[user][used])[:3])})" for user, used in steps)


def _back_to(start: str, graph: Graph) -> list[str]:
    """The shortest way from `start` to itself, by a search in breadth; [] if there is none."""
    ways = [[start]]
    reached: set[str] = set()
    for way in ways:
        for used in sorted(graph.get(way[-1], {})):
            if used == start:
                return way
            if used not in reached:
                reached.add(used)
                ways.append([*way, used])
    return []
