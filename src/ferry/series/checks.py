# SPDX-License-Identifier: GPL-2.0
"""Checks of the series before they are sent for review: each check yields its findings, or nothing."""

from __future__ import annotations

import re
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry import proc
from ferry.errors import FerryError, InfraError
from ferry.series import cover, gitrepo, layers, mails, patches, prose, tree
from ferry.series.patches import Patch, Series
from ferry.series.source import Source, base, describe, is_debians, makefile_version

MEDIAN_LINES, MOST_LINES, LONGEST_LINES = 15, 45, 80
"""Limits for the lines of a function: the median, 90 %, and the longest."""
_SIGNER = gitrepo.Person("A Sender", "sender@example.com")
"""Signs the mails that the checks export, as the user who sends them will."""
_RESERVED = re.compile(r"\b(?:migrate_(?:copy_)?offload\w*|memcpy_(?:streaming|nt)\w*)\b|\bstruct migrator\b")
"""Names of series under review upstream, so that both can be in one tree."""


@dataclass(frozen=True)
class Outcome:
    """One check: its name, its findings (none if it passes), and a remark."""

    name: str
    wrong: tuple[str, ...]
    remark: str = ""


def run_all(source: Source) -> Iterator[Outcome]:
    """Every check that does not compile; the later ones assume that the earlier ones pass."""
    listed, overlay = patches.all_series(), patches.overlay_files()
    every = patches.load()
    yield Outcome("base version", tuple(_base_version(source)), describe(source))
    yield Outcome("series", tuple(_folders(listed)), ", ".join(series.name for series in listed))
    yield Outcome("no figure in a cover letter without a run", tuple(_handmade(listed)))
    yield Outcome("no overlay file exists in the base", tuple(_collisions(source, overlay)), f"{len(overlay)} files")
    yield Outcome("each overlay file is introduced once", tuple(_introductions(every, overlay)))
    exactly = "no fuzz, no offset" if is_debians(source) else "no fuzz"
    yield Outcome(f"patches apply, {exactly}", tuple(_application(source, every)), f"{len(every)} patches")
    yield Outcome("no Signed-off-by", tuple(_signed(every, overlay)))
    yield Outcome("names: exported ferry_ or migrc_, none of upstream's", tuple(_names(every, overlay)))
    lengths = function_lengths(overlay)
    yield Outcome("function length", tuple(wrong_lengths(lengths)), describe_lengths(lengths, overlay))
    yield Outcome("headers of other parts", tuple(layers.foreign_includes(overlay)))
    yield Outcome("no circle of files", tuple(layers.file_circles(overlay)))
    yield Outcome("80 columns", tuple(layers.wide_lines(overlay)))
    figures = prose.of_overlay(overlay)
    yield Outcome("prose", tuple(prose.exceeded(figures)), prose.describe(figures))
    for series in listed:
        yield from _series(source, series)


def _folders(listed: Sequence[Series]) -> Iterator[str]:
    """Folders that kernel/base.toml does not name; series without patches, or without a cover letter if not all fix."""
    names = {series.name for series in listed}
    for path in sorted(patches.series_dir().iterdir()):
        if path.name not in names:
            yield f"kernel/base.toml names no series {path.name}"
    for series in listed:
        if not series.patches:
            yield f"the series {series.name} is empty"
        if len(series.patches) > 1 and not series.cover[0]:
            yield from (f"{series.name} has no cover-letter, and {patch.name} no Fixes: tag" for patch in series.patches
                        if not re.search(r'^Fixes: [0-9a-f]{12} \(".+"\)$', patch.body, re.MULTILINE))


def _handmade(listed: Sequence[Series]) -> Iterator[str]:
    for series in listed:
        for figure in cover.unsupported("\n".join(series.cover), ()):
            yield f'the cover letter of {series.name} says "{figure}"; `ferry export --run` adds the tables of a run'


def _series(source: Source, series: Series) -> Iterator[Outcome]:
    """A series on its prerequisites alone: it applies without fuzz, git am takes its mails, checkpatch accepts them."""
    before = [*patches.prerequisites(series), *series.patches]
    wrong = tuple(_application(source, before, exact=False))
    yield Outcome(f"{series.name} applies on {' and '.join(series.requires) or 'the base'}, no fuzz", wrong)
    if wrong or not series.patches or any(_handmade([series])):
        return
    with tempfile.TemporaryDirectory(prefix="ferry-check-") as scratch:
        written = mails.export(source, series.name, Path(scratch), version=cover.newest(series)[0], signer=_SIGNER)
        written = written[bool(series.cover[0]):]
        yield Outcome(f"{series.name} exports, and git am takes it", tuple(_taken(source, series, written)))
        yield Outcome(f"{series.name} passes checkpatch --strict", tuple(_checkpatch(source, written)))


def _taken(source: Source, series: Series, written: Sequence[Path]) -> Iterator[str]:
    try:
        mails.applies(source, series, written)
    except InfraError as error:
        yield error.cause


def _base_version(source: Source) -> Iterator[str]:
    named = [base().version, *(other["version"] for other in base().others.values())]
    if makefile_version(source.path) not in named:
        yield f"the source is Linux {source.version}, kernel/base.toml says {' or '.join(dict.fromkeys(named))}"


