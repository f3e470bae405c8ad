# SPDX-License-Identifier: GPL-2.0
"""Series as mails for git am.

A series with a cover letter is one thread of numbered mails. A series without one is a collection of fixes: each of its
patches is a mail of its own, with its own recipients and prerequisites.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from email.utils import formataddr, parseaddr
from pathlib import Path

from ferry import proc
from ferry.errors import InfraError, UsageError
from ferry.results.document import Document
from ferry.series import cover, gitrepo, patches
from ferry.series.gitrepo import BASE_TAG, PLACEHOLDER, Person, git
from ferry.series.patches import Series
from ferry.series.source import Source, describe

_START = "ferry-series"
"""Marks the commit before the first patch of the series to export."""


def commit_series(repo: Path, source: Source, series: Series, author: Person = PLACEHOLDER) -> None:
    """A new repository with the files that the series touches: base, prerequisites, _START, one commit a patch."""
    before = patches.prerequisites(series)
    gitrepo.touched_base(repo, source, [*before, *series.patches])
    gitrepo.commit_patches(repo, source, before)
    git(repo, "tag", _START)
    gitrepo.commit_patches(repo, source, series.patches, author=author)


def export(source: Source, name: str, directory: Path, *, documents: Sequence[Document] = (), version: int = 1,
           signer: Person | None = None) -> list[Path]:
    """Write a series as mails, first its cover letter if it has one. Raises UsageError.

    `git am` takes them on a tree of the base with the series' prerequisites. They can be sent if there is a `signer`:
    this person becomes the author of patches without one, and signs them off. The figures of the `documents` are part
    of the cover letter.
    """
    series = patches.find(name)
    if not series.patches:
        raise UsageError(f"the series {name} is empty", hint=f"add a patch to {patches.series_dir() / name}")
    if directory.exists() and any(directory.glob("*.patch")):
        raise UsageError(f"{directory} holds patches already", hint="another directory, or remove them")
    changes = cover.changelog(series, version)
    subject, text = cover.letter(series, documents, changes)
    if documents and not subject:
        raise UsageError(f"{name} has no cover letter that could hold figures", hint="leave out --run")
    with tempfile.TemporaryDirectory(prefix="ferry-export-") as scratch:
        repo = Path(scratch)
        commit_series(repo, source, series, signer or PLACEHOLDER)
        directory.mkdir(parents=True, exist_ok=True)
        written = _format(repo, directory, bool(subject), version, signer)
        if subject:
            _fill_cover(written[0], subject, text)
        else:
            for number, mail in enumerate(written):
                _add_notes(mail, [cover.prerequisites(series, series.patches[:number]), changes])
        _address(source, repo, written)
    version_alone = describe(source).removesuffix(" of --source")
    named = f"base-commit: {source.commit}" if source.commit else f"base: {version_alone}"
    for mail in written:
        mail.write_text(re.sub(r"^base-commit: \w+$", named, mail.read_text(), flags=re.MULTILINE))
    return written


def _format(repo: Path, directory: Path, thread: bool, version: int, signer: Person | None) -> list[Path]:
    """The mails of git format-patch: all commits as one thread with a cover letter to be filled, or each alone."""
    ranges = [f"{_START}..HEAD"]
    if not thread:
        ranges = [f"{commit}^!" for commit in git(repo, "rev-list", "--reverse", *ranges).split()]
    words = ["--cover-letter" if thread else "-N"] + [f"-v{version}"] * (version > 1) + ["--signoff"] * bool(signer)
    for number, revisions in enumerate(ranges, 1):
        git(repo, "format-patch", "-q", "--no-renames", "--abbrev=12", "--zero-commit", *words, f"--base={BASE_TAG}",
            f"--start-number={number}", "-o", directory.absolute(), revisions, person=signer or PLACEHOLDER)
    return sorted(directory.glob("*.patch"))


def _fill_cover(mail: Path, subject: str, text: str) -> None:
    filled = mail.read_text().replace("*** SUBJECT HERE ***", subject).replace("*** BLURB HERE ***", text)
    if not filled.isascii() and "\nContent-Type:" not in filled:
        filled = filled.replace("\n\n", "\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
                                "Content-Transfer-Encoding: 8bit\n\n", 1)
    mail.write_text(filled)


def _add_notes(mail: Path, notes: Sequence[str]) -> None:
    """Put notes between the message and the diff, where git am drops them."""
    if text := "\n\n".join(filter(None, notes)):
        mail.write_text(mail.read_text().replace("\n---\n", f"\n---\n{text}\n\n", 1))


def _address(source: Source, repo: Path, mails: Sequence[Path]) -> None:
    """Add the recipients of each mail to it; a cover letter goes to those of all mails."""
    found = {mail: _recipients(source, repo, mail) for mail in mails if "\ndiff --git " in mail.read_text()}
    every = [one for recipients in found.values() for one in recipients]
    for mail in mails:
        people = found.get(mail, every)
        to = dict.fromkeys(address for header, address in people if header == "To")
        cc = dict.fromkeys(address for _, address in people if address not in to)
        headers = "".join(f"{name}: " + ",\n ".join(of) + "\n" for name, of in (("To", to), ("Cc", cc)) if of)
        mail.write_text(mail.read_text().replace("\n\n", f"\n{headers}\n", 1))


def _recipients(source: Source, repo: Path, mail: Path) -> list[tuple[str, str]]:
    """("To" or "Cc", address) of the maintainers, then reviewers and lists, by the script of the kernel's tree.

    It reads MAINTAINERS as the series leaves it. Without the history in git it knows no authors of older patches.
    """
    maintainers = next(root / "MAINTAINERS" for root in (repo, source.path) if (root / "MAINTAINERS").is_file())
    command: list[str | Path] = ["perl", source.path / "scripts/get_maintainer.pl", "--no-git", "--no-git-fallback"]
    command += ["--no-rolestats", "--roles", "--mpath", maintainers, mail.absolute()]
    done = proc.run(command, cwd=source.path)
    found = [match for line in done.tail if (match := re.fullmatch(r"(\S.*?@\S+) \((.*)\)", line))]
    if done.status or not found:
        raise InfraError(f"get_maintainer.pl names no recipient of {mail.name}: {' '.join(done.tail)[-300:]}")
    return [("To" if re.match(r"(maintainer|supporter)\b", match[2]) else "Cc", formataddr(parseaddr(match[1])))
            for match in found]


def applies(source: Source, series: Series, mails: Sequence[Path]) -> None:
    """Apply exported mails by git am to the base with the prerequisites. Raises InfraError if git rejects one."""
    with tempfile.TemporaryDirectory(prefix="ferry-am-") as scratch:
        repo = Path(scratch)
        commit_series(repo, source, series)
        made = git(repo, "rev-parse", "HEAD^{tree}")
        git(repo, "reset", "-q", "--hard", _START)
        git(repo, "am", "-q", "--no-3way", *(mail.absolute() for mail in mails))
        if git(repo, "rev-parse", "HEAD^{tree}") != made:
            raise InfraError(f"after git am of the mails of {series.name} the tree differs from that of the series")


def signer() -> Person:
    """The user, as git's configuration or environment says. Raises UsageError if neither does, or for the placeholder.

    git would make up an address from the names of user and host: useConfigOnly forbids that.
    """
    command = ["git", "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    match = re.match(r"(.+) <(.+@.+)> \d+", done.stdout)
    hint = 'git config --global user.name "Your Name"; git config --global user.email you@your.domain'
    if done.returncode or not match:
        raise UsageError("git has no user.name and user.email to sign off with", hint=hint)
    if match[2] == PLACEHOLDER.email:
        raise UsageError(f"git's user.email is {match[2]}, which is no mailbox: it cannot sign off", hint=hint)
    return Person(match[1], match[2])
