# SPDX-License-Identifier: GPL-2.0
"""The models in models/, checked by spin; models/README.md describes them.

Each model must hold, reach all its states and all its lines, and be violated with each of its faults. A model names its
faults and states itself, by `#define fail_NAME NUMBER` and `#define see_NAME NUMBER`, see models/experiment.h.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ferry import paths, proc, progress
from ferry.errors import FerryError
from ferry.suites.context import Context
from ferry.suites.result import Result, error, failed, result_of, skipped

NAME = "models"
MODELS = ("migrc", "dcbm")
#: Seconds for one program; several times the slowest seen on a busy machine.
LIMIT_S = 600
#: Steps of the longest path that is followed, and MB of memory: several times what the models need.
DEPTH = 10_000
MEMORY_MB = 2048

_DECLARED = re.compile(r"^#define +(fail|see)_(\w+)\s+(\d+)", re.MULTILINE)
_ERRORS = re.compile(r"^State-vector .*, errors: (\d+)$", re.MULTILINE)
_REACHED = re.compile(r"^reached (\d+)$", re.MULTILINE)
_PROCESS = re.compile(r"^unreached in (?:proctype )?(\S+)$")
_UNREACHED = re.compile(r"^\t\S+, state (\d+),")
_STATE = re.compile(r"// STATE (\d+) - [^:]+:(\d+) - \[(.*?)\] \(")
#: What a complete search of all states prints, and what an incomplete one does.
_COMPLETE = ("Full statespace search for:", "assertion violations\t+", "invalid end states\t+")
_INCOMPLETE = ("Search not completed", "max search depth too small", "out of memory", "memory usage > ")


@dataclass(frozen=True)
class Named:
    """A fault or a state."""

    kind: str
    name: str
    number: int


@dataclass(frozen=True)
class Model:
    """A model with what it names."""

    name: str
    faults: tuple[Named, ...]
    states: tuple[Named, ...]


def run(context: Context) -> list[Result]:
    missing = [program for program in ("spin", "gcc") if not shutil.which(program)]
    if missing:
        return [skipped(NAME, name, f"{', '.join(missing)} not installed") for name in MODELS]
    chosen = [declared(name, _source(name).read_text()) for name in MODELS]
    with progress.stage("spin"), ThreadPoolExecutor(os.cpu_count()) as threads:
        built = list(threads.map(partial(_build, context), chosen))
        searches = [search for model, program in zip(chosen, built, strict=True) if isinstance(program, Path)
                    for search in _searches(model, program)]
        found = [result for results in threads.map(lambda search: search(), searches) for result in results]
    return [program for program in built if isinstance(program, Result)] + found


def declared(name: str, text: str) -> Model:
    """The model with the faults and states that its text names."""
    found = [Named(kind, what, int(number)) for kind, what, number in _DECLARED.findall(text)]
    return Model(name, *(tuple(each for each in found if each.kind == kind) for kind in ("fail", "see")))


def _source(name: str) -> Path:
    return paths.repo_root() / "models" / f"{name}.pml"


def _build(context: Context, model: Model) -> Path | Result:
    """The directory with the program that searches, or the failure."""
    directory = context.logs / NAME / model.name
    shutil.copytree(_source(model.name).parent, directory)
    log = directory / "build.log"
    try:
        for command in (["spin", "-a", f"{model.name}.pml"],
                        ["gcc", "-O1", "-w", "-DSAFETY", f"-DMEMLIM={MEMORY_MB}", "-o", "pan", "pan.c"]):
            done = proc.run(command, cwd=directory, log=log, timeout=LIMIT_S, append=True)
            if done.status:
                said = done.tail[-1] if done.tail else "nothing"
                return failed(NAME, f"{model.name}: build", f"{command[0]}: {said}", done.seconds, log)
    except FerryError as cause:
        return error(NAME, f"{model.name}: build", cause)
    return directory


def _searches(model: Model, directory: Path) -> list[Callable[[], list[Result]]]:
    """The search without a fault, and one with each."""
    return [partial(_sound, model, directory), *(partial(_broken, model, directory, fault) for fault in model.faults)]


def _sound(model: Model, directory: Path) -> list[Result]:
    title, log = f"{model.name}: holds", directory / "pan.log"
    try:
        done = proc.run(["./pan", f"-m{DEPTH}"], cwd=directory, log=log, timeout=LIMIT_S)
    except FerryError as cause:
        return [error(NAME, title, cause)]
    output = log.read_text()
    source = (directory / f"{model.name}.pml").read_text().splitlines()
    reason = violation(output) or dead(output, (directory / "pan.m").read_text(), source)
    seen = {int(number) for number in _REACHED.findall(output)}
    reached = [result_of(state.number in seen, NAME, f"{model.name}: {state.name} is reached", "no path reaches it",
                         log=log) for state in model.states]
    return [result_of(not reason, NAME, title, reason, done.seconds, log), *reached]


def _broken(model: Model, directory: Path, fault: Named) -> list[Result]:
    """In a directory of its own, for its trail."""
    title, place = f"{model.name}: fault {fault.name} is caught", directory / fault.name
    place.mkdir()
    log = place / "pan.log"
    try:
        done = proc.run(["../pan", f"-m{DEPTH}"], cwd=place, log=log, timeout=LIMIT_S, env={"FAULT": str(fault.number)})
    except FerryError as cause:
        return [error(NAME, title, cause)]
    return [result_of(caught(log.read_text()), NAME, title, "spin finds no violation", done.seconds, log)]


def caught(output: str) -> bool:
    """Did the search find a violation?"""
    found = _ERRORS.search(output)
    return found is not None and int(found[1]) > 0


def violation(output: str) -> str:
    """The violation that a search found, or why it proves nothing; "" if it was complete and found none."""
    if caught(output):
        return next((line for line in output.splitlines() if line.startswith("pan:1:")), "a violation")
    if not _ERRORS.search(output):
        return "the search printed no result"
    if any(line not in output for line in _COMPLETE) or any(words in output for words in _INCOMPLETE):
        return "the search is not complete"
    return ""


def dead(output: str, states: str, source: list[str]) -> str:
    """Names the lines that no path reaches in any process; `states` is pan.m, the code of all transitions.

    A line of `source` that asks should_fail() is for a fault only.
    """
    unreached = set()
    process = ""
    for line in output.splitlines():
        if header := _PROCESS.match(line):
            process = header[1]
        elif state := _UNREACHED.match(line):
            unreached.add((process, int(state[1])))
    alive: dict[int, bool] = {}
    for part in states.split("/* PROC ")[1:]:
        process = part.split()[0].strip(":")
        for number, where, text in _STATE.findall(part):
            if text != "-end-" and "should_fail" not in source[int(where) - 1]:
                alive[int(where)] = alive.get(int(where), False) or (process, int(number)) not in unreached
    lines = [str(line) for line in sorted(alive) if not alive[line]]
    return f"no path reaches line {', '.join(lines)}" if lines else ""
