# SPDX-License-Identifier: GPL-2.0
"""Which QEMU a board with device models gets, and what becomes of a host that cannot have one."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tiny_kernel import make_clone, write

from ferry import boards, proc
from ferry.debian import apt, packages
from ferry.errors import AllSkipped, InfraError
from ferry.kernel.build import Kernel
from ferry.vm import boot, qemu

PACKAGES = ("libc6_2.deb", "qemu-system-x86_11.deb")
ABLE = "#!/bin/sh\necho 'vfio-user-pci options:'\n"
OLD = "#!/bin/sh\necho \"Device 'vfio-user-pci' not found\" >&2\n"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    make_clone(monkeypatch, tmp_path)
    return tmp_path / "cache"


def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str | None) -> Path:
    """The host's own QEMU, or none."""
    write(tmp_path / "bin", {packages.QEMU: script or ""})
    (tmp_path / "bin" / packages.QEMU).chmod(0o755 if script else 0o644)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(packages.shutil, "which",
                        lambda name: str(tmp_path / "bin" / name) if name != packages.QEMU or script else None)
    return tmp_path / "bin" / packages.QEMU


def pretend_debian(monkeypatch: pytest.MonkeyPatch, cache: Path, loader: str = ABLE) -> list[str]:
    """Packages that hold a loader, which is what runs; returns the log of fetches."""
    fetched: list[str] = []

    def download_all(package: str, suites: Sequence[str], *, hint: str) -> list[Path]:
        fetched.append(package)
        where = cache / "apt-qemu/archives"
        write(where, dict.fromkeys(PACKAGES, "package"))
        return [where / name for name in PACKAGES]

    def capture(command: Sequence[str | Path], **_: object) -> str:
        if command[0] != "dpkg-deb":
            return real(command)
        write(Path(command[3]) / "usr/lib64", {"ld-linux-x86-64.so.2": loader})
        (Path(command[3]) / "usr/lib64/ld-linux-x86-64.so.2").chmod(0o755)
        return ""

    real = proc.capture
    monkeypatch.setattr(apt, "download_all", download_all)
    monkeypatch.setattr(proc, "capture", capture)
    return fetched


