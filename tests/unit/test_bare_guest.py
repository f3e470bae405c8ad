# SPDX-License-Identifier: GPL-2.0
"""A guest without the host's files: what goes in, what comes back, and what becomes of an answer that is cut short."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from ferry import boards, cache, paths, proc
from ferry.errors import AllSkipped, InfraError, Splat, UsageError
from ferry.kernel.build import Kernel
from ferry.vm import boot, initramfs

STAMP = "[    1.234567] "


def entries(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """Mode and content by name, read by the rules of the kernel's initramfs/buffer-format."""
    found: dict[str, tuple[int, bytes]] = {}
    at = 0
    while at < len(archive):
        assert archive[at:at + 6] == b"070701" and at % 4 == 0
        numbers = [int(archive[at + 6 + 8 * field:at + 14 + 8 * field], 16) for field in range(13)]
        mode, size, name_size = numbers[1], numbers[6], numbers[11]
        name = archive[at + 110:at + 110 + name_size - 1].decode()
        start = at + (110 + name_size + 3) // 4 * 4
        assert numbers[5] == 0
        found[name] = (mode, archive[start:start + size])
        at = start + (size + 3) // 4 * 4
    return found


def test_parents_come_first_and_once() -> None:
    out = io.BytesIO()
    archive = initramfs.Writer(out)
    archive.file("/a/b/one", b"1", 0o755)
    archive.file("/a/b/two", b"22222")
    archive.character_device("/dev/console", 5, 1)
    archive.close()
    found = entries(out.getvalue())
    assert list(found) == ["a", "a/b", "a/b/one", "a/b/two", "dev", "dev/console", "TRAILER!!!"]
    assert found["a/b/one"] == (0o100755, b"1")
    assert out.getvalue().count(b"a/b\0") == 1


@pytest.mark.skipif(not shutil.which("cpio"), reason="cpio is not installed")
def test_cpio_reads_the_archive(tmp_path: Path) -> None:
    with (tmp_path / "archive").open("wb") as out:
        archive = initramfs.Writer(out)
        archive.file("/deep/down/file", b"content")
        archive.close()
    with (tmp_path / "archive").open("rb") as packed:
        subprocess.run(["cpio", "-idm", "--quiet"], stdin=packed, cwd=tmp_path, check=True)
    assert (tmp_path / "deep/down/file").read_bytes() == b"content"
    assert (tmp_path / "deep/down/file").stat().st_mtime == 0


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    module = tmp_path / "kernels/modules/ferry_mtcopy.ko"
    module.parent.mkdir(parents=True)
    module.write_text("module")
    return Kernel(Path("/k/Image"), {"ferry_mtcopy": module}, Path("/k/config"), "key", Path("/k/log"), "7.3.4",
                  Path("/t"))


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A busybox and a guest program out of nothing."""
    (tmp_path / "debian/bin").mkdir(parents=True)
    (tmp_path / "debian/bin/busybox").write_text("busybox")
    program = tmp_path / "programs/movebench"
    program.parent.mkdir()
    program.write_text("program")
    program.chmod(0o755)
    monkeypatch.setattr(initramfs.packages, "unpacked", lambda package, arch: tmp_path / "debian")
    monkeypatch.setattr(initramfs.guest_programs, "programs", lambda arch: {"movebench": program})


@pytest.fixture
def share(tmp_path: Path) -> Path:
    made = tmp_path / "the share"
    (made / "below").mkdir(parents=True)
    (made / "below/sweep.sh").write_text("echo hello\n")
    (made / "console.log").write_text("what an earlier guest said")
    return made


def pack(target: Path, kernel: Kernel, share: Path, *carry: Path) -> dict[str, tuple[int, bytes]]:
    initramfs.write_initramfs(target, boards.load("zcu102"), kernel, share, ".ferry-command", carry)
    return entries(target.read_bytes())


def test_everything_lies_where_it_lies_here(tmp_path: Path, kernel: Kernel, packages: None, share: Path) -> None:
    found = pack(tmp_path / "initramfs", kernel, share)
    for path in (kernel.modules["ferry_mtcopy"], tmp_path / "programs/movebench", share / "below/sweep.sh",
                 initramfs.paths.repo_root() / "guest/scripts/with-disk.sh"):
        assert found[str(path).strip("/")][1] == path.read_bytes()
    assert found[str(tmp_path / "programs/movebench").strip("/")][0] == 0o100755
    assert found["bin/busybox"] == (0o100755, b"busybox")
    assert f"sh '{share}'/.ferry-command".encode() in found["init"][1]
    assert "the share/console.log" not in " ".join(found)


def test_too_much_is_said_before_it_is_packed(tmp_path: Path, kernel: Kernel, packages: None, share: Path) -> None:
    with (share / "large").open("wb") as out:
        out.truncate(initramfs.LARGEST_BYTES)
    with pytest.raises(UsageError, match="256 MiB"):
        pack(tmp_path / "initramfs", kernel, share)
    assert not (tmp_path / "initramfs").exists()


def test_a_share_that_a_mount_would_cover_is_refused(tmp_path: Path, kernel: Kernel, packages: None) -> None:
    with pytest.raises(UsageError, match="/dev/shm/share"):
        pack(tmp_path / "initramfs", kernel, Path("/dev/shm/share"))


def test_init_sends_what_is_newer_than_what_was_packed(tmp_path: Path, share: Path) -> None:
    """The lines of init that pick and pack, run by this machine's own tools."""
    for path in (*share.rglob("*"), share):
        os.utime(path, (0, 0))
    begun = tmp_path / "begun"
    begun.touch()
    os.utime(begun, (1, 1))
    (share / "new").write_text("x")
    (share / "below/sweep.sh").write_text("changed")
    (share / "link").symlink_to("new")
    lines = "\n".join(line for line in initramfs._INIT.splitlines() if line.startswith(("find", "tar")))
    lines = lines.format(line=tmp_path / "answer").replace("/tmp/.ferry-begun", str(begun))
    subprocess.run(["sh", "-c", lines], cwd=share, check=True)
    back = tmp_path / "back"
    back.mkdir()
    assert initramfs.unpack(tmp_path / "answer", back) == ""
    assert {str(path.relative_to(back)) for path in back.rglob("*") if path.is_file()} == {"new", "below/sweep.sh"}


