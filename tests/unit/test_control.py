# SPDX-License-Identifier: GPL-2.0
"""`ferry ctl`: values shown, settings written all or none, saved and restored, without third-party packages."""

from __future__ import annotations

import argparse
import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import migration_tree
import pytest

from ferry import paths
from ferry.commands import cli, completion
from ferry.control import settings, tree
from ferry.control.settings import Setting
from ferry.control.tree import Choice, File
from ferry.errors import FerryError, UsageError

Writes = list[tuple[str, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return migration_tree.make(tmp_path / "migration")


@pytest.fixture
def writes(root: Path, monkeypatch: pytest.MonkeyPatch) -> Writes:
    """The kernel's answer to each write, and what was accepted."""
    accepted: Writes = []

    def write(path: Path, text: str) -> None:
        name = path.relative_to(root).as_posix()
        migration_tree.store(root, name, text)
        accepted.append((name, text))

    monkeypatch.setattr(tree, "write", write)
    return accepted


def content(root: Path) -> dict[str, str]:
    return {file.name: file.setting for file in tree.files(root) if file.text is not None}


def ctl(root: Path, action: str, *words: str) -> int:
    return cli.main(["ctl", action, *words, "--root", str(root)])


@pytest.mark.parametrize(("text", "value", "setting"), [
    ("[off] kernel mtcopy", Choice("off", ("off", "kernel", "mtcopy")), "off"),
    ("inherit off [kernel]", Choice("kernel", ("inherit", "off", "kernel")), "kernel"),
    ("4096", 4096, "4096"), ("-3", -3, "-3"), ("dma0 dma1", "dma0 dma1", "dma0 dma1"), ("", "", ""),
])
def test_a_value_is_a_number_a_choice_or_text(text: str, value: object, setting: str) -> None:
    file = File("x", text, True)
    assert (file.value, file.setting) == (value, setting)


def test_json_nests_directories_and_has_numbers_and_choices(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ctl(root, "show", "reasons/damon", "mig", "--format", "json") == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert set(files) == {"migrator", "migrc", "reasons"} and list(files["reasons"]) == ["damon"]
    assert files["migrator"] == {"value": "off", "choices": ["off", "kernel", "mtcopy", "dcbm", "auto"]}
    assert files["reasons"]["damon"]["max_bytes_per_s"] == 0 and files["migrc"]["counters"]["ptes"] == 0
    assert "drain" not in files["migrc"]


def test_the_table_has_every_readable_file(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ctl(root, "show") == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert set(shown) == set(migration_tree.SETTINGS) | set(migration_tree.ZEROES)
    assert shown["mtcopy/nontemporal"] == "never always [auto]"


def test_a_file_that_vanishes_is_left_out(root: Path) -> None:
    (root / "dcbm/gone").symlink_to(root / "unloaded")
    assert "dcbm/gone" not in content(root) and "dcbm/channels" in content(root)


@pytest.mark.parametrize(("words", "status", "said"), [
    (["show", "nothing"], 2, "begins with nothing"),
    (["set", "migrator"], 2, "'migrator' is not NAME=VALUE"),
    (["set", "runs=1", "reasons/demotoin/migrator=off"], 2, "next: reasons/demotion/migrator=off"),
    (["set", "runs=1", "stats/mtcopy/bytes=0"], 2, "stats/mtcopy/bytes is read-only"),
    (["set", "runs=1", "../outside=0"], 2, "../outside does not exist"),
    (["set", "runs=1", "mtcopy=0"], 2, "mtcopy does not exist"),
    (["set", "runs=1", "migrator=\udcff"], 2, r"migrator='\udcff': not valid text; accepted: off kernel"),
    (["restore", "/nowhere/file"], 2, "/nowhere/file cannot be read"),
])
def test_usage_errors_write_nothing(root: Path, writes: Writes, capsys: pytest.CaptureFixture[str], words: list[str],
                                    status: int, said: str) -> None:
    assert ctl(root, *words) == status
    assert said in capsys.readouterr().err
    assert writes == []


def test_a_kernel_without_the_feature_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ctl(tmp_path / "none", "show") == FerryError.status
    assert "without CONFIG_FERRY" in capsys.readouterr().err


def test_settings_are_written_in_the_given_order(root: Path, writes: Writes) -> None:
    assert ctl(root, "set", "migrator=dcbm", "migrc/drain=1", "reasons/demotion/migrator=auto", "dcbm/devices=a=b") == 0
    assert writes == [("migrator", "dcbm"), ("migrc/drain", "1"), ("reasons/demotion/migrator", "auto"),
                      ("dcbm/devices", "a=b")]


@pytest.mark.parametrize(("bad", "kind", "said"), [
    ("reasons/damon/migrator=x", UsageError, "Invalid argument; accepted: inherit off kernel mtcopy dcbm auto"),
    ("mtcopy/threads=65", UsageError, "mtcopy/threads=65: Invalid argument; its value is 4; nothing was changed"),
    ("dcbm/devices=none0", FerryError, "dcbm/devices=none0: No such device"),
])
def test_a_rejected_value_takes_the_others_back(root: Path, writes: Writes, bad: str, kind: type[FerryError],
                                                said: str) -> None:
    before = content(root)
    with pytest.raises(FerryError) as caught:
        settings.apply(root, [settings.parse(word) for word in ("runs=1", "migrator=mtcopy", "runs=0", "runs=1", bad)])
    assert type(caught.value) is kind and said in caught.value.cause
    assert content(root) == before
    assert [name for name, _ in writes] == ["runs", "migrator", "runs", "runs", "runs", "runs", "migrator", "runs"]


def refuse(root: Path, monkeypatch: pytest.MonkeyPatch, migrator: str, number: int) -> None:
    """The kernel refuses to select this migrator with this error."""
    def write(path: Path, text: str) -> None:
        if path.name == "migrator" and text == migrator:
            raise OSError(number, os.strerror(number))
        migration_tree.store(root, path.relative_to(root).as_posix(), text)

    monkeypatch.setattr(tree, "write", write)


def test_a_write_that_cannot_be_taken_back_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(root, monkeypatch, "off", errno.EBUSY)
    with pytest.raises(UsageError, match="migrator=off could not be written back: Device or resource busy"):
        settings.apply(root, [Setting("runs", "1"), Setting("migrator", "dcbm"), Setting("batch_max_us", "x")])
    assert content(root)["runs"] == "0"


@pytest.mark.parametrize("before_write", [True, False])
def test_an_interrupt_takes_all_back(root: Path, monkeypatch: pytest.MonkeyPatch, before_write: bool) -> None:
    """Also what the kernel took although the call did not return."""
    def write(path: Path, text: str) -> None:
        if (path.name, text, before_write) == ("migrator", "dcbm", True):
            raise KeyboardInterrupt
        migration_tree.store(root, path.relative_to(root).as_posix(), text)
        if (path.name, text) == ("migrator", "dcbm"):
            raise KeyboardInterrupt

    monkeypatch.setattr(tree, "write", write)
    before = content(root)
    with pytest.raises(KeyboardInterrupt):
        settings.apply(root, [Setting("runs", "1"), Setting("migrator", "dcbm"), Setting("batch_max_us", "1")])
    assert content(root) == before


def test_one_write_with_the_newline_of_echo(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("a longer text\n")
    tree.write(tmp_path / "long", "mtcopy")
    assert (tmp_path / "long").read_text() == "mtcopy\n"
    with pytest.raises(FileNotFoundError):
        tree.write(tmp_path / "new", "1")
    assert not (tmp_path / "new").exists()


def test_what_was_saved_is_restored(root: Path, writes: Writes, tmp_path: Path) -> None:
    assert ctl(root, "set", "runs=1", "migrator=auto", "reasons/damon/migrator=off", "mtcopy/nontemporal=never",
               "migrc/enabled=1", "reasons/damon/max_bytes_per_s=1000") == 0
    before = content(root)
    assert ctl(root, "save", str(tmp_path / "saved")) == 0
    lines = (tmp_path / "saved").read_text().splitlines()
    assert "migrator=auto" in lines and not any("drain" in line or "stats/" in line for line in lines)
    migration_tree.make(root)
    assert content(root) != before
    writes.clear()
    assert ctl(root, "restore", str(tmp_path / "saved"), "--strict") == 0
    assert content(root) == before


def test_limits_come_before_what_they_bound() -> None:
    text = "# a comment\n\nmigrator=dcbm\nruns=1\nreasons/damon/migrator=off\n migrc/enabled = 1 \nmigrc/max_bytes=1\n"
    assert [str(setting) for setting in settings.loaded(text)] == [
        "migrc/max_bytes=1", "runs=1", "migrc/enabled=1", "reasons/damon/migrator=off", "migrator=dcbm"]
    with pytest.raises(UsageError, match="line 2: 'migrator dcbm'"):
        settings.loaded("runs=1\nmigrator dcbm\n")


@pytest.mark.parametrize(("options", "status"), [([], 0), (["--strict"], 1)])
def test_restore_skips_what_this_kernel_lacks(root: Path, writes: Writes, tmp_path: Path, options: list[str],
                                              status: int, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "saved").write_text("fpga/lanes=2\nmigrator=fpga\nruns=1\n")
    assert ctl(root, "restore", str(tmp_path / "saved"), *options) == status
    assert capsys.readouterr().err.splitlines() == [
        "skipped: fpga/lanes=2: no such file; is its module loaded?",
        "skipped: migrator=fpga: no such word now; accepted: off kernel mtcopy dcbm auto"]
    assert writes == [("runs", "1")]


def test_restore_changes_nothing_if_a_value_is_rejected(root: Path, writes: Writes, tmp_path: Path,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "saved").write_text("batch_max_us=1\nmtcopy/threads=99\nruns=1\n")
    before = content(root)
    assert ctl(root, "restore", str(tmp_path / "saved")) == 2
    assert "ferry: mtcopy/threads=99: Invalid argument" in capsys.readouterr().err
    assert content(root) == before


@pytest.mark.parametrize(("options", "status"), [([], 0), (["--strict"], 1)])
def test_restore_skips_a_migrator_without_a_device(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                   options: list[str], status: int,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    refuse(root, monkeypatch, "dcbm", errno.ENODEV)
    (tmp_path / "saved").write_text("runs=1\nreasons/damon/migrator=dcbm\nmigrator=dcbm\nbatch_max_us=1\n")
    assert ctl(root, "restore", str(tmp_path / "saved"), *options) == status
    assert capsys.readouterr().err.splitlines() == [
        "skipped: reasons/damon/migrator=dcbm: No such device; is its driver loaded?",
        "skipped: migrator=dcbm: No such device; is its driver loaded?"]
    now = content(root)
    assert (now["runs"], now["batch_max_us"], now["migrator"], now["reasons/damon/migrator"]) == (
        "1", "1", "off", "inherit")


def test_set_and_a_list_of_devices_do_not_skip(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    refuse(root, monkeypatch, "dcbm", errno.ENODEV)
    before = content(root)
    assert ctl(root, "set", "runs=1", "migrator=dcbm") == FerryError.status
    (tmp_path / "saved").write_text("runs=1\ndcbm/devices=none0\n")
    assert ctl(root, "restore", str(tmp_path / "saved")) == FerryError.status
    assert capsys.readouterr().err.count("No such device;") == 2
    assert content(root) == before


def alone(root: Path, *words: str) -> list[str]:
    """`python3 -m ferry.control` without site-packages; a third-party import fails there."""
    source = paths.repo_root() / "src"
    program = (f"import runpy, sys; sys.path.insert(0, {str(source)!r}); sys.argv[0] = 'control'; "
               "runpy.run_module('ferry.control', run_name='__main__')")
    return [sys.executable, "-I", "-S", "-c", program, *words, "--root", str(root)]


@pytest.fixture
def isolated(root: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs alone() with these words."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(alone(root, *words), capture_output=True, text=True, timeout=60)

    return run


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_takes_all_back_also_without_the_tools_environment(root: Path, sig: int) -> None:
    """It arrives while the second write waits: a pipe that nothing reads takes the place of its file."""
    (root / "migrc/drain").unlink()
    os.mkfifo(root / "migrc/drain", 0o200)
    with subprocess.Popen(alone(root, "set", "runs=1", "migrc/drain=1"), stderr=subprocess.PIPE) as control:
        try:
            until = time.monotonic() + 60
            while (root / "runs").read_text() != "1\n":
                assert time.monotonic() < until
                time.sleep(0.02)
            control.send_signal(sig)
            assert control.wait(30) == 130
        finally:
            control.kill()
    assert (root / "runs").read_text() == "0\n"


def test_it_runs_with_the_standard_library_alone(isolated: Callable[..., subprocess.CompletedProcess[str]],
                                                 root: Path, tmp_path: Path) -> None:
    assert isolated("set", "batch_max_us=123").returncode == 0
    saved = isolated("save")
    assert saved.returncode == 0 and "batch_max_us=123\n" in saved.stdout
    assert isolated("metrics", "--output", str(tmp_path / "ferry.prom")).returncode == 0
    assert "ferry_batch_max_seconds 0.000123\n" in (tmp_path / "ferry.prom").read_text()
    assert [path.name for path in tmp_path.glob("*ferry.prom*")] == ["ferry.prom"]
    wrong = isolated("show", "nothing")
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 2)
    imported = isolated("show", "runs")
    assert imported.stdout == "runs  0\n" and not imported.stderr


def test_output_that_cannot_be_written_is_one_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["metrics", "--root", str(root), "--output", "/proc/nowhere/ferry.prom"]) == FerryError.status
    assert "ferry: /proc/nowhere/ferry.prom cannot be written: No such file" in capsys.readouterr().err


def test_a_link_stays_and_a_pipe_is_written_to(root: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real/saved")
    for _ in range(2):  # the first time the link dangles
        assert ctl(root, "save", str(tmp_path / "link")) == 0
        assert (tmp_path / "link").is_symlink() and "runs=0\n" in (tmp_path / "real/saved").read_text()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert ctl(root, "save", str(tmp_path / "pipe")) == 0
        assert (tmp_path / "pipe").is_fifo() and b"runs=0\n" in os.read(reader, 1 << 16)
    finally:
        os.close(reader)
    assert not list(tmp_path.rglob(".*"))


def test_dev_stdout_is_standard_output(isolated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert "runs=0\n" in isolated("save", "/dev/stdout").stdout


def test_a_file_can_be_read_by_all_and_no_scratch_file_is_left(root: Path, tmp_path: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is on the disk before it has its name; what others put there as a scratch file is not written to."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    victim = tmp_path / "victim"
    victim.write_text("")
    (tmp_path / f".saved.{os.getpid()}").symlink_to(victim)
    former = os.umask(0o077)
    try:
        assert ctl(root, "save", str(tmp_path / "saved")) == 0
    finally:
        os.umask(former)
    assert (tmp_path / "saved").stat().st_mode & 0o777 == 0o644
    assert synced == [(tmp_path / "saved").stat().st_size] and victim.read_text() == ""

    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    before = sorted(tmp_path.iterdir())
    assert ctl(root, "save", str(tmp_path / "saved")) == 130
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(("words", "completed"), [
    (["ferry", "ctl", "re"], ["restore"]),
    (["ferry", "ctl", "set", "reasons/damon/mig"], ["reasons/damon/migrator=", "reasons/damon/migrator=VALUE"]),
    (["ferry", "ctl", "set", "stats/"], []),
    (["ferry", "ctl", "set", "runs", "=", "1", "migrator", "="], ["off", "kernel", "mtcopy", "dcbm", "auto"]),
    (["ferry", "ctl", "set", "migrator", "=", "d"], ["dcbm"]),
    (["ferry", "top", "--on"], ["--once"]),
])
def test_bash_completes_verbs_names_and_words(root: Path, capsys: pytest.CaptureFixture[str], words: list[str],
                                              completed: list[str]) -> None:
    completion.run(argparse.Namespace(shell="bash"))
    script = capsys.readouterr().out.replace(f"root={tree.ROOT}", f"root={root}")
    script += ('\nCOMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _shtab_ferry 2>/dev/null; '
               '((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"; true')
    shell = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True)
    assert shell.stdout.split() == completed
