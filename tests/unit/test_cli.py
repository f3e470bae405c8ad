# SPDX-License-Identifier: GPL-2.0
"""The command line: exit statuses, one error each, and programs that are stopped with everything they started."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_kernel import make_clone

from ferry import __version__, errors, paths, proc
from ferry.commands import cli, doctor, setup
from ferry.commands.finding import Finding
from ferry.debian import apt
from ferry.errors import FerryError, InfraError, TimedOut


@pytest.mark.parametrize(("words", "named"), [
    (["boot", "--board", "vax"], "vax"),
    (["fly"], "fly"),
    (["config", "--kernel", "gnu"], "gnu"),
    (["series"], "ACTION"),
])
def test_bad_usage_is_2(words: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2
    assert named in capsys.readouterr().err


@pytest.mark.parametrize(("error", "status"), [
    (errors.TestFailure("x"), 1), (errors.UsageError("x"), 2), (errors.InfraError("x"), 3), (errors.AllSkipped("x"), 4),
    (errors.Splat("x"), 5), (errors.TimedOut("x"), 124), (KeyboardInterrupt(), 130), (OSError(28, "No space left"), 3),
])
def test_errors_are_one_message_and_their_status(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                                                 error: BaseException, status: int) -> None:
    def fail(args: object) -> int:
        raise error

    monkeypatch.setattr(doctor, "run", fail)
    assert cli.main(["doctor"]) == status
    said = capsys.readouterr()
    assert said.err.count("ferry: ") == 1
    assert "Traceback" not in said.err
    assert not said.out
    assert cli.main(["--verbose", "doctor"]) == status
    said = capsys.readouterr()
    assert said.err.count("\nferry: ") + said.err.startswith("ferry: ") == 1
    assert ("Traceback" in said.err) == (not isinstance(error, KeyboardInterrupt))


def test_a_bug_is_70_with_its_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "run", lambda args: {}["nothing"])
    assert cli.main(["doctor"]) == errors.BUG == 70
    said = capsys.readouterr()
    assert "Traceback" in said.err and "a bug in ferry: KeyError: 'nothing'" in said.err


def test_a_text_that_the_locale_lacks_ends_no_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr(doctor, "run", lambda args: print("1.5 ±0.2"))
    cli.main(["doctor"])
    assert written.getvalue() == b"1.5 ?0.2\n"


def test_full_disk_is_called_that(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(args: object) -> int:
        raise OSError(28, "No space left on device")  # as a write to an open log does: without a file name

    monkeypatch.setattr(doctor, "run", fail)
    monkeypatch.setenv("FERRY_CACHE", "/the/cache")
    assert cli.main(["doctor"]) == 3
    assert "the disk is full: /the/cache\n  next: free some space" in capsys.readouterr().err


def test_error_names_cause_next_command_and_log(capsys: pytest.CaptureFixture[str]) -> None:
    cli.report(FerryError("it broke", hint="mend it", log=Path("/x.log")))
    assert capsys.readouterr().err == "ferry: it broke\n  next: mend it\n  log: /x.log\n"


def test_global_options_before_and_after_the_verb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "run", lambda args: 0)
    for words in (["--cache", str(tmp_path), "doctor"], ["doctor", "--cache", str(tmp_path)]):
        monkeypatch.setenv("FERRY_CACHE", "/elsewhere")
        cli.main(words)
        assert paths.cache_dir() == tmp_path


def test_a_source_is_a_path_or_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "run", lambda args: 0)
    monkeypatch.setenv("FERRY_SOURCE", "of this test")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree").mkdir()
    for given, kept in (("tree", str(tmp_path / "tree")), ("mainline", "mainline"), ("7.3.9-1", "7.3.9-1")):
        cli.main(["--source", given, "doctor"])
        assert os.environ["FERRY_SOURCE"] == kept


def test_a_value_that_is_called_like_a_verb_is_no_verb() -> None:
    assert cli._wanted(["--source", "tree", "runs", "list"]) == ("runs",)
    assert cli._wanted(["runs", "--cache", "build"]) == ("runs",)


def test_parser_of_one_verb_equals_that_of_all() -> None:
    for verb in ("boot", "build", "series"):
        one, every = cli.build_parser((verb,)), cli.build_parser()
        words = {"boot": ["boot", "--debug", "true"], "build": ["build"], "series": ["series", "check"]}[verb]
        assert vars(one.parse_args(words)) == vars(every.parse_args(words))


def test_unwritable_cache_is_one_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path / "file/cache"))
    with pytest.raises(InfraError, match="cannot make the cache"):
        paths.cache_dir()


def test_the_version_names_the_base_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                           capsys: pytest.CaptureFixture[str]) -> None:
    make_clone(monkeypatch, tmp_path)
    for expected in ("ferry 1.2.3 (Linux 7.3.4, Debian 7.3.4-1)\n", "ferry 1.2.3\n"):
        monkeypatch.setattr(cli, "__version__", "1.2.3")
        with pytest.raises(SystemExit) as caught:
            cli.main(["--version"])
        assert (caught.value.code, capsys.readouterr().out) == (0, expected)
        monkeypatch.setattr(paths, "repo_root", installed)


def installed() -> Path:
    raise InfraError("no clone")


def test_the_version_has_an_entry_in_the_changelog() -> None:
    headings = re.findall(r"^## \[([^]]+)\]", (paths.repo_root() / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert __version__ in headings
    with (paths.repo_root() / "pyproject.toml").open("rb") as file:
        assert "version" not in tomllib.load(file)["project"]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    """A killed grandchild dies when the host next runs it, which a busy one does late."""
    until = time.monotonic() + 60
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(pid)


def wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.02)


def test_time_out_ends_the_whole_group(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! >{tmp_path}/pid.part; mv {tmp_path}/pid.part {tmp_path}/pid; wait"
    with pytest.raises(TimedOut) as caught:
        proc.run(["sh", "-c", script], timeout=3, log=tmp_path / "log")
    assert caught.value.log == tmp_path / "log"
    assert gone(int((tmp_path / "pid").read_text()))


def test_interrupt_ends_the_whole_group_and_is_130(tmp_path: Path) -> None:
    """Ctrl-C in mid-build: ferry is told, its children must go too."""
    script = f"sleep 60 & echo $! >{tmp_path}/pid.part; mv {tmp_path}/pid.part {tmp_path}/pid; wait"
    program = ("import signal, sys\nfrom ferry import proc\nfrom ferry.commands import cli, doctor\n"
               # A background job of a shell without job control inherits it as ignored.
               "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
               "doctor.run = lambda args: proc.run(['sh', '-c', sys.argv[1]]).status\n"
               "sys.exit(cli.main(['doctor']))\n")
    env = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", program, script], env=env, stderr=subprocess.PIPE, text=True) as ferry:
        wait_for(tmp_path / "pid")
        ferry.send_signal(signal.SIGINT)
        _, said = ferry.communicate(timeout=20)
    assert ferry.returncode == 130
    assert said.startswith("ferry: interrupted")
    assert gone(int((tmp_path / "pid").read_text()))


def test_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="qemu-of-nowhere is not installed") as caught:
        proc.run(["qemu-of-nowhere"])
    assert "setup" in str(caught.value.hint)


def test_output_goes_to_log_and_lines(tmp_path: Path) -> None:
    lines: list[str] = []
    done = proc.run(["sh", "-c", "echo one; echo two >&2; printf three; exit 4"], log=tmp_path / "log",
                    progress=lines.append)
    assert (done.status, lines) == (4, ["one", "two", "three"])
    assert (tmp_path / "log").read_text() == "one\ntwo\nthree"


def test_publish_keeps_the_old_until_the_new_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "thing"
    with paths.publish(target) as scratch:
        (scratch / "a").write_text("old")
    with pytest.raises(RuntimeError), paths.publish(target) as scratch:
        (scratch / "a").write_text("half")
        raise RuntimeError
    assert (target / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]


def lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "absent", lambda: [doctor.Requirement("flex", "flex", "")])


def test_setup_without_root_or_apt_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(setup.shutil, "which", lambda name: "/usr/bin/apt-get")
    with pytest.raises(InfraError, match=r"flex.*only root") as caught:
        setup.install_missing()
    assert "sudo apt-get install flex" in str(caught.value.hint)
    monkeypatch.setattr(setup.shutil, "which", lambda name: None)
    with pytest.raises(InfraError, match="by Debian's apt only"):
        setup.install_missing()


def test_setup_does_not_fail_for_what_one_board_alone_needs(monkeypatch: pytest.MonkeyPatch,
                                                            capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "absent", lambda: [doctor.Requirement("dtc", "dtc", "", "zcu102")])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert setup.install_missing() == []
    assert "zcu102 will not work: missing here: dtc" in capsys.readouterr().err


def test_setup_without_network_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lacking(monkeypatch)
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(setup.shutil, "which", lambda name: "/usr/bin/apt-get")
    tail = ("Err:1 http://m.example bookworm", "E: Failed to fetch http://m.example  Could not resolve 'm.example'")
    monkeypatch.setattr(apt.proc, "run", lambda *a, **k: proc.Result(100, 1.0, tail, k["log"]))
    with pytest.raises(InfraError, match="Could not resolve") as caught:
        setup.install_missing()
    assert "network" in str(caught.value.hint)


def test_doctor_names_the_first_thing_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    def found() -> Iterator[Finding]:
        yield Finding(True, "a", "there")
        yield Finding(False, "b", "missing", "install b")
        yield Finding(False, "c", "missing", "install c")

    assert doctor.listed(found, "make run") == 3
    assert capsys.readouterr().out.endswith("next: install b\n")


def test_a_program_that_falls_silent_is_ended_long_before_its_time_limit(tmp_path: Path) -> None:
    with pytest.raises(TimedOut, match=r"printed nothing for 3 s") as caught:
        proc.run(["sh", "-c", "echo hello; sleep 60"], timeout=60, silence=3, log=tmp_path / "log")
    assert caught.value.log is not None and caught.value.log.read_text() == "hello\n"


def test_a_program_that_keeps_talking_is_not_silent() -> None:
    talk = "for i in 1 2 3 4 5 6; do sleep 0.3; echo $i; done"
    assert proc.run(["sh", "-c", talk], timeout=60, silence=5).tail == ("1", "2", "3", "4", "5", "6")


def test_a_program_that_says_it_is_dying_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "DYING_S", 0.5)
    talk = "echo alas; while sleep 0.2; do echo still here; done"
    with pytest.raises(TimedOut, match="of a fatal error"):
        proc.run(["sh", "-c", talk], timeout=60, dying=lambda line: line == "alas")
    assert proc.run(["sh", "-c", "echo alas; echo more"], dying=lambda line: line == "alas").tail == ("alas", "more")
