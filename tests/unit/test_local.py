# SPDX-License-Identifier: GPL-2.0
"""The machine in place of a guest: what a script changes is changed back, whatever ends it, and a splat is seen."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import migration_tree
import pytest

from ferry import boards, paths
from ferry.bench import environment, experiment, move_pages
from ferry.commands import test
from ferry.control import kept, machine, tree
from ferry.errors import InfraError, Splat, UsageError
from ferry.kernel import running
from ferry.kernel.build import Kernel
from ferry.suites import integrity, selftests
from ferry.suites.context import Context
from ferry.suites.result import Outcome
from ferry.vm import boot, guest_programs, local

KERNEL = Kernel(Path(), {}, Path(), "", Path(), "7.3.4", Path())
WARNING = "4,77,1234567,-;WARNING: mm/migrate.c:1200 at migrate_folio+0x5/0x10\n SUBSYSTEM=x\n"


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Control files, which are all that is kept; `unshare` only runs its command, as not every root may unshare."""
    root = migration_tree.make(tmp_path / "migration")
    monkeypatch.setattr(kept, "FILES", {root: ("",)})
    monkeypatch.setattr(local, "loaded", set)
    program = tmp_path / "bin/unshare"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return root


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The kernel's side of its log."""
    kernel, reader = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reader.setblocking(False)
    monkeypatch.setattr(local, "kernel_log", reader.detach)
    with kernel:
        yield kernel


def go(root: Path, tmp_path: Path, command: str) -> boot.BootResult:
    return boot.boot(boards.load("local"), KERNEL, command, timeout_s=20, share=tmp_path / "share")


def test_a_script_runs_and_its_settings_are_written_back(root: Path, log: socket.socket, tmp_path: Path) -> None:
    log.send(b"6,78,2000000,-;all is well\n")
    log.send(b"12,79,2000001,-;WARNING: a program wrote this\n")
    result = go(root, tmp_path, f"echo 1 >{root}/runs; echo 7 >{root}/mtcopy/threads; cat {root}/runs; exit 3")
    assert result.status == 3
    assert result.console.read_text() == "1\n[    2.000000] all is well\n"
    assert ((root / "runs").read_text(), (root / "mtcopy/threads").read_text()) == ("0\n", "4\n")


def test_a_warning_of_the_kernel_is_a_splat(root: Path, log: socket.socket, tmp_path: Path) -> None:
    log.send(WARNING.encode())
    with pytest.raises(Splat, match="migrate_folio"):
        go(root, tmp_path, f"echo 1 >{root}/runs")
    assert (root / "runs").read_text() == "0\n"


def test_a_setting_that_stays_is_an_error(monkeypatch: pytest.MonkeyPatch, root: Path, log: socket.socket,
                                          tmp_path: Path) -> None:
    def refuse(path: Path, text: str) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(tree, "write", refuse)
    with pytest.raises(InfraError, match="runs could not be set to 0 again: Invalid argument"):
        go(root, tmp_path, f"echo 1 >{root}/runs")


def test_a_setting_that_stays_hides_no_splat(monkeypatch: pytest.MonkeyPatch, root: Path, log: socket.socket,
                                             tmp_path: Path) -> None:
    log.send(WARNING.encode())
    monkeypatch.setattr(tree, "write", lambda path, text: None)
    with pytest.raises(Splat, match="migrate_folio"):
        go(root, tmp_path, f"echo 1 >{root}/runs")


def test_only_one_ferry_at_a_time_changes_settings(monkeypatch: pytest.MonkeyPatch, root: Path, log: socket.socket,
                                                   tmp_path: Path) -> None:
    """Otherwise each would write back what it read while the other had changed it."""
    monkeypatch.setattr(tree, "ROOT", root)
    with local.prepared(tmp_path / "script", tmp_path / "console"):
        (root / "runs").write_text("1\n")
        with pytest.raises(InfraError, match="another ferry measures or tests this machine"):
            go(root, tmp_path, f"echo 2 >{root}/runs")
        assert (root / "runs").read_text() == "1\n"
    assert (root / "runs").read_text() == "0\n"
    with local.alone():
        pass


