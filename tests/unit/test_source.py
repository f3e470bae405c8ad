# SPDX-License-Identifier: GPL-2.0
"""Where the base kernel comes from, and what is refused."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from tiny_kernel import make_clone, make_tree

from ferry.debian import apt
from ferry.errors import InfraError, UsageError
from ferry.series import source, tree


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    make_clone(monkeypatch, tmp_path)
    return tmp_path / "cache"


def give(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setenv("FERRY_SOURCE", str(path))


def pack(tree: Path, tarball: Path) -> Path:
    subprocess.run(["tar", "-caf", tarball, "-C", tree.parent, tree.name], check=True)
    return tarball


def test_tarball_is_unpacked_once(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    give(monkeypatch, pack(make_tree(tmp_path / "linux"), tmp_path / "linux.tar.xz"))
    first = source.obtain()
    assert first.version == "7.3.4"
    (first.path / "mark").touch()
    assert (source.obtain().path / "mark").exists()


def test_git_tree_must_be_committed(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
        subprocess.run([*git, *words], check=True)
    give(monkeypatch, tree)
    found = source.obtain()
    assert (found.path / "mm/migrate.c").is_file()
    assert found.commit == subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    tarball = tmp_path / "linux.tar.gz"
    subprocess.run([*git, "archive", "--prefix=linux/", "-o", tarball, "HEAD"], check=True)
    give(monkeypatch, tarball)
    assert source.obtain().commit == found.commit
    give(monkeypatch, tree)
    (tree / "mm/migrate.c").write_text("edited\n")
    with pytest.raises(UsageError, match="not committed"):
        source.obtain()


def test_edited_directory_is_another_source(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    give(monkeypatch, make_tree(tmp_path / "linux"))
    first = source.obtain()
    (tmp_path / "linux/mm/other.c").write_text("longer than before\n")
    second = source.obtain()
    assert first.key != second.key
    assert (second.path / "mm/other.c").read_text() == "longer than before\n"
    assert (first.path / "mm/other.c").read_text() == "other\n"


@pytest.mark.parametrize("version", ["7.2.9", "7.4.0", "6.12.1"])
def test_other_version_names_both(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    give(monkeypatch, make_tree(tmp_path / "linux", version=version))
    with pytest.raises(UsageError, match=rf"{version}.*7\.3\.0 to 7\.3\.99"):
        source.obtain()
    assert source.obtain(any_version=True).version == version


@pytest.mark.parametrize("kind", ["missing", "empty directory", "text file"])
def test_what_is_no_source(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given"
    if kind == "empty directory":
        path.mkdir()
    elif kind == "text file":
        path.write_text("hello\n")
    give(monkeypatch, path)
    with pytest.raises(UsageError) as caught:
        source.obtain()
    assert "--source" in str(caught.value.hint)
    assert not list(cache.glob("source/*"))


def test_wrong_hash_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    tarball = pack(make_tree(tmp_path / "linux"), tmp_path / "linux.tar.xz")
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(InfraError, match=hashlib.sha256(tarball.read_bytes()).hexdigest()):
        source._unpack_tarball(tarball, into, "0" * 64)
    assert not list(into.iterdir())


def test_interrupted_unpacking_is_not_taken_for_whole(cache: Path, monkeypatch: pytest.MonkeyPatch,
                                                      tmp_path: Path) -> None:
    give(monkeypatch, pack(make_tree(tmp_path / "linux"), tmp_path / "linux.tar.xz"))
    real = source._unpack_tarball

    def interrupted(tarball: Path, into: Path, sha256: str | None) -> None:
        real(tarball, into, sha256)
        (into / "mm/migrate.c").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(source, "_unpack_tarball", interrupted)
    with pytest.raises(KeyboardInterrupt):
        source.obtain()
    monkeypatch.setattr(source, "_unpack_tarball", real)
    assert (source.obtain().path / "mm/migrate.c").is_file()


ONE_LINE = """# deb http://old.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://sec.example/debian-security bookworm-security main
deb-src http://src.example/debian bookworm main
deb [trusted=yes] http://one.example/debian bookworm main contrib
"""
DEB822 = """Types: deb
URIs: http://off.example/debian
Suites: bookworm
Enabled: no

# a comment
Types: deb deb-src
URIs: http://two.example/debian
Suites: bookworm
 bookworm-updates
Components: main
"""


@pytest.mark.parametrize(("name", "text", "address"), [
    ("sources.list", ONE_LINE, "http://one.example/debian"),
    ("sources.list.d/debian.sources", DEB822, "http://two.example/debian"),
])
def test_mirror_of_both_formats(tmp_path: Path, name: str, text: str, address: str) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / name).write_text(text)
    assert apt.mirror(tmp_path) == address


def test_no_mirror_is_said(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="no Debian mirror"):
        apt.mirror(tmp_path)


def test_a_source_edited_through_a_tree_builds_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch,
                                                        tmp_path: Path) -> None:
    give(monkeypatch, pack(make_tree(tmp_path / "linux"), tmp_path / "linux.tar.xz"))
    base = source.obtain()
    made = tree.prepare(base, "ferry")
    assert (made / "mm/other.c").samefile(base.path / "mm/other.c")
    (made / "mm/migrate.c").write_text("this file is not shared\n")
    for kernel in ("ferry", "stock"):
        tree.prepare(base, kernel)
    with (made / "mm/other.c").open("a") as file:
        file.write("edited in place\n")
    for kernel in ("ferry", "stock"):
        with pytest.raises(InfraError, match=r"mm/other\.c was edited in the cache") as caught:
            tree.prepare(base, kernel)
    assert f"rm -r {base.path} {made.parent}" in str(caught.value.hint)
