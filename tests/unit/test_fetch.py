# SPDX-License-Identifier: GPL-2.0
"""The base kernel's package from several places: a mirror that has a newer version only, and an archive of all."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tiny_kernel import BASE_TOML, make_clone, make_tree, write

from ferry.debian import apt
from ferry.errors import InfraError
from ferry.series import source

pytestmark = pytest.mark.skipif(not shutil.which("apt-get"), reason="no apt on this machine")

PACKAGES = """Package: linux-source-7.3
Version: {version}
Architecture: all
Filename: pool/linux-source-7.3.deb
Size: {size}
SHA256: {sha256}
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class Archive:
    """A mirror (unsigned, in www/debian) and an archive of all versions (www/file) on one local server."""

    def __init__(self, root: Path, address: str) -> None:
        self.root, self.address = root, address
        self.tarball = root / "linux-source-7.3.tar.xz"
        tree = make_tree(root / "tree/linux-source-7.3")
        subprocess.run(["tar", "-caf", self.tarball, "-C", tree.parent, tree.name], check=True)
        self.deb = self._package("7.3.4-1")

    def _package(self, version: str) -> Path:
        home = self.root / f"package-{version}"
        write(home, {"DEBIAN/control": f"Package: linux-source-7.3\nVersion: {version}\nArchitecture: all\n"
                                       "Maintainer: N <n@example.org>\nDescription: source\n"})
        (home / "usr/src").mkdir(parents=True)
        shutil.copy(self.tarball, home / "usr/src")
        subprocess.run(["dpkg-deb", "-b", home, self.root / f"{version}.deb"], check=True, capture_output=True)
        return self.root / f"{version}.deb"

    def mirror_has(self, version: str) -> None:
        deb = self.deb if version == "7.3.4-1" else self._package(version)
        home = self.root / "www/debian"
        entry = PACKAGES.format(version=version, size=deb.stat().st_size, sha256=sha256(deb))
        write(home, {"dists/trixie-backports/Release": "Suite: trixie-backports\n",
                     "dists/trixie-backports/main/binary-amd64/Packages": entry})
        (home / "pool").mkdir(exist_ok=True)
        shutil.copy(deb, home / "pool/linux-source-7.3.deb")

    def archive_has(self, deb: Path) -> str:
        (self.root / "www/file").mkdir(parents=True, exist_ok=True)
        shutil.copy(deb, self.root / "www/file/abc")
        return f"{self.address}/file/abc"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Archive]:
    (tmp_path / "www").mkdir()
    (tmp_path / "etc").mkdir()
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "www")) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made = Archive(tmp_path, f"http://127.0.0.1:{server.server_port}")
        clone = make_clone(monkeypatch, tmp_path)
        pinned = BASE_TOML.replace('tarball_sha256 = "0123456789abcdef"', f'tarball_sha256 = "{sha256(made.tarball)}"')
        pinned = pinned.replace('\nsha256 = "00"', f'\nsha256 = "{sha256(made.deb)}"')
        pinned = pinned.replace("also = []", f'also = ["{made.address}/file/abc"]')
        write(clone, {"kernel/base.toml": pinned})
        (tmp_path / "etc/sources.list").write_text(f"deb {made.address}/debian trixie main\n")
        monkeypatch.setenv("FERRY_APT_ETC", str(tmp_path / "etc"))
        monkeypatch.setattr(apt, "KEYRING", tmp_path / "no-keyring")
        # The mirror of this test signs nothing.
        settings = ("Acquire::AllowInsecureRepositories=true", "APT::Get::AllowUnauthenticated=true",
                    "Acquire::Retries=0", "Acquire::http::Proxy=false")
        monkeypatch.setattr(apt, "STRICT", [word for setting in settings for word in ("-o", setting)])
        yield made
        server.shutdown()


def test_the_mirror_comes_first(archive: Archive) -> None:
    archive.mirror_has("7.3.4-1")
    assert (source.obtain().path / "mm/migrate.c").is_file()


def test_a_version_that_the_mirror_lost_comes_from_the_archive_of_all(archive: Archive) -> None:
    archive.mirror_has("7.3.9-1")
    archive.archive_has(archive.deb)
    assert source.obtain().version == "7.3.4"


@pytest.mark.parametrize("kept", [True, False])
def test_the_package_is_kept_and_the_loss_of_the_source_needs_no_network(archive: Archive, kept: bool) -> None:
    archive.mirror_has("7.3.4-1")
    first = source.obtain()
    shutil.rmtree(first.path)
    shutil.rmtree(archive.root / "www/debian")
    deb = archive.root / "cache/downloads/linux-source-7.3_7.3.4-1.deb"
    if not kept:
        deb.write_bytes(deb.read_bytes()[:-1])
        with pytest.raises(InfraError, match="cannot be fetched"):
            source.obtain()
    else:
        assert source.obtain().key == first.key