def test_hosts_own_is_taken_when_it_can(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = installed(monkeypatch, tmp_path, ABLE)
    fetched = pretend_debian(monkeypatch, cache)
    assert packages.qemu_with_vfio_user() == own
    assert not fetched


@pytest.mark.parametrize("own", [OLD, None])
def test_else_it_is_fetched_once(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                 own: str | None) -> None:
    installed(monkeypatch, tmp_path, own)
    fetched = pretend_debian(monkeypatch, cache)
    found = packages.qemu_with_vfio_user()
    assert found == cache / "qemu" / packages.QEMU
    assert packages.qemu_with_vfio_user() == found
    assert fetched == ["qemu-system-x86"]
    assert not (cache / "apt-qemu/archives").exists()


def test_what_does_not_run_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed(monkeypatch, tmp_path, OLD)
    pretend_debian(monkeypatch, cache, loader=OLD)
    with pytest.raises(InfraError, match="does not run here"):
        packages.qemu_with_vfio_user()
    assert not (cache / "qemu").exists()


def test_wrapper_runs_what_lies_beside_it(tmp_path: Path) -> None:
    """By the packages' own loader, with their libraries, firmware and modules, wherever the cache was moved to."""
    home = tmp_path / "a cache"
    echo = '#!/bin/sh\necho "$QEMU_MODULE_DIR"\nprintf "%s\\n" "$@"\n'
    write(home / "unpacked/usr/lib64", {"ld-linux-x86-64.so.2": echo})
    (home / "unpacked/usr/lib64/ld-linux-x86-64.so.2").chmod(0o755)
    wrapper = packages.write_wrapper(home)
    said = subprocess.run([wrapper, "-append", "a b"], capture_output=True, text=True, check=True).stdout.splitlines()
    usr = f"{home}/unpacked/usr"
    libraries = f"{usr}/lib/x86_64-linux-gnu"
    assert said == [f"{libraries}/qemu", "--library-path", libraries, f"{usr}/bin/qemu-system-x86_64",
                    "-L", f"{usr}/share/qemu", "-L", f"{usr}/share/seabios", "-append", "a b"]


def test_host_that_cannot_have_it_skips_the_board(cache: Path, monkeypatch: pytest.MonkeyPatch,
                                                  tmp_path: Path) -> None:
    installed(monkeypatch, tmp_path, OLD)

    def unreachable(*_: object, **__: object) -> list[Path]:
        raise InfraError("apt could not fetch qemu-system-x86: no route to host")

    monkeypatch.setattr(apt, "download_all", unreachable)
    assert boards.unavailable(boards.load("x86-numa")) is None
    board = boards.load("x86-ptdma")
    assert "no route to host" in str(boards.unavailable(board))
    kernel = Kernel(Path("/k/bzImage"), {}, Path("/k/config"), "key", Path("/k/log"), "7.3.4", Path("/t"))
    with pytest.raises(AllSkipped, match=r"x86-ptdma.*no route to host") as caught:
        boot.boot(board, kernel, "true", timeout_s=5, share=tmp_path / "share")
    assert caught.value.status == 4


def test_boot_names_the_program_to_virtme(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = installed(monkeypatch, tmp_path, ABLE)
    kernel = Kernel(Path("/k/bzImage"), {}, Path("/k/config"), "key", Path("/k/log"), "7.3.4", Path("/t"))
    line = qemu.command_line(boards.load("x86-ptdma"), kernel, tmp_path, (), "script")
    assert line[line.index("--qemu") + 1] == own
    assert "--qemu" not in qemu.command_line(boards.load("x86-numa"), kernel, tmp_path, (), "script")


def pretend_apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, says: str = "",
                leaves: str = "") -> list[list[str]]:
    """An apt-get that says `says` and leaves that package; returns the commands."""
    commands: list[list[str]] = []

    def run(command: Sequence[str], *, cwd: Path, **_: object) -> proc.Result:
        commands.append([str(word) for word in command])
        if leaves:
            write(cwd / "archives", {leaves: "package"})
        return proc.Result(100 if says else 0, 0.1, (says,), None)

    write(tmp_path / "etc", {"sources.list": "deb http://one.example/debian bookworm main\n"})
    monkeypatch.setenv("FERRY_APT_ETC", str(tmp_path / "etc"))
    monkeypatch.setattr(apt.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(proc, "run", run)
    return commands


def test_apt_sees_a_machine_with_nothing_on_it(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So that it fetches the libraries too, and touches none of the system's state."""
    commands = pretend_apt(monkeypatch, tmp_path, leaves="a_1.deb")
    state = cache / "apt-a"
    assert apt.download_all("a", ["stable", "newer"], hint="") == [state / "archives/a_1.deb"]
    assert (state / "status").read_text() == ""
    assert [line.split()[-2] for line in (state / "sources.list").read_text().splitlines()] == ["stable", "newer"]
    update, install = commands
    assert "update" in update
    assert install[-2:] == ["newer", "a"]
    assert "--download-only" in install
    for setting in ("Dir::State::status", "Dir::State::Lists", "Dir::Cache::archives"):
        assert any(word.startswith(f"{setting}={state}") for word in install), setting


@pytest.mark.parametrize(("says", "reason"), [
    ("E: Unable to locate package a", "Unable to locate"),
    ("", "left no file"),
])
def test_apt_that_fails_says_why(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str,
                                 reason: str) -> None:
    pretend_apt(monkeypatch, tmp_path, says=says)
    with pytest.raises(InfraError, match=reason):
        apt.download_all("a", ["stable"], hint="")


@pytest.mark.parametrize("directory", ["sbin", "usr/sbin", "usr/bin"])
def test_an_unpacked_program_is_found_where_its_release_has_it(tmp_path: Path, directory: str) -> None:
    for name in ("lib/ld-linux-x86-64.so.2", "usr/lib/libzstd.so.1", f"{directory}/mkfs.btrfs"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert packages.run_unpacked(tmp_path, "mkfs.btrfs") == [
        f"{tmp_path}/lib/ld-linux-x86-64.so.2", "--library-path", f"{tmp_path}/lib:{tmp_path}/usr/lib",
        f"{tmp_path}/{directory}/mkfs.btrfs"]
    with pytest.raises(InfraError, match=r"has no mkfs\.xfs"):
        packages.run_unpacked(tmp_path, "mkfs.xfs")
