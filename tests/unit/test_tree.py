# SPDX-License-Identifier: GPL-2.0
"""Trees, patches, and the series as commits."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
from tiny_kernel import (
    BASE_TOML,
    CORE,
    MIGRATE,
    PATCH,
    PATCH_NAME,
    add_series,
    make_clone,
    make_source,
    make_tree,
    write,
)

from ferry import progress
from ferry.errors import InfraError, UsageError
from ferry.kernel import series_build
from ferry.series import checks, gitrepo, mails, patches, source, tree
from ferry.series.source import Source


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    return make_clone(monkeypatch, tmp_path)


@pytest.fixture
def two(clone: Path, base: Source) -> Path:
    """The clone with two more series."""
    return add_series(clone)


def checks_of_series(base: Source) -> list[str]:
    """What the checks of each series find; checkpatch is none of the made-up tree."""
    return [line for series in patches.all_series() for outcome in checks._series(base, series)
            if "checkpatch" not in outcome.name for line in outcome.wrong]


@pytest.fixture
def base(tmp_path: Path) -> Source:
    return make_source(make_tree(tmp_path / "linux"))


def stamps(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


def test_ferry_tree_has_hooks_and_overlay_and_spares_the_base(clone: Path, base: Source) -> None:
    made = tree.prepare(base, "ferry")
    assert "ferry_hook();" in (made / "mm/migrate.c").read_text()
    assert (made / "mm/ferry/core.c").read_text() == CORE
    assert (base.path / "mm/migrate.c").read_text() == MIGRATE
    assert not (base.path / "mm/ferry").exists()
    assert tree.prepare(base, "stock") == base.path


def test_only_what_changed_is_rewritten(clone: Path, base: Source) -> None:
    made = tree.prepare(base, "ferry")
    before = stamps(made)
    assert stamps(tree.prepare(base, "ferry")) == before
    (clone / "kernel/overlay/mm/ferry/core.c").write_text(CORE + "/* more */\n")
    after = stamps(tree.prepare(base, "ferry"))
    assert {name for name in after if after[name] != before[name]} == {"mm/ferry/core.c"}


def test_a_umask_rewrites_nothing(clone: Path, base: Source) -> None:
    core = clone / "kernel/overlay/mm/ferry/core.c"
    before = stamps(tree.prepare(base, "ferry"))
    core.chmod(0o664)
    assert stamps(tree.prepare(base, "ferry")) == before
    core.chmod(0o755)
    made = tree.prepare(base, "ferry") / "mm/ferry/core.c"
    assert made.stat().st_mode & 0o777 == 0o755


def test_what_left_the_series_leaves_the_tree(clone: Path, base: Source) -> None:
    tree.prepare(base, "ferry")
    (clone / "kernel/series/hook" / PATCH_NAME).unlink()
    made = tree.prepare(base, "ferry")
    assert (made / "mm/migrate.c").read_text() == MIGRATE
    assert not (made / "mm/ferry/core.c").exists()
    # make compares times: what went back must look newer than the objects made of it.
    assert (made / "mm/migrate.c").stat().st_mtime_ns > (base.path / "mm/migrate.c").stat().st_mtime_ns


def test_patch_that_does_not_apply_names_hunk_file_and_versions(clone: Path, tmp_path: Path) -> None:
    moved = make_source(make_tree(tmp_path / "l", version="7.3.9", migrate=MIGRATE.replace("line 11", "new")), "7.3.9")
    with pytest.raises(InfraError) as caught:
        tree.prepare(moved, "ferry")
    for part in ("0001-mm-ferry-hook-the-ferry-in.patch", "hunk 1 (line 8)", "mm/migrate.c", "7.3.4", "7.3.9"):
        assert part in caught.value.cause
    assert caught.value.status == 3


def test_a_hunk_may_move_on_another_source_than_debians(clone: Path, base: Source, tmp_path: Path) -> None:
    """kernel.org's release has other line numbers than Debian's tree of the same version."""
    moved = Source(make_tree(tmp_path / "upstream", migrate="a line more\n" + MIGRATE), "7.3.4", "another key")
    found = {source.describe(tree): [outcome for outcome in checks.run_all(tree) if "patches apply" in outcome.name]
             for tree in (base, moved)}
    ((debians, (exact,)), (other, (loose,))) = found.items()
    assert debians == "Linux 7.3.4 with Debian's patches (7.3.4-1)" and other == "Linux 7.3.4 of --source"
    assert (exact.name, exact.wrong) == ("patches apply, no fuzz, no offset", ())
    assert (loose.name, loose.wrong) == ("patches apply, no fuzz", ())
    unlike = Source(moved.path, "7.3.4", base.key)
    assert any(outcome.wrong for outcome in checks.run_all(unlike) if "patches apply" in outcome.name)


def test_patch_of_a_file_that_is_gone_names_it(clone: Path, base: Source) -> None:
    (base.path / "mm/migrate.c").unlink()
    with pytest.raises(InfraError, match=r"does not apply.*mm/migrate\.c"):
        tree.prepare(base, "ferry")


def test_nothing_is_half_applied(clone: Path, base: Source, tmp_path: Path) -> None:
    second = PATCH.replace("ferry_hook", "other_hook").replace("Overlay: mm/ferry\n", "").replace("line 12", "gone 12")
    write(clone / "kernel/series/hook", {"2.patch": second})
    with pytest.raises(InfraError, match=r"2\.patch"):
        tree.prepare(base, "ferry")
    made = tree.ferry_tree(base)
    assert (made / "mm/migrate.c").read_text() == MIGRATE


def test_overlay_must_not_hide_a_file(clone: Path, base: Source) -> None:
    write(clone / "kernel/overlay", {"mm/other.c": "mine\n"})
    with pytest.raises(InfraError, match=r"overlay/mm/other\.c exists in Linux 7\.3\.4"):
        tree.prepare(base, "ferry")


def contents(directory: Path) -> dict[str, str]:
    found = {str(path.relative_to(directory)): path for path in sorted(directory.rglob("*")) if path.is_file()}
    return {name: "\n".join(line for line in path.read_text().splitlines() if not line.startswith("index "))
            for name, path in found.items()}


def test_import_undoes_checkout(clone: Path, base: Source, tmp_path: Path) -> None:
    before = contents(clone / "kernel")
    tree.checkout(base, tmp_path / "git")
    gitrepo.import_tree(tmp_path / "git", base)
    assert contents(clone / "kernel") == before


def test_series_are_checked_out_and_imported_each_in_its_folder(two: Path, base: Source, tmp_path: Path) -> None:
    tree.checkout(base, tmp_path / "git")
    gitrepo.import_tree(tmp_path / "git", base)
    assert [(series.name, [patch.name for patch in series.patches]) for series in patches.all_series()] == [
        ("hook", [PATCH_NAME]), ("more", ["0001-mm-more-hooks.patch"]), ("lone", ["0001-mm-change-other.patch"])]
    assert patches.find("more").cover == ("mm: more hooks", "This is why.")
    write(tmp_path / "git", {"mm/other.c": "changed\n"})
    gitrepo.git(tmp_path / "git", "commit", "-qam", "mm: other\n\nSeries: hook")
    gitrepo.import_tree(tmp_path / "git", base)
    assert [patch.name for patch in patches.find("hook").patches] == [PATCH_NAME, "0002-mm-other.patch"]
    assert "Series:" not in patches.find("hook").patches[1].text


def test_a_commit_of_no_series_is_refused(clone: Path, base: Source, tmp_path: Path) -> None:
    tree.checkout(base, tmp_path / "git")
    write(tmp_path / "git", {"mm/other.c": "changed\n"})
    gitrepo.git(tmp_path / "git", "commit", "-qam", "mm: other\n\nSeries: nosuch")
    with pytest.raises(UsageError, match=r'"mm: other" is of no series .* nosuch'):
        gitrepo.import_tree(tmp_path / "git", base)


def test_a_series_applies_to_its_prerequisites(two: Path, base: Source, tmp_path: Path) -> None:
    """more is before hook in base.toml, and stands on it; lone on nothing."""
    assert [(series.name, series.requires) for series in patches.all_series()] == [
        ("hook", ()), ("more", ("hook",)), ("lone", ())]
    assert [patch.name for patch in patches.load()] == [PATCH_NAME, "0001-more.patch", "0001-lone.patch"]
    cover, mail = mails.export(base, "more", tmp_path / "mails")
    assert "Subject: [PATCH 0/1] mm: more hooks" in cover.read_text()
    assert "more_hook();" in mail.read_text() and "+ferry_hook();" not in mail.read_text()
    mails.applies(base, patches.find("more"), [mail])
    (lone,) = mails.export(base, "lone", tmp_path / "lone")
    mails.applies(base, patches.find("lone"), [lone])
    assert checks_of_series(base) == []


def test_a_series_that_lacks_a_prerequisite_is_seen(two: Path, base: Source) -> None:
    (two / "kernel/base.toml").write_text(BASE_TOML.replace("hook = []", "hook = []\nmore = []\nlone = []"))
    assert any("0001-more.patch does not apply" in line for line in checks_of_series(base))


@pytest.mark.parametrize(("listed", "reason"), [
    ('hook = ["hook"]', "hook requires hook, which requires it"),
    ('hook = ["more"]\nmore = ["hook"]', "more requires hook, which requires it"),
    ('hook = ["gone"]', "hook requires gone, which is no series"),
])
def test_prerequisites_that_cannot_be_are_refused(clone: Path, listed: str, reason: str) -> None:
    (clone / "kernel/base.toml").write_text(BASE_TOML.replace("hook = []", listed))
    with pytest.raises(UsageError, match=reason):
        patches.all_series()


def test_tree_brings_edits_back(clone: Path, base: Source, tmp_path: Path) -> None:
    tree.checkout(base, tmp_path / "git")
    write(tmp_path / "git", {"mm/ferry/core.c": CORE + "/* edited */\n", "mm/ferry/more.c": "int x;\n",
                             "mm/other.c": "changed\n"})
    gitrepo.git(tmp_path / "git", "add", "-A")
    gitrepo.git(tmp_path / "git", "commit", "-qm", "mm/ferry: more\n\nBecause.")
    gitrepo.import_tree(tmp_path / "git", base)
    assert (clone / "kernel/overlay/mm/ferry/core.c").read_text().endswith("/* edited */\n")
    first, second = patches.load()
    assert first.overlay == ["mm/ferry/core.c"]
    assert second.name == "0002-mm-ferry-more.patch"
    assert (second.overlay, second.files) == (["mm/ferry/more.c"], ["mm/other.c"])
    assert "Because." in second.body


def test_uncommitted_edits_are_not_lost_silently(clone: Path, base: Source, tmp_path: Path) -> None:
    tree.checkout(base, tmp_path / "git")
    (tmp_path / "git/mm/other.c").write_text("changed\n")
    with pytest.raises(UsageError, match="not committed"):
        gitrepo.import_tree(tmp_path / "git", base)


def test_an_import_overwrites_nothing_that_git_does_not_have(clone: Path, base: Source, tmp_path: Path) -> None:
    tree.checkout(base, tmp_path / "git")
    core, new = clone / "kernel/overlay/mm/ferry/core.c", clone / "kernel/overlay/mm/ferry/new.c"
    gitrepo.init(clone)
    gitrepo.git(clone, "add", "kernel")
    new.write_text("int fresh;\n")
    core.write_text("edited in place\n")
    with pytest.raises(UsageError, match="changes that git does not have"):
        gitrepo.import_tree(tmp_path / "git", base)
    assert core.read_text() == "edited in place\n" and new.exists() and len(patches.load()) == 1
    gitrepo.git(clone, "add", "kernel")
    gitrepo.import_tree(tmp_path / "git", base)
    assert core.read_text() == CORE and not new.exists()
    gitrepo.import_tree(tmp_path / "git", base)  # what it brought itself may go


def test_mails_in_an_old_encoding_are_taken(clone: Path, base: Source, tmp_path: Path) -> None:
    (mail,) = mails.export(base, "hook", tmp_path / "mails")[1:]
    text = mail.read_text().replace("Say why.", "Sag, warum: f\xfcr die F\xe4hre.").replace("A Developer", "An Author")
    plain = "MIME-Version: 1.0\nContent-Type: text/plain; charset=ISO-8859-1\nContent-Transfer-Encoding: 8bit\n\n"
    head, _, body = text.partition("\n\n")
    mail.write_bytes(f"{head}\n{plain}{body}".encode("latin-1"))
    tree.checkout(base, tmp_path / "git")
    gitrepo.git(tmp_path / "git", "reset", "-q", "--hard", gitrepo.BASE_TAG)
    gitrepo.git(tmp_path / "git", "am", "-q", mail)
    gitrepo.git(tmp_path / "git", "commit", "-q", "--amend", "-m", mail_message(tmp_path / "git"))
    gitrepo.import_tree(tmp_path / "git", base)
    assert "f\xfcr die F\xe4hre" in patches.load()[0].body


def mail_message(repo: Path) -> str:
    return gitrepo.git(repo, "log", "-1", "--format=%B") + "\nSeries: hook\n"


def wrong(base: Source) -> list[str]:
    """Every complaint of the checks but checkpatch's, which the made-up tree has not."""
    series, overlay = patches.load(), patches.overlay_files()
    found = [*checks._base_version(base), *checks._introductions(series, overlay), *checks._application(base, series)]
    found += checks._folders(patches.all_series())
    return [*found, *checks._signed(series, overlay), *checks._names(series, overlay)]


