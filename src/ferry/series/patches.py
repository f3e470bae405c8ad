# SPDX-License-Identifier: GPL-2.0
"""The patch series as stored in kernel/series: git-am mails, and the overlay files that each of them introduces.

A series is a folder; kernel/base.toml names its prerequisites. A patch holds only the hooks in existing
files; each `Overlay: PATH` line of its message names a file or folder of kernel/overlay that comes with it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry import paths, proc
from ferry.errors import InfraError, UsageError
from ferry.series.source import Source, base


@dataclass(frozen=True)
class Patch:
    """One mail: its text, the existing files that it changes, and the overlay paths in its body."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def files(self) -> list[str]:
        """Files of the tree that the diff touches."""
        return list(dict.fromkeys(re.findall(r"^diff --git a/\S+ b/(\S+)$", self.text, re.MULTILINE)))

    @property
    def overlay(self) -> list[str]:
        """The body's `Overlay: path` lines."""
        return re.findall(r"^Overlay:[ \t]*(\S+)[ \t]*$", self.body, re.MULTILINE)

    @property
    def body(self) -> str:
        """The mail up to its diff."""
        return re.split(r"^---$|^diff --git ", self.text, maxsplit=1, flags=re.MULTILINE)[0]

    @property
    def subject(self) -> str:
        match = re.search(r"^Subject:[ \t]*(?:\[[^]]*\][ \t]*)?(.*(?:\n[ \t].*)*)", self.text, re.MULTILINE)
        return re.sub(r"\s+", " ", match[1]).strip() if match else self.name


def overlay_dir() -> Path:
    return paths.kernel_dir() / "overlay"


def overlay_files() -> dict[str, Path]:
    """Every overlay file by its kernel path."""
    root = overlay_dir()
    return {str(path.relative_to(root)): path for path in sorted(root.rglob("*")) if path.is_file()}


@dataclass(frozen=True)
class Series:
    """The patches of one subject, in order, and the names of all prerequisites, in the order in which those apply."""

    name: str
    requires: tuple[str, ...]
    patches: tuple[Patch, ...]

    @property
    def cover(self) -> tuple[str, str]:
        """Subject and text of the cover letter; ("", "") if there is none."""
        path = series_dir() / self.name / "cover-letter"
        subject, _, text = path.read_text().partition("\n") if path.is_file() else ("", "", "")
        return subject, text.strip()

    @property
    def subject(self) -> str:
        """The subject of the cover letter, or of the first patch."""
        return self.cover[0] or " / ".join(patch.subject for patch in self.patches[:1])


def series_dir() -> Path:
    return paths.kernel_dir() / "series"


def all_series() -> list[Series]:
    """The series of kernel/base.toml, each after its prerequisites.

    Raises UsageError when a series requires itself or one that is not listed.
    """
    wanted = base().series
    closures: dict[str, tuple[str, ...]] = {}

    def add(name: str, path: tuple[str, ...]) -> tuple[str, ...]:
        if name not in wanted or name in path:
            reason = f"{path[-1]} requires {name}, which " + ("requires it" if name in wanted else "is no series")
            raise UsageError(f"kernel/base.toml: {reason}", hint="correct [series] of kernel/base.toml")
        if name not in closures:
            found = [other for direct in wanted[name] for other in (*add(direct, (*path, name)), direct)]
            closures[name] = tuple(dict.fromkeys(found))
        return closures[name]

    for name in wanted:
        add(name, ())
    found = {name: sorted((series_dir() / name).glob("*.patch")) for name in closures}
    return [Series(name, requires, tuple(Patch(path, path.read_text()) for path in found[name]))
            for name, requires in closures.items()]


def find(name: str) -> Series:
    """The series called `name`. Raises UsageError that lists the known ones."""
    for series in all_series():
        if series.name == name:
            return series
    raise UsageError(f"no series is called {name!r}", hint=f"one of: {', '.join(base().series)}")


def load() -> list[Patch]:
    """The patches of all series, in the order in which they apply."""
    return [patch for series in all_series() for patch in series.patches]


def prerequisites(series: Series) -> list[Patch]:
    """The patches of the series' prerequisites, in the order in which they apply."""
    return [patch for name in series.requires for patch in find(name).patches]


def introduced(patch: Patch, files: dict[str, Path]) -> list[str]:
    """The overlay files that a patch introduces; a directory stands for all files under it."""
    return [name for name in files
            if any(name == path or name.startswith(path.rstrip("/") + "/") for path in patch.overlay)]


def apply_onto(source: Source, series: Sequence[Patch], scratch: Path, *, exact: bool = False) -> dict[str, Path]:
    """Apply the series to copies, under `scratch`, of the files it touches; they are returned by their kernel path.

    No fuzz: a hunk whose context changed is refused; `exact` refuses one that moved, too. Raises InfraError that names
    hunk, file and both versions.
    """
    touched = list(dict.fromkeys(name for patch in series for name in patch.files))
    for name in touched:
        if (source.path / name).is_file():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source.path / name, scratch / name)
    for patch in series:
        if patch.files:
            apply_one(source, patch, scratch, exact=exact)
    return {name: scratch / name for name in touched if (scratch / name).is_file()}


def apply_one(source: Source, patch: Patch, scratch: Path, *, exact: bool = False) -> None:
    """Apply one patch under `scratch`, after a dry run, so that a patch goes in whole or not at all."""
    for dry in (["--dry-run"], []):
        command = ["patch", "-p1", "--batch", "--forward", "--fuzz=0", "--no-backup-if-mismatch", "-r", "-", *dry]
        done = proc.run([*command, "-i", patch.path.resolve()], cwd=scratch)
        moved = exact and any(re.match(r"Hunk #\d+ succeeded at", line) for line in done.tail)
        if done.status or moved:
            raise _refused(source, patch, done.tail)


def _refused(source: Source, patch: Patch, output: tuple[str, ...]) -> InfraError:
    """The output of patch(1) as one sentence."""
    file = hunk = ""
    for line in output:
        if match := re.match(r"(?:checking|patching) file '?([^' ]+)|\|\+\+\+ [^/]+/(\S+)", line):
            file = match[1] or match[2]
        elif match := re.match(r"Hunk #(\d+) (?:FAILED|ignored|succeeded)(?: at (\d+))?", line):
            hunk = f"hunk {match[1]}" + (f" (line {match[2]})" if match[2] else "")
            break
        elif re.search(r"can't find file|No such file|previously applied", line):
            hunk = hunk or line.strip()
    return InfraError(
        f"{patch.name} does not apply: {hunk or 'refused'} of {file or 'its file'}; "
        f"the patch is for Linux {base().version}, the source is Linux {source.version}",
        hint=f"./ferry --source <a {base().version} tree> series check, or rebase it in ./ferry series checkout DIR",
    )