def test_the_error_names_version_places_and_the_next_command_in_one_line(archive: Archive) -> None:
    archive.mirror_has("7.3.9-1")
    with pytest.raises(InfraError) as caught:
        source.obtain()
    assert "\n" not in caught.value.cause
    assert caught.value.cause.startswith("linux-source-7.3 7.3.4-1 cannot be fetched: trixie-backports of "
                                         f"{archive.address}/debian has this version no longer, but 7.3.9-1; "
                                         "apt could not fetch "
                                         f"{archive.address}/file/abc: ")
    assert "404" in caught.value.cause
    assert str(caught.value.hint).startswith("./ferry --source 7.3.9-1 series rebase, or "
                                             "./ferry source --source linux-source-7.3_7.3.4-1_all.deb")
    assert caught.value.log is not None and "404" in caught.value.log.read_text()
    assert not list((archive.root / "cache").glob("source/*"))


def test_another_file_under_the_address_is_refused(archive: Archive) -> None:
    archive.mirror_has("7.3.9-1")
    archive.archive_has(archive._package("7.3.9-1~other"))
    with pytest.raises(InfraError, match=r"file/abc: .*(Hash|hash|size)"):
        source.obtain()


def test_a_package_of_the_same_version_with_other_content_is_refused(archive: Archive) -> None:
    archive.mirror_has("7.3.4-1")
    (archive.root / "clone/kernel/base.toml").write_text(
        (archive.root / "clone/kernel/base.toml").read_text().replace(sha256(archive.deb), "1" * 64))
    with pytest.raises(InfraError, match=f"has the SHA-256 {sha256(archive.deb)}, not 1111"):
        source.obtain()


@pytest.mark.parametrize("form", ["package", "tarball"])
def test_a_file_given_once_stands_for_the_download(archive: Archive, monkeypatch: pytest.MonkeyPatch,
                                                    form: str) -> None:
    monkeypatch.setenv("FERRY_SOURCE", str(archive.deb if form == "package" else archive.tarball))
    given = source.obtain()
    monkeypatch.delenv("FERRY_SOURCE")
    assert source.obtain() == given


def test_only_a_version_that_the_series_supports_is_offered(archive: Archive) -> None:
    toml = archive.root / "clone/kernel/base.toml"
    toml.write_text(toml.read_text().replace('newest = "7.3.99"', 'newest = "7.3.8"'))
    archive.mirror_has("7.3.9-1")
    with pytest.raises(InfraError, match="has this version no longer; ") as caught:
        source.obtain()
    assert "rebase" not in str(caught.value.hint)


def test_another_version_of_the_package_is_fetched_by_its_number(archive: Archive,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    archive.mirror_has("7.3.9-1")
    monkeypatch.setenv("FERRY_SOURCE", "7.3.9-1")
    assert (source.obtain().path / "mm/migrate.c").is_file()
    assert (archive.root / "cache/downloads/linux-source-7.3_7.3.9-1.deb").is_file()
    monkeypatch.setenv("FERRY_SOURCE", "7.4.1-1")
    with pytest.raises(InfraError, match=r"linux-source-7\.4 7\.4\.1-1 cannot be fetched: .* has this version no"):
        source.obtain()


@pytest.mark.parametrize("changed", [False, True])
def test_another_base_is_a_tarball_of_the_mirror_by_its_hash(archive: Archive, monkeypatch: pytest.MonkeyPatch,
                                                             changed: bool) -> None:
    with (archive.root / "clone/kernel/base.toml").open("a") as toml:
        toml.write(f'[base.mainline]\nversion = "7.3.4"\nsha256 = "{sha256(archive.tarball)}"\n'
                   'also = ["pool/linux.orig.tar.xz"]\ndownload_bytes = 1\nunpacked_bytes = 1\n')
    (archive.root / "www/debian/pool").mkdir(parents=True)
    held = Path(shutil.copy(archive.tarball, archive.root / "www/debian/pool/linux.orig.tar.xz"))
    monkeypatch.setenv("FERRY_SOURCE", "mainline")
    if changed:
        held.write_bytes(held.read_bytes() + b"x")
        with pytest.raises(InfraError, match=r"linux\.orig\.tar\.xz cannot be fetched: .*(Hash|hash|size)"):
            source.obtain()
    else:
        named = source.obtain()
        monkeypatch.setenv("FERRY_SOURCE", str(archive.tarball))
        assert source.obtain() == named