def test_checks_hold_on_a_good_series(clone: Path, base: Source) -> None:
    assert wrong(base) == []


def test_a_step_is_compiled_once_and_again_when_it_changes(two: Path, base: Source, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[list[str]] = []

    def compile_step(source: Source, series: list[patches.Patch], targets: Sequence[str], home: Path) -> None:
        compiled.append([patch.name for patch in series])
        home.mkdir(parents=True)

    monkeypatch.setattr(series_build, "_build_step", compile_step)
    monkeypatch.setattr(series_build.config, "fragments", lambda *args, **rest: [])
    for _ in range(2):
        assert [outcome.wrong for outcome in series_build.builds(base, progress.Stage(""))] == [(), (), ()]
    assert compiled == [[PATCH_NAME], ["0001-lone.patch"], [PATCH_NAME, "0001-more.patch"]]
    write(two / "kernel", {"overlay/mm/ferry/core.c": "int ferry_other(void)\n{\n\treturn 1;\n}\n"})
    list(series_build.builds(base, progress.Stage("")))
    assert compiled[3:] == [[PATCH_NAME], [PATCH_NAME, "0001-more.patch"]]
    compiled.clear()
    write(two / "kernel", {"overlay/mm/ferry/core.c": "int ferry_third(void)\n{\n\treturn 1;\n}\n"})
    (series, *_) = patches.all_series()
    twice = dataclasses.replace(series, patches=[*series.patches, *series.patches])
    monkeypatch.setattr(patches, "all_series", lambda: [twice])
    list(series_build.builds(base, progress.Stage(""), last_only=True))
    assert compiled == [[PATCH_NAME, PATCH_NAME]]


@pytest.mark.parametrize(("files", "complaint"), [
    ({"overlay/mm/lone.c": "int x;\n"}, "mm/lone.c is introduced by no patch"),
    ({"overlay/mm/ferry/core.c": "EXPORT_SYMBOL_GPL(migrate_fast);\n"}, "exports migrate_fast"),
    ({"overlay/mm/ferry/core.c": "struct migrator {\n};\n"}, "upstream's name struct migrator"),
    ({"overlay/mm/ferry/core.c": "memcpy_streaming(to, from, bytes);\n"}, "upstream's name memcpy_streaming"),
    ({"overlay/mm/ferry/core.c": "memcpy_nt(to, from, bytes);\n"}, "upstream's name memcpy_nt"),
    ({"series/lone/0001-x.patch": PATCH}, "names no series lone"),
    ({"base.toml": BASE_TOML.replace("hook = []", "hook = []\nmore = []")}, "the series more is empty"),
    ({"series/hook/0002-x.patch": PATCH, "series/hook/cover-letter": ""}, "has no cover-letter"),
    ({"overlay/mm/ferry/core.c": "Signed-off-by: Tool <t@example.org>\n"}, "carries a Signed-off-by"),
    ({f"series/hook/{PATCH_NAME}": PATCH.replace("mm/ferry\n", "mm/fairy\n")}, "mm/fairy"),
    ({f"series/hook/{PATCH_NAME}": PATCH.replace("@@ -8,6 +8,7", "@@ -5,6 +5,7")}, "hunk 1"),
])
def test_checks_see(clone: Path, base: Source, files: dict[str, str], complaint: str) -> None:
    write(clone / "kernel", files)
    assert any(complaint in line for line in wrong(base))


def function(name: str, lines: int) -> str:
    return f"static int {name}(int a,\n\t\tint b)\n{{\n" + "\tx();\n" * (lines - 2) + "}\n\n"


def test_function_lengths_are_counted_and_limited() -> None:
    text = "struct a {\n\tint b;\n};\nstatic int c[] = {\n\t1,\n};\n" + function("short", 5) + function("long_one", 81)
    counted = dict(checks.functions(text))
    assert counted == {"short": 5, "long_one": 81}
    assert list(checks.wrong_lengths({"f.c:short": 5})) == []
    assert any("f.c:long_one has 81 lines" in line for line in checks.wrong_lengths({"f.c:long_one": 81}))
    assert any("median" in line for line in checks.wrong_lengths({f"f.c:{n}": 16 for n in range(9)}))
    ten = {f"f.c:{n}": 5 for n in range(8)} | {"f.c:a": 46, "f.c:b": 46}
    assert any("2 of 10 functions" in line for line in checks.wrong_lengths(ten))