def _collisions(source: Source, overlay: dict[str, Path]) -> Iterator[str]:
    try:
        tree.refuse_collisions(source, overlay)
    except FerryError as error:
        yield error.cause


def _introductions(series: Sequence[Patch], overlay: dict[str, Path]) -> Iterator[str]:
    for name in overlay:
        by = [patch.name for patch in series if name in patches.introduced(patch, overlay)]
        if len(by) != 1:
            yield f"{name} is introduced by {' and '.join(by) or 'no patch'}"
    for patch in series:
        for path in patch.overlay:
            if not (patches.overlay_dir() / path).exists():
                yield f"{patch.name} introduces {path}, which kernel/overlay has not"


def _application(source: Source, series: Sequence[Patch], *, exact: bool = True) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="ferry-check-") as scratch:
        try:
            patches.apply_onto(source, series, Path(scratch), exact=exact and is_debians(source))
        except InfraError as error:
            yield error.cause


def _signed(series: Sequence[Patch], overlay: dict[str, Path]) -> Iterator[str]:
    texts = {patch.name: patch.text for patch in series} | {name: path.read_text() for name, path in overlay.items()}
    for name, text in texts.items():
        if re.search(r"^Signed-off-by:", text, re.MULTILINE | re.IGNORECASE):
            yield f"{name} carries a Signed-off-by; `ferry export --signoff` adds the exporter's own"


def _names(series: Sequence[Patch], overlay: dict[str, Path]) -> Iterator[str]:
    for name, path in overlay.items():
        text = path.read_text()
        for symbol in re.findall(r"^EXPORT_SYMBOL\w*\((\w+)", text, re.MULTILINE):
            if not symbol.startswith(("ferry_", "migrc_")):
                yield f"{name} exports {symbol}"
        if match := _RESERVED.search(text):
            yield f"{name} uses upstream's name {match[0]}"
    for patch in series:
        added = "\n".join(line for line in patch.text.splitlines() if line.startswith("+"))
        if match := _RESERVED.search(added):
            yield f"{patch.name} uses upstream's name {match[0]}"


def function_lengths(overlay: dict[str, Path]) -> dict[str, int]:
    """Lines of every C function of the overlay, braces included, by "file:function"."""
    lengths: dict[str, int] = {}
    for name, path in overlay.items():
        if path.suffix in (".c", ".h"):
            for function, count in functions(path.read_text()):
                lengths[f"{name}:{function}"] = count
    return lengths


def functions(text: str) -> Iterator[tuple[str, int]]:
    """(name, lines from brace to brace) of each function; in kernel style both braces are in the first column."""
    lines = text.splitlines()
    opened = 0
    for number, line in enumerate(lines):
        if line == "{" and number and lines[number - 1].rstrip().endswith(")"):
            opened = number
        elif line == "}" and opened:
            yield _function_name(lines, opened), number - opened + 1
            opened = 0


def _function_name(lines: list[str], brace: int) -> str:
    """The name before the argument list; the declaration starts in the first column."""
    first = brace - 1
    while first > 0 and lines[first][:1] in (" ", "\t", ""):
        first -= 1
    match = re.search(r"(\w+)\(", " ".join(lines[first:brace]))
    return match[1] if match else f"line {brace}"


def wrong_lengths(lengths: dict[str, int]) -> Iterator[str]:
    """The limits of function length that are exceeded."""
    if not lengths:
        return
    if statistics.median(lengths.values()) > MEDIAN_LINES:
        yield f"the median function has {statistics.median(lengths.values()):.0f} lines, the limit is {MEDIAN_LINES}"
    long = sorted((name for name, count in lengths.items() if count > MOST_LINES), key=lambda name: -lengths[name])
    if len(long) * 10 > len(lengths):
        yield f"{len(long)} of {len(lengths)} functions have more than {MOST_LINES} lines: {', '.join(long[:5])}"
    yield from (
        f"{name} has {lengths[name]} lines, at most {LONGEST_LINES}" for name in long if lengths[name] > LONGEST_LINES
    )


def describe_lengths(lengths: dict[str, int], overlay: dict[str, Path]) -> str:
    if not lengths:
        return "no functions"
    ordered = sorted(lengths.values())
    once, static = prose.called_once(path.read_text() for path in overlay.values() if path.suffix == ".c")
    return (f"{len(ordered)} functions, median {statistics.median(ordered):.0f}, 90 % at most "
            f"{ordered[len(ordered) * 9 // 10]}, longest {ordered[-1]}; {once} of {static} static ones called once")


def _checkpatch(source: Source, written: Sequence[Path]) -> Iterator[str]:
    """Check the exported mails, which contain both the overlay files and the hooks."""
    command: list[str | Path] = ["perl", source.path / "scripts/checkpatch.pl", "--strict"]
    # The MAINTAINERS entry comes with the documentation, not with each patch that adds a file. The source is no git
    # repository, in which checkpatch could look up the commit of a Fixes: tag.
    command += ["--terse", "--show-types", "--no-summary", "--color=never",
                "--ignore", "FILE_PATH_CHANGES,UNKNOWN_COMMIT_ID"]
    done = proc.run([*command, *written], cwd=source.path)
    if done.status:
        yield from (line.replace(f"{written[0].parent}/", "") for line in done.tail if line.strip())
