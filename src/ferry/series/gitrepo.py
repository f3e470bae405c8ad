# SPDX-License-Identifier: GPL-2.0
"""The series as git commits, and git commits as the series.

A commit holds the hooks of the stored patch and the new files that it introduces, as a reviewer reads them. On import
they are split: changes of the base's files become the patch, new files go to the overlay.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry import proc, progress
from ferry.errors import InfraError, UsageError
from ferry.series import patches
from ferry.series.patches import Patch
from ferry.series.source import Source, base

BASE_TAG = "ferry-base"
"""Marks the commit of the unpatched base."""
_REVISIONS = f"{BASE_TAG}..HEAD"


@dataclass(frozen=True)
class Person:
    """An author or committer."""

    name: str
    email: str

    @property
    def env(self) -> dict[str, str]:
        """git's variables that make this person author and committer."""
        return {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER")
                for key, value in (("NAME", self.name), ("EMAIL", self.email))}

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


PLACEHOLDER = Person("Folio Ferry", "folio-ferry@example.org")
"""The author of the stored patches: no mailbox, so it cannot sign off."""


def git(repo: Path, *words: str | Path, stdin: str | None = None, person: Person = PLACEHOLDER) -> str:
    """Run git in `repo` as `person`. Raises InfraError with git's error message."""
    env = {**os.environ, **person.env}
    try:
        done = subprocess.run(
            ["git", "-c", "core.autocrlf=false", "-c", "commit.gpgsign=false", "-c", "gc.auto=0", *map(str, words)],
            cwd=repo,
            env=env,
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except FileNotFoundError as error:
        raise InfraError("git is not installed", hint="./ferry setup (as root)") from error
    if done.returncode:
        raise InfraError(f"git {words[0]} failed: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


def init(repo: Path) -> None:
    """A new repository, without the hooks and templates of the user's git configuration."""
    git(repo, "init", "-q", "-b", "ferry", "--template=")


def commit_base(repo: Path, source: Source) -> None:
    """Commit all files as the base, and tag the commit."""
    # Ignored files, too: a release tarball holds only files that belong to it. Light compression, because of 1.5 GB.
    git(repo, "-c", "core.looseCompression=1", "add", "-A", "-f")
    git(repo, "commit", "-q", "--allow-empty", "-m", f"Linux {source.version}")
    git(repo, "tag", BASE_TAG)


def touched_base(repo: Path, source: Source, series: Sequence[Patch]) -> None:
    """A new repository with only the base files that the patches change: it takes seconds, not minutes."""
    init(repo)
    # .gitattributes selects how git labels hunks.
    copy_files(repo, source, [".gitattributes", *(name for patch in series for name in patch.files)])
    commit_base(repo, source)


def copy_files(repo: Path, source: Source, names: Iterable[str]) -> None:
    """Give the files in `repo` the content that the source has; a file that the source lacks is removed."""
    for name in dict.fromkeys(names):
        (repo / name).unlink(missing_ok=True)
        if (source.path / name).is_file():
            (repo / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source.path / name, repo / name)


def commit_patches(repo: Path, source: Source, series: Sequence[Patch], trailer: str = "",
                   author: Person = PLACEHOLDER) -> None:
    """One commit a patch, each with its author, date and message, and with the overlay files it introduces.

    `author` is that of the patches that have the placeholder for an author; `trailer` is added to each message.
    """
    overlay = patches.overlay_files()
    for patch in series:
        if patch.files:
            patches.apply_one(source, patch, repo)
        new = patches.introduced(patch, overlay)
        for name in new:
            (repo / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(overlay[name], repo / name)
        _commit(repo, patch, [*patch.files, *new], trailer, author)


def _commit(repo: Path, patch: Patch, names: list[str], trailer: str, author: Person) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        message, diff = Path(scratch) / "message", Path(scratch) / "diff"
        fields = git(repo, "mailinfo", "--encoding=UTF-8", message, diff, stdin=patch.text)
        header = dict(re.findall(r"^(\w+): (.*)$", fields, re.MULTILINE))
        body = re.sub(r"^Overlay:.*\n?", "", message.read_text(), flags=re.MULTILINE).strip()
    if names:
        git(repo, "add", "-A", "-f", "--", *names)
    stored = Person(header["Author"], header["Email"])
    by = author if stored.email == PLACEHOLDER.email else stored
    text = f"{header['Subject']}\n\n{body}\n" + (f"\n{trailer}\n" if trailer else "")
    git(repo, "commit", "-q", "--allow-empty", f"--author={by}", f"--date={header['Date']}", "-F", "-", stdin=text)


@dataclass(frozen=True)
class _Commit:
    """A commit to import: its series, the base files it changes and the overlay files it adds."""

    id: str
    series: str
    changed: list[str]
    added: list[str]


def import_tree(repo: Path, source: Source) -> None:
    """Rewrite kernel/overlay and the patches of kernel/series from the commits since BASE_TAG in `repo`.

    A commit belongs to the series that its `Series:` line names; without one, to the series of the commit before.
    Raises UsageError when the tree has uncommitted changes, is not of `checkout`, or changes nothing, when a commit
    names no series, and when something in kernel/ would be lost that git does not have.
    """
    _check_ready(repo)
    commits = _commits(repo, source)
    if not commits:
        raise UsageError(f"{repo} holds no commit that changes anything", hint="git commit, then again")
    mails: dict[Path, str] = {}
    for name in base().series:
        mine = [commit for commit in commits if commit.series == name]
        for number, one in enumerate(mine, 1):
            mails[patches.series_dir() / name / _file_name(repo, number, one)] = _mail(repo, source, one, commits)
    names = sorted(name for one in commits for name in one.added)
    with tempfile.TemporaryDirectory() as scratch:
        files = _fetch(repo, names, Path(scratch))
        _check_nothing_is_lost(mails, files)
        _write_patches(mails)
        _write_overlay(files)
    progress.note(f"{len(mails)} patches written; see: git diff kernel, ./ferry series check")


def _check_ready(repo: Path) -> None:
    if not (repo / ".git").exists():
        raise UsageError(f"{repo} is not a git tree", hint=f"./ferry series checkout {repo} makes one")
    if git(repo, "status", "--porcelain", "--untracked-files=no").strip():
        raise UsageError(f"{repo} has changes that are not committed", hint=f"git -C {repo} commit, then again")
    try:
        git(repo, "rev-list", "-1", _REVISIONS)
    except InfraError as error:
        hint = "./ferry series checkout DIR makes such a tree"
        raise UsageError(f"{repo} has no tag {BASE_TAG}", hint=hint) from error


def _commits(repo: Path, source: Source) -> list[_Commit]:
    """The commits in order. A later change of an overlay file belongs to the commit that added the file."""
    final = set(git(repo, "ls-tree", "-r", "--name-only", "-z", "HEAD").split("\0"))
    seen: set[str] = set()
    commits = []
    series = ""
    for commit in git(repo, "rev-list", "--reverse", "--no-merges", _REVISIONS).split():
        subject, body = git(repo, "log", "-1", "--format=%s%n%b", commit).split("\n", 1)
        named = re.findall(r"^Series:[ \t]*(\S+)[ \t]*$", body, re.MULTILINE)
        series = named[-1] if named else series
        if series not in base().series:
            raise UsageError(f'"{subject}" is of no series of kernel/base.toml: {series or "its message names none"}',
                             hint=f"a line `Series: NAME` in its message, one of {', '.join(base().series)}")
        listed = git(repo, "diff-tree", "-r", "--no-commit-id", "--name-only", "--no-renames", "-z", commit)
        names = [name for name in listed.split("\0") if name]
        changed = [name for name in names if (source.path / name).exists()]
        added = [name for name in names if name not in changed and name in final and name not in seen]
        seen.update(added)
        if changed or added:
            commits.append(_Commit(commit, series, changed, added))
        else:
            progress.note(f"folded into the patches that introduce its files: {subject}")
    return commits


def _file_name(repo: Path, number: int, commit: _Commit) -> str:
    slug = git(repo, "log", "-1", "--format=%f", commit.id).strip()
    return f"{number:04d}-{slug[:52].rstrip('.-')}.patch"


def _mail(repo: Path, source: Source, commit: _Commit, commits: list[_Commit]) -> str:
    """The stored form: a git-am mail whose diff holds the hooks, and whose body names the overlay files."""
    fields = git(repo, "log", "-1", "--format=%an <%ae>%n%aD%n%s%n%b", commit.id)
    author, date, subject, *body = fields.split("\n")
    text = "\n".join(line for line in body if not re.match(r"(Signed-off-by|Overlay|Series):", line)).strip()
    others = {name for other in commits if other is not commit for name in other.added}
    overlay = "".join(f"Overlay: {path}\n" for path in collapse(commit.added, others, source))
    parts = ["\n".join(textwrap.wrap(f"Subject: [PATCH] {subject}", 78, subsequent_indent=" ")), "", text]
    stat = diff = ""
    if commit.changed:
        show = ("diff-tree", "--no-commit-id", "--no-renames", "-r", commit.id)
        stat = git(repo, *show, "--stat=72", "--summary", "--", *commit.changed)
        diff = "\n" + git(repo, *show, "-p", "--abbrev=12", "--", *commit.changed)
    head = f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: {author}\nDate: {date}\n"
    return head + "\n".join(parts) + "\n" + (f"\n{overlay}" if overlay else "") + f"---\n{stat}{diff}"


def collapse(added: list[str], others: set[str], source: Source) -> list[str]:
    """Replace files by their directory if the base lacks it and all files under it came with this commit."""

    def whole(directory: str) -> bool:
        return not (source.path / directory).exists() and not any(name.startswith(f"{directory}/") for name in others)

    shown: list[str] = []
    for name in sorted(added):
        if not any(name.startswith(path + "/") for path in shown):
            parents = [str(parent) for parent in reversed(Path(name).parents) if str(parent) != "."]
            shown.append(next((parent for parent in parents if whole(parent)), name))
    return shown


def _fetch(repo: Path, names: list[str], scratch: Path) -> dict[str, Path]:
    """The files as HEAD has them, copied to `scratch`."""
    archive = scratch / ".tar"
    git(repo, "archive", "-o", archive, "HEAD", "--", *names)
    proc.capture(["tar", "-x", "-C", str(scratch), "-f", str(archive)])
    return {name: scratch / name for name in names}


def _check_nothing_is_lost(mails: dict[Path, str], files: dict[str, Path]) -> None:
    new = {patches.overlay_dir() / name: path.read_bytes() for name, path in files.items()}
    new |= {path: text.encode(errors="surrogateescape") for path, text in mails.items()}
    unsaved = _unsaved(patches.overlay_dir())
    unsaved += [path for path in _unsaved(patches.series_dir()) if path.suffix == ".patch"]
    if lost := [path for path in unsaved if path.read_bytes() != new.get(path)]:
        raise UsageError(f"{lost[0]} has changes that git does not have, and the tree lacks them",
                         hint="git add kernel, or commit the changes in the tree; then again")


def _unsaved(directory: Path) -> list[Path]:
    """The files of a directory that differ from the index of its repository, if it is in one."""
    try:
        listed = git(directory, "ls-files", "--modified", "--others", "--exclude-standard", "-z")
    except InfraError:
        return []
    return [path for name in listed.split("\0") if name and (path := directory / name).is_file()]


def _write_patches(mails: dict[Path, str]) -> None:
    """Replace all patches; cover letters stay."""
    for old in patches.series_dir().glob("*/*.patch"):
        old.unlink()
    for path, text in mails.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, errors="surrogateescape")


def _write_overlay(files: dict[str, Path]) -> None:
    """Replace the overlay by these files."""
    root = patches.overlay_dir()
    for name, path in patches.overlay_files().items():
        if name not in files:
            path.unlink()
    for name, path in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / name)
    for directory in sorted((path for path in root.rglob("*") if path.is_dir()), reverse=True):
        if not any(directory.iterdir()):
            directory.rmdir()
