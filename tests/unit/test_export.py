# SPDX-License-Identifier: GPL-2.0
"""Series as mails: cover letters and their figures, versions, recipients, git am."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import made_up
import pytest
from tiny_kernel import BASE_TOML, CORE, LONE, add_series, make_clone, make_source, make_tree, write

from ferry.commands import cli
from ferry.errors import UsageError
from ferry.results import runs
from ferry.series import checks, gitrepo, mails, patches
from ferry.series.source import Source


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    return make_clone(monkeypatch, tmp_path)


@pytest.fixture
def two(clone: Path) -> Path:
    return add_series(clone)


@pytest.fixture
def base(tmp_path: Path) -> Source:
    return make_source(make_tree(tmp_path / "linux"))


def apply_mails(base: Source, written: list[Path], repo: Path) -> None:
    """What the receiver of an export does."""
    subprocess.run(["cp", "-r", base.path, repo], check=True)
    env = {**os.environ, **gitrepo.PLACEHOLDER.env}
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"], ["am", "-q", *map(str, written)]):
        subprocess.run(["git", *words], cwd=repo, env=env, check=True)


def test_export_is_accepted_by_git_am(clone: Path, base: Source, tmp_path: Path) -> None:
    letter, *written = mails.export(base, "hook", tmp_path / "mails")
    assert letter.name == "0000-cover-letter.patch"
    apply_mails(base, written, tmp_path / "am")
    assert (tmp_path / "am/mm/ferry/core.c").read_text() == CORE
    assert "ferry_hook();" in (tmp_path / "am/mm/migrate.c").read_text()
    text = written[0].read_text()
    assert "Overlay:" not in text
    assert "Signed-off-by" not in text
    assert "A Developer <dev@example.org>" in text


@pytest.fixture
def no_git_config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """git without the configuration and the variables of the user; returns the file that it now reads."""
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "gitconfig"


CONFIG = "[user]\n\tname = Some One\n\temail = one@example.com\n"


def test_signed_mails_are_from_the_user_of_git(two: Path, base: Source, tmp_path: Path, no_git_config: Path) -> None:
    no_git_config.write_text(CONFIG)
    assert mails.signer() == gitrepo.Person("Some One", "one@example.com")
    patch = two / "kernel/series/more/0001-more.patch"
    patch.write_text(patch.read_text().replace("A Developer <dev@example.org>", str(gitrepo.PLACEHOLDER)))
    written = mails.export(base, "more", tmp_path / "mails", signer=mails.signer())
    assert [mail.name for mail in written] == ["0000-cover-letter.patch", "0001-mm-more-hooks.patch"]
    for mail in written:
        assert "\nFrom: Some One <one@example.com>\n" in mail.read_text()
        assert "folio-ferry@example.org" not in mail.read_text()
    assert "\nSigned-off-by: Some One <one@example.com>\n" in written[1].read_text()


def test_a_patch_of_somebody_else_keeps_its_author(clone: Path, base: Source, tmp_path: Path) -> None:
    (mail,) = mails.export(base, "hook", tmp_path / "mails", signer=gitrepo.Person("Some One", "one@x.org"))[1:]
    assert "\nFrom: A Developer <dev@example.org>\n" in mail.read_text()
    assert "\nSigned-off-by: Some One <one@x.org>\n" in mail.read_text()


@pytest.mark.parametrize(("config", "said"), [
    ("", "no user.name and user.email"), ("[user]\n\tname = Some One\n", "no user.name and user.email"),
    ("[user]\n\tname = a\n\temail = folio-ferry@example.org\n", "no mailbox"),
])
def test_nobody_signs_off_without_a_mailbox(no_git_config: Path, config: str, said: str) -> None:
    no_git_config.write_text(config)
    with pytest.raises(UsageError, match=said) as caught:
        mails.signer()
    assert "git config --global user.email" in str(caught.value.hint)


@pytest.mark.skipif(not Path(gitrepo.git(Path(), "--exec-path").strip(), "git-send-email").is_file(),
                    reason="git send-email is not installed")
def test_git_send_email_takes_signed_mails(clone: Path, base: Source, tmp_path: Path, no_git_config: Path) -> None:
    no_git_config.write_text(CONFIG)
    mails.export(base, "hook", tmp_path / "mails", signer=mails.signer())
    done = subprocess.run(["git", "send-email", "--dry-run", "--confirm=never", "--smtp-server=/bin/true",
                           "--to=list@example.org", "mails"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Result: OK") == 2
    assert done.stdout.count("\nFrom: Some One <one@example.com>\n") == 2


def test_export_spares_older_mails(clone: Path, base: Source, tmp_path: Path) -> None:
    mails.export(base, "hook", tmp_path / "mails")
    with pytest.raises(UsageError, match="holds patches already"):
        mails.export(base, "hook", tmp_path / "mails")


def test_an_unknown_series_is_named(clone: Path, base: Source, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no series is called 'hok'"):
        mails.export(base, "hok", tmp_path)




def headers(mail: Path) -> dict[str, str]:
    """Its headers, unfolded."""
    head = mail.read_text().partition("\n\n")[0].replace("\n ", " ")
    return dict(line.split(": ", 1) for line in head.splitlines()[1:])


def test_each_mail_goes_to_its_maintainers_and_the_cover_letter_to_all(two: Path, base: Source, tmp_path: Path) -> None:
    letter, mail = mails.export(base, "hook", tmp_path / "mails")
    (lone,) = mails.export(base, "lone", tmp_path / "lone")
    assert headers(mail)["To"] == "\"Mai N. Tainer\" <mai@example.org>"
    assert headers(mail)["Cc"] == "=?utf-8?q?R=C3=A9_Viewer?= <re@example.org>, mm@example.org"
    assert [headers(letter)[name] for name in ("To", "Cc")] == [headers(mail)[name] for name in ("To", "Cc")]
    assert headers(lone)["Cc"] == "mm@example.org"


def test_the_base_and_the_prerequisites_are_named(two: Path, base: Source, tmp_path: Path) -> None:
    letter, mail = mails.export(base, "more", tmp_path / "mails")
    assert "Prerequisites, in this order:\n  mm/ferry: a hook\n" in letter.read_text()
    assert "\nbase: Linux 7.3.4 with Debian's patches (7.3.4-1)\nprerequisite-patch-id: " in letter.read_text()
    assert "base-commit" not in letter.read_text() + mail.read_text()


@pytest.mark.parametrize(("commit", "named"), [("", "base: Linux 7.3.9\n"), ("a" * 40, f"base-commit: {'a' * 40}\n")])
def test_another_base_is_named_by_its_commit_if_that_is_known(clone: Path, tmp_path: Path, commit: str,
                                                              named: str) -> None:
    other = Source(make_tree(tmp_path / "linux", version="7.3.9"), "7.3.9", "another", commit)
    assert f"\n{named}" in mails.export(other, "hook", tmp_path / "mails")[0].read_text()


def test_figures_are_those_of_runs(clone: Path, base: Source, tmp_path: Path) -> None:
    text = mails.export(base, "hook", tmp_path / "mails", documents=[made_up.document()])[0].read_text()
    assert "charset=UTF-8" in text.partition("\n\n")[0]
    assert "Measured by `ferry <made up>`" in text and "| mtcopy 2 | 68.27 ±0.68 · 1.650 [1.642, 1.692] |" in text
    assert "±" not in mails.export(base, "hook", tmp_path / "bare")[0].read_text()


@pytest.mark.parametrize(("claim", "with_run", "refused"), [
    ("moves are 1.65 times as fast.", False, "1.65 times"), ("moves are 1.65 times as fast.", True, ""),
    ("moves are 1.66x as fast.", True, "1.66x"), ("40.96 GB/s, not 99.9 GB/s", True, "99.9 GB/s"),
    ("saves 43 %", True, "43 %"), ("a stall of 12\nms", True, "12 ms"), ("3 chunks of 128 MiB, 64 folios", False, ""),
])
def test_a_figure_that_no_run_has_is_refused(clone: Path, base: Source, tmp_path: Path, claim: str, with_run: bool,
                                             refused: str) -> None:
    write(clone / "kernel/series/hook", {"cover-letter": f"mm/ferry: a hook\n\n{claim}\n"})
    documents = [made_up.document()] * with_run
    if refused:
        with pytest.raises(UsageError, match=f'the cover letter of hook says "{re.escape(refused)}"'):
            mails.export(base, "hook", tmp_path / "mails", documents=documents)
        assert not (tmp_path / "mails").exists()
    else:
        assert claim in mails.export(base, "hook", tmp_path / "mails", documents=documents)[0].read_text()


def test_a_run_needs_a_cover_letter(two: Path, base: Source, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lone has no cover letter that could hold figures"):
        mails.export(base, "lone", tmp_path / "mails", documents=[made_up.document()])


def test_a_version_has_a_changelog(clone: Path, base: Source, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="hook is at version 1"):
        mails.export(base, "hook", tmp_path / "mails", version=2)
    write(clone / "kernel/series/hook", {"changelog": "Changes in v2:\n- shorter\n"})
    with pytest.raises(UsageError, match=r"hook is at version 2 .* not 1") as caught:
        mails.export(base, "hook", tmp_path / "mails")
    assert str(caught.value.hint).endswith("-v 2")
    letter, mail = mails.export(base, "hook", tmp_path / "mails", version=2)
    assert (letter.name, mail.name) == ("v2-0000-cover-letter.patch", "v2-0001-mm-ferry-hook-the-ferry-in.patch")
    assert headers(mail)["Subject"] == "[PATCH v2 1/1] mm/ferry: hook the ferry in"
    assert "This is why.\n\n---\nChanges in v2:\n- shorter\n" in letter.read_text()


@pytest.fixture
def fixes(clone: Path) -> Path:
    """A series of two fixes, without a cover letter."""
    tag = 'Fixes: 0123456789ab ("mm: break it")'
    first = LONE.replace("Say why.", f"Say why.\n\n{tag}")
    second = first.replace("change other", "change it again").replace("@@ -1 +1,2 @@\n other\n+else",
                                                                      "@@ -1,2 +1,3 @@\n other\n else\n+more")
    write(clone / "kernel", {"base.toml": BASE_TOML.replace("hook = []", "hook = []\nfixes = []"),
                             "series/fixes/0001-one.patch": first, "series/fixes/0002-two.patch": second})
    return clone


def test_each_fix_is_a_mail_of_its_own(fixes: Path, base: Source, tmp_path: Path) -> None:
    write(fixes / "kernel/series/fixes", {"changelog": "Changes in v2:\n- better words\n"})
    one, two = written = mails.export(base, "fixes", tmp_path / "mails", version=2)
    assert [headers(mail)["Subject"] for mail in written] == ["[PATCH v2] mm: change other",
                                                             "[PATCH v2] mm: change it again"]
    assert "prerequisite-patch-id" not in one.read_text() and "prerequisite-patch-id" in two.read_text()
    notes = "\n---\nPrerequisites, in this order:\n  mm: change other\n\nChanges in v2:\n- better words\n\n mm/other.c"
    assert notes in two.read_text()
    mails.applies(base, patches.find("fixes"), written)
    assert list(checks._folders(patches.all_series())) == []


def test_only_fixes_need_no_cover_letter(fixes: Path) -> None:
    patch = fixes / "kernel/series/fixes/0002-two.patch"
    patch.write_text(patch.read_text().replace("Fixes: ", "See: "))
    (wrong,) = checks._folders(patches.all_series())
    assert wrong == "fixes has no cover-letter, and 0002-two.patch no Fixes: tag"


def test_a_figure_of_a_stored_cover_letter_is_seen(clone: Path, base: Source) -> None:
    write(clone / "kernel/series/hook", {"cover-letter": "mm/ferry: a hook\n\nTakes 3.5 ms.\n"})
    assert [line for outcome in checks.run_all(base) if "without a run" in outcome.name for line in outcome.wrong] == [
        'the cover letter of hook says "3.5 ms"; `ferry export --run` adds the tables of a run']


def test_the_verb_takes_runs_by_name(clone: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FERRY_RUNS", str(tmp_path / "runs"))
    runs.finish(runs.create("move_pages", "x86-numa"), [made_up.document()])
    monkeypatch.setenv("FERRY_SOURCE", str(make_tree(tmp_path / "linux")))
    words = ["export", "--series", "hook"]
    assert cli.main([*words, "--run", "latest", str(tmp_path / "mails")]) == 0
    letter, _ = capsys.readouterr().out.splitlines()
    assert "| mtcopy 2 | 68.27 " in Path(letter).read_text()
    assert cli.main([*words, "--run", "no-run", str(tmp_path / "more")]) == 2
    assert "no run 'no-run'" in capsys.readouterr().err
    (tmp_path / "runs/unfinished").mkdir()
    assert cli.main([*words, "--run", "unfinished", str(tmp_path / "more")]) == 2
    assert "did not finish" in capsys.readouterr().err