def answer(files: dict[str, str], *, links: dict[str, str] | None = None) -> bytes:
    """What a guest that wrote these sends."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return gzip.compress(out.getvalue())


def test_files_come_back(tmp_path: Path, share: Path) -> None:
    (tmp_path / "answer").write_bytes(answer({"./.ferry-status": "0\n", "./below/out": "text", "./new/deep": "more"}))
    assert initramfs.unpack(tmp_path / "answer", share) == ""
    assert (share / ".ferry-status").read_text() == "0\n"
    assert (share / "below/out").read_text() == "text" and (share / "new/deep").read_text() == "more"
    assert (share / "below/sweep.sh").is_file()
    assert not list(share.glob(".ferry-answer-*"))


@pytest.mark.parametrize("spoil", [
    pytest.param(lambda data: data[:-1], id="its last byte"),
    pytest.param(lambda data: data[:-9], id="its checksum"),
    pytest.param(lambda data: data[: len(data) // 2], id="its second half"),
    pytest.param(lambda data: data[:3], id="almost all"),
    pytest.param(lambda data: data[:-8] + b"\0" * 8, id="a wrong checksum"),
    pytest.param(lambda data: b"Kernel panic" + data, id="something before it"),
])
def test_an_answer_cut_short_is_none(tmp_path: Path, share: Path, spoil: object) -> None:
    assert callable(spoil)
    before = sorted(share.rglob("*"))
    (tmp_path / "answer").write_bytes(spoil(answer({".ferry-status": "0\n", "out": os.urandom(4000).hex()})))
    assert "cut short" in initramfs.unpack(tmp_path / "answer", share)
    assert sorted(share.rglob("*")) == before


@pytest.mark.parametrize(("files", "links"), [
    ({"../outside": "x"}, {}), ({"/etc/outside": "x"}, {}), ({}, {"link": "/etc/passwd"}),
])
def test_nothing_is_written_outside_of_the_share(tmp_path: Path, share: Path, files: dict[str, str],
                                                 links: dict[str, str]) -> None:
    (tmp_path / "answer").write_bytes(answer(files, links=links))
    assert "it holds" in initramfs.unpack(tmp_path / "answer", share)
    assert not (tmp_path / "outside").exists() and not (share / "link").is_symlink()


def test_no_answer_is_said(tmp_path: Path, share: Path) -> None:
    assert "sent no results" in initramfs.unpack(tmp_path / "answer", share)
    (tmp_path / "answer").touch()
    assert "sent no results" in initramfs.unpack(tmp_path / "answer", share)


def test_a_running_guests_files_are_in_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernel: Kernel,
                                           packages: None, share: Path) -> None:
    """`ferry cache prune` leaves them."""
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(initramfs.devicetree, "compile_to", lambda board, out: None)
    with initramfs.prepared(boards.load("zcu102"), kernel, share, ".ferry-command", (), ()) as guest:
        (entry,) = [one for one in cache.entries() if one.kind == "boots"]
        assert guest.answer.parent == entry.path and not cache.remove(entry)
    assert not entry.path.exists() and entry.path not in paths._used


def boot_with(monkeypatch: pytest.MonkeyPatch, kernel: Kernel, share: Path, console: str,
              sent: bytes) -> boot.BootResult:
    """Boot a guest that says `console` and sends `sent`."""
    def run(line: list[str | Path], *, log: Path, **_: object) -> proc.Result:
        target = next(word for word in map(str, line) if word.startswith("file:"))
        log.write_text(console)
        Path(target.removeprefix("file:")).write_bytes(sent)
        return proc.Result(0, 1.0, (), log)

    monkeypatch.setenv("FERRY_CACHE", str(share.parent / "cache"))
    monkeypatch.setattr(proc, "run", run)
    monkeypatch.setattr(initramfs.devicetree, "compile_to", lambda board, out: None)
    monkeypatch.setattr(initramfs.shutil, "which", lambda name, path="": f"/usr/bin/{name}")
    return boot.boot(boards.load("zcu102"), kernel, "true", timeout_s=5, share=share)


def test_boots_contract_holds(monkeypatch: pytest.MonkeyPatch, kernel: Kernel, packages: None, share: Path) -> None:
    result = boot_with(monkeypatch, kernel, share, f"{STAMP}hello\n", answer({".ferry-status": "7\n", "out": "here"}))
    assert result.status == 7
    assert (share / "out").read_text() == "here" and "hello" in (share / "console.log").read_text()
    assert not list((share.parent / "cache/boots").iterdir())


def test_a_guest_that_dies_leaves_no_status(monkeypatch: pytest.MonkeyPatch, kernel: Kernel, packages: None,
                                            share: Path) -> None:
    (share / ".ferry-status").write_text("0\n")  # of an earlier boot with the same share
    with pytest.raises(InfraError, match=r"sent no results.*half a wo"):
        boot_with(monkeypatch, kernel, share, f"{STAMP}half a wo", b"")
    whole = answer({".ferry-status": "0\n"})
    with pytest.raises(InfraError, match="cut short"):
        boot_with(monkeypatch, kernel, share, "", whole[:-4])
    with pytest.raises(Splat):
        boot_with(monkeypatch, kernel, share, f"{STAMP}Kernel panic - not syncing: x", whole[:-4])


def test_a_board_that_cannot_be_here_is_a_skip_with_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    board = boards.load("zcu102")
    monkeypatch.setattr(boards.shutil, "which", lambda name, path="": None if name == "dtc" else f"/usr/bin/{name}")
    assert boards.unavailable(board) == "dtc not installed"
    with pytest.raises(AllSkipped, match="zcu102 cannot run here: dtc not installed") as caught:
        boards.require(board)
    assert caught.value.status == 4
    monkeypatch.setattr(boards.shutil, "which", lambda name, path="": f"/usr/bin/{name}")
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FERRY_APT_ETC", str(tmp_path / "no-apt"))
    assert "no Debian mirror" in str(boards.unavailable(board))
    monkeypatch.setattr(boards.packages, "unpacked", lambda package, arch: tmp_path)
    assert boards.unavailable(board) is None


def test_boards_that_need_nothing_special_are_never_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards.shutil, "which", lambda name, path="": None)
    for name in ("uml", "x86-numa", "x86-icount"):
        assert boards.unavailable(boards.load(name)) is None
