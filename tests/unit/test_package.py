# SPDX-License-Identifier: GPL-2.0
"""Packages: names and versions in Debian's order, what is refused before a build, the tool without its clone."""

from __future__ import annotations

import argparse
import gzip
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_kernel import make_clone, make_source, make_tree, write

from ferry import __version__, boards, paths, progress
from ferry.commands import package
from ferry.errors import InfraError, UsageError
from ferry.kernel import build, config
from ferry.package import archive, configurations, kernel, naming, tool
from ferry.series.source import Source

DEBIANS = "0123456789abcdef"
DEB = f"{tool.NAME}_{__version__}_amd64.deb"


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    made = make_clone(monkeypatch, tmp_path)
    names = {name for each in configurations.ALL.values() for name in each.fragments}
    names |= {*boards.load("x86-numa").configs, "ferry"}
    write(made / "kernel/configs", {f"{name}.config": "CONFIG_NUMA=y\n" for name in names})
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1764000000")
    return made


@pytest.fixture
def base(tmp_path: Path) -> Source:
    return make_source(make_tree(tmp_path / "linux"))


def older(one: str, other: str) -> bool:
    return subprocess.run(["dpkg", "--compare-versions", one, "lt", other], check=False).returncode == 0


def test_our_version_sorts_after_debians_and_before_the_next(clone: Path, base: Source) -> None:
    ours = naming.kernel_version(base)
    assert ours.startswith("7.3.4-1+ferry")
    assert older("7.3.4-1", ours)
    assert not older(ours, "7.3.4-1")
    for following in ("7.3.4-2", "7.3.5-1~bpo13+1", "7.3.5-1"):
        assert older(ours, following)


@pytest.mark.parametrize(("debians", "following"), [
    ("7.3.4-1~bpo13+1", "7.3.4-1~bpo13+2"), ("7.3.4-1~bpo13+1", "7.3.4-1"), ("7.3.4-1", "7.3.4-1+b1.1"),
])
def test_a_backports_version_has_room_for_ours(clone: Path, base: Source, monkeypatch: pytest.MonkeyPatch,
                                               debians: str, following: str) -> None:
    toml = clone / "kernel/base.toml"
    toml.write_text(toml.read_text().replace('version = "7.3.4-1"', f'version = "{debians}"'))
    ours = naming.kernel_version(base)
    assert older(debians, ours)
    assert older(ours, following) == (following != "7.3.4-1+b1.1")


def test_another_source_has_a_version_of_its_own(clone: Path, tmp_path: Path) -> None:
    assert naming.kernel_version(Source(tmp_path, "7.3.6", "ff")).startswith("7.3.6-1+ferry")
    candidate = naming.kernel_version(Source(tmp_path, "7.3.0-rc2", "ff"))
    assert older(candidate, "7.3.0-1")


def test_the_boot_menu_has_our_kernel_above_debians_of_the_same_version(clone: Path, base: Source) -> None:
    """GRUB's scripts sort by `sort -V`."""
    names = ["7.3.5+deb13-amd64", naming.release(base, "board"), "7.3.4+deb13-cloud-amd64", "7.3.4+deb13-amd64"]
    done = subprocess.run(["sort", "-V"], input="\n".join(names), capture_output=True, text=True, check=True)
    assert done.stdout.split()[2:] == ["7.3.4-ferry-board", "7.3.5+deb13-amd64"]


def test_configurations_have_different_releases_so_that_both_can_be_installed(base: Source) -> None:
    assert len({naming.release(base, name) for name in configurations.ALL}) == len(configurations.ALL)


def test_the_date_is_the_commits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setattr(paths, "repo_root", lambda: tmp_path)
    with pytest.raises(UsageError, match="no date") as caught:
        naming.epoch()
    assert "SOURCE_DATE_EPOCH=" in str(caught.value.hint)
    author = {f"GIT_{kind}_{key}": value for kind in ("AUTHOR", "COMMITTER")
              for key, value in (("NAME", "a"), ("EMAIL", "a@example.org"), ("DATE", "1764000000 +0300"))}
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, env={**os.environ, **author}, check=True)
    assert naming.epoch() == 1764000000
    assert naming.changelog_date(naming.epoch()) == "Mon, 24 Nov 2025 16:00:00 +0000"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(UsageError, match="yesterday"):
        naming.epoch()