def test_the_pools_of_each_node_are_kept(monkeypatch: pytest.MonkeyPatch, root: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(kept, "NODES", tmp_path / "node")
    pool = tmp_path / "node/node1/hugepages/hugepages-2048kB/nr_hugepages"
    pool.parent.mkdir(parents=True)
    pool.write_text("8\n")
    before = kept.read()
    pool.write_text("40\n")
    assert list(kept.write_back(before)) == [] and pool.read_text() == "8\n"
    pool.write_text("40\n")
    monkeypatch.setattr(tree, "write", lambda path, text: None)
    assert list(kept.write_back(before)) == [f"{pool} could not be set to 8 again"]


def test_lost_messages_are_an_error(monkeypatch: pytest.MonkeyPatch, root: Path, log: socket.socket,
                                    tmp_path: Path) -> None:
    answers = iter([BrokenPipeError, BlockingIOError])

    def read(descriptor: int, count: int) -> bytes:
        raise next(answers)

    console = tmp_path / "console"
    monkeypatch.setattr(local.os, "read", read)
    (line,) = local.add_messages(0, console)
    assert "overwritten" in line


def test_modules_that_the_script_loaded_are_unloaded(monkeypatch: pytest.MonkeyPatch, root: Path, log: socket.socket,
                                                     tmp_path: Path) -> None:
    loaded = iter([{"ferry_dcbm"}, {"ferry_dcbm", "ferry_mtcopy"}])
    monkeypatch.setattr(local, "loaded", lambda: next(loaded))
    rmmod = root.parent / "bin/rmmod"
    rmmod.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/removed\n')
    rmmod.chmod(0o755)
    go(root, tmp_path, "true")
    assert (tmp_path / "removed").read_text() == "ferry_mtcopy\n"


PROGRAM = """
import signal, sys
from pathlib import Path
from ferry import boards
from ferry.control import kept
from ferry.commands import bench, cli
from ferry.vm import boot, local
import test_local
# A background job of a shell without job control inherits it as ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
root, share = Path(sys.argv[1]), Path(sys.argv[2])
kept.FILES = {root: ("",)}
local.loaded = set
local.kernel_log = lambda: test_local.empty_log()
bench.run = lambda args: boot.boot(boards.load("local"), test_local.KERNEL, f"echo 1 >{root}/runs; sleep 60",
                                   timeout_s=60, share=share).status
sys.exit(cli.main(["bench", "move_pages"]))
"""


def empty_log() -> int:
    kernel, reader = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    kernel.detach()
    reader.setblocking(False)
    return reader.detach()


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_a_signal_changes_nothing_for_good(root: Path, tmp_path: Path, sig: int) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{paths.repo_root() / 'src'}:{Path(__file__).parent}"}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(root), str(tmp_path / "share")],
                          env=environment, stderr=subprocess.DEVNULL) as ferry:
        deadline = time.monotonic() + 60
        while (root / "runs").read_text() != "1\n":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        ferry.send_signal(sig)
        assert ferry.wait(30) == 130
    assert (root / "runs").read_text() == "0\n"


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_until_all_is_written_back(sig: int) -> None:
    former = signal.getsignal(sig)
    done = False
    with pytest.raises(KeyboardInterrupt), local.uninterrupted():
        os.kill(os.getpid(), sig)
        time.sleep(0.01)
        done = True
    assert done and signal.getsignal(sig) is former


def test_the_running_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(running.os, "geteuid", lambda: 1000)
    with pytest.raises(InfraError, match="needs root"):
        running.kernel()
    monkeypatch.setattr(running.os, "geteuid", lambda: 0)
    monkeypatch.setattr(running.tree, "ROOT", tmp_path / "nothing")
    with pytest.raises(InfraError, match=r"nothing does not exist: the running kernel, .* has no CONFIG_FERRY"):
        running.kernel()
    monkeypatch.setattr(running.tree, "ROOT", tmp_path)
    monkeypatch.setattr(machine, "modules", lambda: {"ferry_mtcopy": Path("x.ko"), "ferry_dcbm": None})
    found = running.kernel()
    assert found.modules == {"ferry_mtcopy": Path("x.ko")} and found.present == {"ferry_dcbm"}
    assert move_pages.insmods(found, ["ferry_mtcopy", "ferry_dcbm"]) == [["insmod", "x.ko"]]
    with pytest.raises(InfraError, match="has no module ptdma"):
        move_pages.insmods(found, ["ptdma"])


def test_stock_cannot_be_booted_here() -> None:
    with pytest.raises(UsageError, match="boots none") as caught:
        experiment.kernels(boards.load("local"), vs_stock=True)
    assert "ferry compare A B" in str(caught.value.hint)


