# SPDX-License-Identifier: GPL-2.0
"""The series on another base kernel: which patches conflict, and a git tree to resolve that in.

The tree holds only files that the series touch. Each patch is merged three-way, with its old base as the ancestor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ferry.errors import InfraError, UsageError
from ferry.series import gitrepo, patches
from ferry.series.gitrepo import BASE_TAG, git
from ferry.series.patches import Patch
from ferry.series.source import Source

_OLD = "ferry-old-base"
_BRANCH = "ferry"


@dataclass(frozen=True)
class Merge:
    """A patch of a series on the new base: the conflicting hunks of each file, none if it merges."""

    series: str
    patch: Patch
    conflicts: dict[str, int]


def prepare(old: Source, new: Source, repo: Path) -> None:
    """A new repository: the series on the old base as the branch, and the new base as BASE_TAG, on the same parent."""
    if repo.exists() and any(repo.iterdir()):
        raise UsageError(f"{repo} exists and is not empty", hint="another directory")
    repo.mkdir(parents=True, exist_ok=True)
    every = patches.load()
    gitrepo.touched_base(repo, old, every)
    for series in patches.all_series():
        gitrepo.commit_patches(repo, old, series.patches, f"Series: {series.name}")
    git(repo, "tag", _OLD, BASE_TAG)
    git(repo, "checkout", "-q", "--detach", _OLD)
    touched = [".gitattributes", *(name for patch in every for name in patch.files), *patches.overlay_files()]
    gitrepo.copy_files(repo, new, touched)
    git(repo, "tag", "-d", BASE_TAG)
    gitrepo.commit_base(repo, new)


def merges(repo: Path) -> Iterator[Merge]:
    """Each patch, in order, on the new base of a prepared repository. After a conflict the patch's side goes on."""
    commits = git(repo, "rev-list", "--reverse", f"{_OLD}..{_BRANCH}").split()
    listed = [(series.name, patch) for series in patches.all_series() for patch in series.patches]
    git(repo, "checkout", "-q", "--detach", BASE_TAG)
    for commit, (name, patch) in zip(commits, listed, strict=True):
        yield Merge(name, patch, _pick(repo, commit))


def _pick(repo: Path, commit: str) -> dict[str, int]:
    """Apply a commit; the number of conflicting hunks by file, 1 if one side removed or added the whole file."""
    pick = ("cherry-pick", "--allow-empty", "--keep-redundant-commits")
    try:
        git(repo, *pick, commit)
        return {}
    except InfraError:
        found = [name for name in git(repo, "diff", "--name-only", "--diff-filter=U", "-z").split("\0") if name]
        if not found:
            raise
    texts = {name: (repo / name).read_text(errors="replace") for name in found if (repo / name).is_file()}
    hunks = {name: max(texts.get(name, "").count("\n<<<<<<< "), 1) for name in found}
    git(repo, "cherry-pick", "--abort")
    try:
        git(repo, *pick, "-X", "theirs", commit)
    except InfraError:
        git(repo, "checkout", commit, "--", *found)
        git(repo, "commit", "-q", "-C", commit)
    return hunks


def start(repo: Path) -> bool:
    """Begin git rebase in a prepared repository; whether it stopped at a conflict, for the user to resolve."""
    try:
        git(repo, "rebase", "-q", "--onto", BASE_TAG, _OLD, _BRANCH)
        return False
    except InfraError:
        return True