def pretend_make(monkeypatch: pytest.MonkeyPatch, base: Source, calls: list[dict[str, str]]) -> None:
    """A make that leaves the packages of bindeb-pkg beside the object directory."""
    def make(where: Path, objects: Path, arch: str, targets: tuple[str, ...], log: Path, stage: progress.Stage,
             steps: int, *, env: dict[str, str], timeout_s: float) -> None:
        calls.append(env | {"targets": " ".join(targets)})
        write(objects.parent, {"linux-image-x.deb": "image", "linux-headers-x.deb": "headers"})
        write(objects, {"build.log": ""})

    def configure(tree: Path, objects: Path, arch: str, files: list[Path], *, start: Path | None,
                  variables: tuple[str, ...]) -> Path:
        assert variables == ("RUSTC=/nonexistent", "PAHOLE=/nonexistent")
        write(objects, {".config": start.read_text() if start else "tiny"})
        return objects / ".config"

    monkeypatch.setattr(kernel.source, "obtain", lambda: base)
    monkeypatch.setattr(configurations, "debians", lambda flavour: flavour.encode())
    monkeypatch.setattr(config, "configure", configure)
    monkeypatch.setattr(build, "make", make)
    monkeypatch.setattr(kernel, "need_tools", lambda: None)
    monkeypatch.setattr(archive, "rewrite", lambda deb, seconds: calls[-1].update({deb.name: str(seconds)}))


def test_a_second_call_builds_nothing_and_a_changed_option_does(clone: Path, base: Source,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, str]] = []
    pretend_make(monkeypatch, base, calls)
    cloud = configurations.ALL["cloud"]
    made = kernel.build_packages(cloud)
    assert [path.name for path in made] == ["linux-headers-x.deb", "linux-image-x.deb"]
    assert kernel.build_packages(cloud) == made
    assert len(calls) == 1
    assert (made[0].parent / "config").read_text() == "cloud-amd64"
    write(clone / "kernel/configs", {"package.config": "CONFIG_X=y\n"})
    assert kernel.build_packages(cloud) != made
    assert len(calls) == 2


