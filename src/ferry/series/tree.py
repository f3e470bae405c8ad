# SPDX-License-Identifier: GPL-2.0
"""Kernel trees to build from: the unchanged base, and the base with the series' files and hooks.

The `stock` tree is the unpacked source itself. The `ferry` tree consists of hard links to it, except for the files of
the overlay and of the patches, which are rewritten only if their content changes: make then rebuilds only their
dependents.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ferry import paths, proc, progress
from ferry.errors import InfraError, UsageError
from ferry.series import gitrepo, patches
from ferry.series.patches import Patch
from ferry.series.source import Source, check_unchanged


def prepare(source: Source, kernel: str) -> Path:
    """The tree to build `kernel` ("stock" or "ferry") from, up to date. The caller holds its lock while building.

    Raises InfraError when a patch does not apply, an overlay file exists in the base, or the base was edited.
    """
    if kernel == "stock":
        check_unchanged(source)
        return source.path
    return materialise(source, "ferry", patches.load())


def materialise(source: Source, name: str, series: Sequence[Patch]) -> Path:
    """The tree called `name`: the base with these patches and the overlay files that they introduce."""
    check_unchanged(source)
    tree = ferry_tree(source, name)
    if not paths.use(tree):
        _link_farm(source.path, tree)
    with tempfile.TemporaryDirectory(prefix="ferry-apply-", dir=paths.cache_dir()) as scratch:
        _sync(source.path, tree, _wanted_files(source, series, Path(scratch)))
    return tree


def ferry_tree(source: Source, name: str = "ferry") -> Path:
    """The directory of a tree made by `materialise`."""
    return paths.cache_dir() / "trees" / source.key / name


def _wanted_files(source: Source, series: Sequence[Patch], scratch: Path) -> dict[str, Path]:
    """The files that differ from the base, by kernel path: overlay files, and patched files under `scratch`."""
    overlay = patches.overlay_files()
    refuse_collisions(source, overlay)
    chosen = {name: overlay[name] for patch in series for name in patches.introduced(patch, overlay)}
    return {**chosen, **patches.apply_onto(source, series, scratch)}


def refuse_collisions(source: Source, overlay: dict[str, Path]) -> None:
    """Raises InfraError if an overlay file exists in the base: it would replace that file without a patch to review."""
    there = [name for name in overlay if (source.path / name).exists()]
    if there:
        raise InfraError(
            f"kernel/overlay/{there[0]} exists in Linux {source.version} already",
            hint="change it by a patch in kernel/series instead",
        )


def _link_farm(source: Path, tree: Path) -> None:
    with progress.stage(f"making the {tree.name} tree"), paths.publish(tree) as scratch:
        try:
            proc.capture(["cp", "-al", f"{source}/.", scratch])
        except InfraError:  # a file system without hard links
            proc.capture(["cp", "-a", "--reflink=auto", f"{source}/.", scratch])


def _sync(source: Path, tree: Path, wanted: dict[str, Path]) -> None:
    """Turn `tree` into the base plus `wanted`; write only files whose content differs."""
    record = tree.parent / f"{tree.name}.json"
    before = set(json.loads(record.read_text())) if record.is_file() else set()
    # The record comes first: after an interruption the next run knows every file that may differ.
    record.write_text(json.dumps(sorted(before | set(wanted))))
    for name in sorted(before - set(wanted)):
        if (source / name).is_file():
            replace(tree / name, source / name)
        else:
            (tree / name).unlink(missing_ok=True)
    for name, file in wanted.items():
        replace(tree / name, file)
    record.write_text(json.dumps(sorted(wanted)))


def replace(target: Path, content: Path) -> None:
    """Give `target` the content of `content` with a new inode and time, unless it has that content.

    Of the mode only the executable bit counts, as in git: otherwise another umask would rewrite all files, and make
    would rebuild the kernel.
    """
    data = content.read_bytes()
    mode = 0o755 if content.stat().st_mode & 0o100 else 0o644
    if target.is_file() and target.read_bytes() == data and not (target.stat().st_mode ^ mode) & 0o100:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".ferry-{os.getpid()}-{target.name}")
    fresh.write_bytes(data)
    fresh.chmod(mode)
    fresh.replace(target)


def checkout(source: Source, directory: Path) -> None:
    """An ordinary git tree to edit: the base in one commit, then one commit a patch. Raises UsageError, InfraError."""
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} exists and is not empty", hint="another directory, or ./ferry series import it")
    paths.need_disk(directory.absolute().parent, 4_000_000_000, "a git tree of the kernel")
    with progress.stage(f"copying Linux {source.version}"):
        directory.mkdir(parents=True, exist_ok=True)
        proc.capture(["cp", "-a", "--reflink=auto", f"{source.path}/.", directory])
    with progress.stage("committing it"):
        gitrepo.init(directory)
        gitrepo.commit_base(directory, source)
    with progress.stage("committing the series"):
        for series in patches.all_series():
            gitrepo.commit_patches(directory, source, series.patches, f"Series: {series.name}")
