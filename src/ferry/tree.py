# SPDX-License-Identifier: GPL-2.0
"""Kernel trees to build from: the base as it is, and the base with our files and hooks in it.

The `stock` tree is the unpacked source itself. The `ferry` tree is a farm of hard links to it in which only what the
overlay and the patches touch are files of their own, rewritten only when their content changes: make then rebuilds only
what a change calls for.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from ferry import patches, paths, proc, progress
from ferry.errors import InfraError
from ferry.source import Source


def prepare(source: Source, kernel: str) -> Path:
    """The tree to build `kernel` ("stock" or "ferry") from, up to date. The caller holds its lock while building.

    Raises InfraError when a patch does not apply or an overlay file exists in the base.
    """
    if kernel == "stock":
        return source.path
    tree = paths.cache_dir() / "trees" / source.key / "ferry"
    if not tree.is_dir():
        _link_farm(source.path, tree)
    with tempfile.TemporaryDirectory(prefix="ferry-apply-", dir=paths.cache_dir()) as scratch:
        _sync(source.path, tree, wanted_files(source, Path(scratch)))
    return tree


def wanted_files(source: Source, scratch: Path) -> dict[str, Path]:
    """What differs from the base, by kernel path: overlay files, and patched files made under `scratch`."""
    overlay = patches.overlay_files()
    refuse_collisions(source, overlay)
    return {**overlay, **patches.apply_onto(source, patches.load(), scratch)}


def refuse_collisions(source: Source, overlay: dict[str, Path]) -> None:
    """An overlay holds new files only: one that hides a file of the base would be a patch nobody reviews."""
    there = [name for name in overlay if (source.path / name).exists()]
    if there:
        raise InfraError(
            f"kernel/overlay/{there[0]} exists in Linux {source.version} already",
            hint="change it by a patch in kernel/patches instead",
        )


def _link_farm(source: Path, tree: Path) -> None:
    with progress.stage("making the ferry tree"), paths.publish(tree) as scratch:
        try:
            proc.capture(["cp", "-al", f"{source}/.", scratch])
        except InfraError:  # a file system without hard links
            proc.capture(["cp", "-a", "--reflink=auto", f"{source}/.", scratch])


def _sync(source: Path, tree: Path, wanted: dict[str, Path]) -> None:
    """Make `tree` the base plus `wanted`, writing only files whose content differs."""
    record = tree.parent / "ferry.json"
    before = set(json.loads(record.read_text())) if record.is_file() else set()
    # Recorded before it is done: after an interruption the next run still knows every file that may differ.
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
    """Give `target` the content and mode of `content` under a new inode and time; nothing when it has them already."""
    data = content.read_bytes()
    mode = content.stat().st_mode & 0o777
    if target.is_file() and target.read_bytes() == data and target.stat().st_mode & 0o777 == mode:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".ferry-{os.getpid()}-{target.name}")
    fresh.write_bytes(data)
    fresh.chmod(mode)
    fresh.replace(target)