def test_packages_are_not_published_under_the_key_of_other_sources(clone: Path, base: Source,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """The clone changes while another process has the lock, and then while make runs."""
    pretend_make(monkeypatch, base, [])
    keys = iter(["before", "locked", "after"])
    monkeypatch.setattr(kernel, "_key", lambda *arguments: next(keys))
    with pytest.raises(InfraError, match="were changed while"):
        kernel.build_packages(configurations.ALL["board"])
    assert not list((paths.cache_dir() / "packages").glob("*"))
    keys = iter(["before", "locked", "locked"])
    (*_, made) = kernel.build_packages(configurations.ALL["board"])
    assert made.parent.name == "locked"


def test_nothing_of_the_build_goes_into_the_packages(clone: Path, base: Source,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """Time, time zone and threads are fixed; libc's headers, which would replace Debian's, are not built.

    Nor do the packages depend on a compiler for Rust or on pahole, which another machine may not have.
    """
    calls: list[dict[str, str]] = []
    pretend_make(monkeypatch, base, calls)
    kernel.build_packages(configurations.ALL["board"])
    (env,) = calls
    assert env["SOURCE_DATE_EPOCH"] == "1764000000" and env["KBUILD_BUILD_TIMESTAMP"] == "2025-11-24"
    assert (env["TZ"], env["DPKG_DEB_THREADS_MAX"]) == ("UTC", "1")
    assert env["KDEB_PKGVERSION"] == naming.kernel_version(base)
    assert "-Tbinary-image,binary-headers" in env["DPKG_FLAGS"]
    assert "LOCALVERSION=-ferry-board" in env["targets"] and "RUSTC=/nonexistent" in env["targets"]
    assert env["linux-image-x.deb"] == env["linux-headers-x.deb"] == "1764000000"


def test_a_rewritten_package_has_one_time_and_the_same_files(tmp_path: Path) -> None:
    """Also of links, and of files that are older; the checksums that dpkg keeps stay right."""
    for name, seconds in (("a", 1_500_000_000), ("b", 1_800_000_000)):
        write(tmp_path / name, {"DEBIAN/control": "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\n"
                                                  "Description: x\n", "usr/share/x/file": "text"})
        (tmp_path / name / "usr/share/x/link").symlink_to("/nowhere")
        os.utime(tmp_path / name / "usr/share/x/file", (seconds, seconds))
        subprocess.run(["dpkg-deb", "-b", tmp_path / name, tmp_path / f"{name}.deb"], check=True, capture_output=True)
    one, other = tmp_path / "a.deb", tmp_path / "b.deb"
    assert one.read_bytes() != other.read_bytes()
    for deb in (one, other):
        archive.rewrite(deb, 1_764_000_000)
    assert one.read_bytes() == other.read_bytes()
    listed = subprocess.run(["dpkg-deb", "-c", one], capture_output=True, text=True, check=True,
                            env={**os.environ, "TZ": "UTC"}).stdout
    assert listed.count("2025-11-24 16:00") == len(listed.splitlines()) and "link -> /nowhere" in listed


def test_the_hook_replaces_the_date_that_mkdebian_wrote(tmp_path: Path) -> None:
    """As the kernel's Makefile passes it: it strips blanks."""
    written = "x (1) unstable; urgency=low\n\n -- A <a@b.c>  Wed, 25 Nov 2026 23:00:00 +0100\n"
    write(tmp_path, {"debian/changelog": written})
    write(tmp_path, {"Makefile": "all:\n\t@set -- $(strip $(DPKG_FLAGS)); "
                                 "eval \"$${3#--hook-init=}\"\n"})
    subprocess.run(["make", "-s"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "DPKG_FLAGS": kernel._dpkg_flags(1764000000)})
    last = (tmp_path / "debian/changelog").read_text().splitlines()[-1]
    assert last == " -- A <a@b.c>  Mon, 24 Nov 2025 16:00:00 +0000"


def test_missing_tools_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel.shutil, "which", lambda name: None if name == "dh_builddeb" else "/usr/bin/x")
    with pytest.raises(InfraError, match="missing here: debhelper;") as caught:
        kernel.need_tools()
    assert caught.value.status == 3 and "apt-get install debhelper" in str(caught.value.hint)


def test_a_directory_that_cannot_be_written_is_refused_before_the_build(tmp_path: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "build_packages", lambda configuration: pytest.fail("it was built"))
    write(tmp_path, {"file": ""})
    with pytest.raises(UsageError, match="file") as caught:
        package.run(argparse.Namespace(out=tmp_path / "file", config="board"))
    assert caught.value.status == 2


def test_debians_configuration_comes_from_its_package(clone: Path, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    root, deb = tmp_path / "root", tmp_path / "c.deb"
    write(root, {"DEBIAN/control": "Package: c\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: c\n",
                 "usr/src/linux-config-7.3/config.amd64_none_amd64": "CONFIG_X=y\n"})
    subprocess.run(["xz", root / "usr/src/linux-config-7.3/config.amd64_none_amd64"], check=True)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, deb], check=True, stdout=subprocess.DEVNULL)
    toml = clone / "kernel/base.toml"
    toml.write_text(toml.read_text() + '[debian.config]\npackage = "c"\n')
    monkeypatch.setattr(configurations.apt, "download", lambda table: deb)
    assert configurations.debians("amd64") == b"CONFIG_X=y\n"
    with pytest.raises(InfraError, match="no configuration cloud-amd64"):
        configurations.debians("cloud-amd64")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The package folio-ferry made twice, with a made-up guest program, older than the commit and newer."""
    home = tmp_path_factory.mktemp("package")
    write(home, {"movebench": "#!/bin/sh\n", "ferry_thp": "#!/bin/sh\n",
                 **{f"kunit/{name}": "" for name in tool.kunit_tool.FILES}})
    (home / "movebench").chmod(0o775)
    (home / "ferry_thp").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FERRY_CACHE", str(home / "cache"))
        patch.setenv("SOURCE_DATE_EPOCH", "1764000000")
        patch.setattr(tool.guest_programs, "programs", lambda static: {"movebench": home / "movebench"})
        patch.setattr(tool.kunit_tool, "directory", lambda: home / "kunit")
        patch.setattr(tool.series_selftests, "programs", lambda into, arch, names, static: [home / "ferry_thp"])
        for name, seconds in (("one", 1_500_000_000), ("two", 1_800_000_000)):
            (home / name).mkdir()
            os.utime(home / "movebench", (seconds, seconds))
            tool.build_package(home / name)
        return home / f"one/{DEB}", home / f"two/{DEB}"


@pytest.fixture
def unpacked(made: tuple[Path, Path], tmp_path: Path) -> Path:
    subprocess.run(["dpkg-deb", "-x", made[0], tmp_path / "root"], check=True)
    return tmp_path / "root"


def test_the_tools_package_has_the_same_bytes_again(made: tuple[Path, Path]) -> None:
    assert made[0].read_bytes() == made[1].read_bytes()


def test_the_tools_package_holds_what_runs_without_the_clone(unpacked: Path) -> None:
    assert stat.S_IMODE((unpacked / "usr/libexec/folio-ferry/movebench").stat().st_mode) == 0o755
    assert stat.S_IMODE((unpacked / "usr/libexec/folio-ferry/selftests/ferry_thp").stat().st_mode) == 0o755
    assert stat.S_IMODE((unpacked / "usr/bin/ferry").stat().st_mode) == 0o755
    copied = (unpacked / "usr/libexec/folio-ferry/kunit").iterdir()
    assert sorted(path.name for path in copied) == list(tool.kunit_tool.FILES)
    assert b"ferry" in gzip.decompress((unpacked / "usr/share/man/man1/ferry.1.gz").read_bytes())
    assert "_ferry" in (unpacked / "usr/share/bash-completion/completions/ferry").read_text()
    assert not list(unpacked.rglob("*.pyc"))
    clone = str(paths.repo_root()).encode()
    assert not [path for path in unpacked.rglob("*") if path.is_file() and clone in path.read_bytes()]


@pytest.mark.parametrize("runs", [True, False])
def test_a_removal_disables_the_unit_also_where_systemd_does_not_run(made: tuple[Path, Path], tmp_path: Path,
                                                                     runs: bool) -> None:
    """In a chroot `systemctl disable` removes the link, and there is nothing to reload."""
    control, called = tmp_path / "control", tmp_path / "called"
    subprocess.run(["dpkg-deb", "-e", made[0], control], check=True)
    write(tmp_path, {"bin/systemctl": f'#!/bin/sh\necho "$@" >>{called}\nexit 1\n', "system/x": ""})
    (tmp_path / "bin/systemctl").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    for script, action in (("prerm", "upgrade"), ("prerm", "remove"), ("postrm", "remove")):
        text = (control / script).read_text().replace("/run/systemd/system", str(tmp_path / "system") * runs or "/none")
        subprocess.run(["sh", "-c", text, script, action], env=env, check=True)
    assert called.read_text().splitlines() == [f"disable {tool.SERVICE}", *(["daemon-reload"] if runs else [])]
    assert stat.S_IMODE((control / "postrm").stat().st_mode) == 0o755


def test_a_file_that_git_does_not_list_is_not_packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"clone/{name}": "" for name in (
        "src/ferry/a.py", "src/ferry/draft.py", "docs/x/é.md", "docs/draft.md", "guest/scripts/draft.sh",
        "packaging/systemd/draft.service", "COPYING")})
    clone = tmp_path / "clone"
    monkeypatch.setattr(paths, "repo_root", lambda: clone)
    monkeypatch.setattr(tool.kunit_tool, "directory", lambda: clone)
    monkeypatch.setattr(tool.kunit_tool, "FILES", ())
    tool._add_files(tmp_path / "all", {}, [])
    assert len([path for path in (tmp_path / "all").rglob("*") if path.is_file()]) == 7
    for words in (["init", "-q"], ["add", "src/ferry/a.py", "docs/x/é.md"]):
        subprocess.run(["git", *words], cwd=clone, check=True)
    tool._add_files(tmp_path / "listed", {}, [])
    assert sorted(path.name for path in (tmp_path / "listed").rglob("*") if path.is_file()) == [
        "a.py", "copyright", "é.md"]


def test_an_installed_tool_reads_test_output_by_its_own_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "in_clone", lambda: False)
    assert tool.kunit_tool.directory() == Path("/") / tool.PROGRAMS / tool.kunit_tool.INSTALLED


def installed(unpacked: Path, tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The unpacked tool, without a program to install packages with."""
    env = {**os.environ, "PYTHONPATH": str(unpacked / tool.LIBRARY), "FERRY_CACHE": str(tmp_path / "cache"),
           "PATH": str(tmp_path)}
    return subprocess.run([sys.executable, "-BP", "-m", "ferry", *words], env=env, capture_output=True, text=True,
                          cwd=tmp_path, check=False)


@pytest.mark.parametrize("verb", ["config", "setup"])
def test_an_installed_tool_says_that_building_needs_a_clone(unpacked: Path, tmp_path: Path, verb: str) -> None:
    done = installed(unpacked, tmp_path, verb)
    assert done.returncode == 3
    assert "not a clone of Folio Ferry" in done.stderr and "Traceback" not in done.stderr


def test_an_installed_doctor_looks_at_the_machine_itself(unpacked: Path, tmp_path: Path) -> None:
    done, local = (installed(unpacked, tmp_path, "doctor", *words) for words in ([], ["--board", "local"]))
    assert (done.returncode, done.stderr) == (local.returncode, local.stderr)
    assert "ferry_mtcopy" in done.stdout and "virtme-ng" not in done.stdout