def test_the_installed_tool_has_its_programs_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "movebench").touch(mode=0o755)
    monkeypatch.setattr(paths, "_ROOT", tmp_path)
    monkeypatch.setattr(paths, "LIBEXEC", tmp_path)
    monkeypatch.delenv("FERRY_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    assert guest_programs.programs() == {"movebench": tmp_path / "movebench"}
    assert guest_programs.script_words("with-disk.sh", 8) == ["sh", str(tmp_path / "scripts/with-disk.sh"), "8"]
    assert paths.runs_dir() == tmp_path / "runs"
    (job, *_) = selftests.live_jobs(Context(boards.load("local"), tmp_path, False), KERNEL)
    assert job.command == str(tmp_path / "selftests/ferry_dcbm")


def test_a_document_says_what_the_machine_has_and_what_is_wrong_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "doubts", lambda: iter([machine.Doubt("the CPUs run backwards")]))
    monkeypatch.setattr(machine, "hypervisor", lambda: "kvm")
    monkeypatch.setattr(environment, "busy", lambda: 0.0)
    made = experiment.document("move_pages", boards.load("local"), "off", {"ferry": KERNEL}, {})
    assert (made["board"], made["kind"], made["meta"]["accelerator"]) == ("local", "native", "KVM")
    assert made["warnings"] == ["the CPUs run backwards"]
    assert set(made["meta"]["machine"]) == {"nodes", "engines", "huge_pages", "kernel"}


def test_the_suites_of_a_machine_in_use() -> None:
    assert [suite.name for suite in test.choose(None, "local", False)] == ["selftests", "integrity"]
    with pytest.raises(UsageError, match="none of these suites runs on local"):
        test.choose("migrc", "local", False)


@pytest.mark.parametrize(("modules", "present", "names"), [
    ({"ferry_mtcopy": Path("/x.ko")}, frozenset(), ["kernel", "mtcopy"]),
    ({}, frozenset({"ferry_mtcopy"}), ["kernel", "mtcopy"]),
    ({}, frozenset(), ["kernel"]),
])
def test_integrity_leaves_other_programs_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                               modules: dict[str, Path], present: frozenset[str],
                                               names: list[str]) -> None:
    monkeypatch.setattr(guest_programs, "programs", lambda arch: {"integrity": Path("/integrity")})
    context = Context(replace(boards.load("local"), ends=(0, 2)), tmp_path)
    jobs = integrity.live_jobs(context, replace(KERNEL, modules=modules, present=present))
    assert [job.name for job in jobs] == names
    for job in jobs:
        assert "--from 0 --to 2" in job.command and job.command.endswith(f"--copied-by {job.migrator}")
        assert not {"swap", "ksm", "numahint", "disk"} & set(re.split(r"[ ,]", job.command))
    assert [line for job in jobs for line in job.setup if "insmod" in line] == [
        "grep -q '^ferry_mtcopy ' /proc/modules || insmod /x.ko"] * len(modules)


def test_integrity_needs_two_nodes(tmp_path: Path) -> None:
    (result,) = integrity.run(Context(replace(boards.load("local"), ends=(0,)), tmp_path))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED,
                                               "memory is to move between two nodes, and this machine has one")


def test_integrity_runs_although_the_mkfs_of_btrfs_cannot_be_fetched(monkeypatch: pytest.MonkeyPatch,
                                                                     tmp_path: Path) -> None:
    def offline(package: str) -> Path:
        raise InfraError("no network")

    ran: list[str] = []
    monkeypatch.setattr(integrity.packages, "with_libraries", offline)
    monkeypatch.setattr(guest_programs, "programs", lambda arch: {"integrity": Path("/integrity")})
    monkeypatch.setattr(integrity.guest_boot, "debug_kernel", lambda context: replace(KERNEL, modules={
        "ferry_mtcopy": Path("/x.ko")}))
    monkeypatch.setattr(integrity.guest_boot, "run_jobs", lambda context, kernel, jobs, name: ran.extend(
        job.name for job in jobs) or [])
    (result,) = integrity.run(Context(boards.load("x86-numa"), tmp_path))
    assert (result.outcome, result.name, result.reason) == (Outcome.FAILED, "btrfs", "no network")
    assert ran == ["warm-up", "kernel", "mtcopy4-nontemporal"]
