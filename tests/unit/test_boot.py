# SPDX-License-Identifier: GPL-2.0
"""Splats in consoles, and what a boot makes of a guest that ends well, badly, or never."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ferry import boards, proc
from ferry.errors import InfraError, Splat, TimedOut
from ferry.kernel.build import Kernel
from ferry.vm import boot, kvm, splat, tcg

STAMP = "[    1.234567] "


@pytest.mark.parametrize(("line", "kind"), [
    ("BUG: KASAN: slab-use-after-free in ferry_copy+0x10/0x20", "KASAN"),
    ("WARNING: possible circular locking dependency detected", "lockdep"),
    ("[ BUG: Invalid wait context ]", "lockdep"),
    ("WARNING: CPU: 1 PID: 77 at mm/migrate.c:1200 migrate_folio+0x5/0x10", "WARNING"),
    ("WARNING: mm/migrate.c:1200 at migrate_folio+0x5/0x10, CPU#1: movebench/77", "WARNING"),
    ("kernel BUG at mm/page_table_check.c:85!", "page table check"),
    ("kernel BUG at mm/rmap.c:12!", "BUG"),
    ("BUG: Bad page state in process movebench  pfn:1234", "BUG"),
    ("BUG: sleeping function called from invalid context at mm/x.c:1", "BUG"),
    ("list_del corruption. prev->next should be x", "list corruption"),
    ("watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [a:1]", "soft lockup"),
    ("watchdog: CPU1: Watchdog detected hard LOCKUP on cpu 1", "soft lockup"),
    ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "RCU stall"),
    ("INFO: task movebench:77 blocked for more than 122 seconds.", "hung task"),
    ("INFO: task migrate:78 blocked in I/O wait for more than 122 seconds.", "hung task"),
    ("Oops: Oops: 0002 [#1] SMP", "Oops"),
    ("Kernel panic - not syncing: Attempted to kill init!", "panic"),
    ("mm/pgtable-generic.c:50: bad pmd 00000000deadbeef(0000000012345067)", "bad page table"),
    ("get_swap_device: Bad swap offset entry 3ffffffffffff", "bad page table"),
    ("EXT4-fs error (device loop0): ext4_lookup:1817: inode #2: comm integrity: bad", "damaged file system"),
    ("sysfs: cannot create duplicate filename '/kernel/mm/migration/dcbm'", "double name in sysfs"),
    ("BUG: workqueue lockup - pool cpus=1 node=0 flags=0x0 nice=0 stuck for 125s!", "soft lockup"),
    ("UBSAN: shift-out-of-bounds in mm/ferry/limits.c:12:3", "UBSAN"),
    ("pagealloc: memory corruption", "write to a free page"),
    ("kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)", "memory leak"),
    ("DMA-API: debugging out of memory - disabling", "a check that ended"),
    ("ODEBUG: Out of memory. ODEBUG disabled", "a check that ended"),
    ("kmemleak: Kernel memory leak detector disabled", "a check that ended"),
])
def test_splats_are_seen(line: str, kind: str) -> None:
    found = splat.scan(f"{STAMP}quiet\n{STAMP}{line}\n{STAMP}Call Trace:\n")
    assert [(one.kind, one.line) for one in found] == [(kind, 2)]
    assert found[0].context == (f"{STAMP}Call Trace:",)


@pytest.mark.parametrize("line", [
    "WARNING: stdin/stdout/stderr not accessible, said by a program",
    f'{STAMP}virtme-ng-init: WARNING: failed to run: "systemd-tmpfiles" (error: No such file or directory)',
    f"{STAMP}rcu: INFO is only a word here",
    f"{STAMP}Memory failure: 0x1234: recovery action for clean LRU page: Recovered",
    f"{STAMP}debug: BUGs are welcome",
    f"{STAMP}ACPI: Oopsie",
])
def test_what_only_looks_like_a_splat(line: str) -> None:
    assert splat.scan(line) == []


def test_a_splat_behind_what_a_program_has_printed_is_seen() -> None:
    (found,) = splat.scan(f"ok 5 write_fault{STAMP}BUG: sleeping function called from invalid context")
    assert (found.kind, found.text) == ("BUG", "BUG: sleeping function called from invalid context")


def test_a_kernel_that_oopsed_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Callable[[str], bool]] = []
    pretend_guest(monkeypatch, "", "0\n", asked=asked)
    go(tmp_path)
    lines = ("Oops: Oops: 0002 [#1] SMP", "INFO: task a:7 blocked for more than 9 seconds.", "WARNING: mm/x.c:1 at y")
    assert [asked[0](STAMP + line) for line in lines] == [True, True, False]


MIGRC = splat.Report("BUG: migrc: ", "migrc: end of report")
REPORT = [f"{STAMP}{line}" for line in (
    "BUG: migrc: a page was written with its flush deferred", "CPU: 1 UID: 0 PID: 77 Comm: stale_tlb", "Call Trace:",
    " migrc_check+0x10/0x20", "migrc: end of report")]


def kinds(*lines: str) -> list[tuple[str, int]]:
    return [(one.kind, one.line) for one in splat.scan("\n".join(lines), [MIGRC])]


def test_an_expected_report_is_no_splat() -> None:
    assert kinds("quiet", *REPORT, *REPORT) == []
    assert [one.line for one in splat.scan("\n".join(REPORT))] == [1]


def test_two_cpus_may_report_at_once() -> None:
    assert kinds(REPORT[0], REPORT[0], REPORT[2], REPORT[-1], REPORT[-1]) == []


@pytest.mark.parametrize(("lines", "found"), [
    pytest.param(REPORT[:-1], [("BUG", 1)], id="no end"),
    pytest.param([*REPORT[:-1], *REPORT], [("BUG", 1)], id="no end, and a whole one"),
    pytest.param([*REPORT[:2], f"{STAMP}BUG: KASAN: x", *REPORT[2:]], [("KASAN", 3)], id="another splat in it"),
    pytest.param([*REPORT, f"{STAMP}WARNING: mm/x.c:1 at y"], [("WARNING", 6)], id="another splat after it"),
    pytest.param([REPORT[-1], f"{STAMP}BUG: Bad page state"], [("BUG", 2)], id="an end without a report"),
    pytest.param([f"{STAMP}BUG: migrc", REPORT[-1]], [("BUG", 1)], id="not said as a report is"),
    pytest.param([REPORT[0], "migrc: end of report"], [("BUG", 1)], id="an end that a program says"),
])
def test_what_an_expected_report_does_not_hide(lines: list[str], found: list[tuple[str, int]]) -> None:
    assert kinds(*lines) == found


def test_panic_without_a_time_stamp() -> None:
    assert splat.scan("Kernel panic - not syncing: VFS\n")[0].kind == "panic"


def pretend_guest(
    monkeypatch: pytest.MonkeyPatch, console: str, status: str | None, *, late: bool = False,
    asked: list[Callable[[str], bool]] | None = None,
) -> None:
    """A guest that says `console` and leaves `status`; `asked` gets what its lines are asked."""
    def run(line: object, *, log: Path, cwd: Path, dying: Callable[[str], bool], **_: object) -> proc.Result:
        log.write_text(console)
        if asked is not None:
            asked.append(dying)
        if status is not None:
            (cwd / ".ferry-status").write_text(status)
        if late:
            raise TimedOut("vng did not end within 5 s", log=log)
        return proc.Result(0, 1.0, (), log)

    monkeypatch.setattr(proc, "run", run)
    monkeypatch.setattr(boot.qemu.kvm, "works", lambda image: False)
    monkeypatch.setattr(boot.qemu.shutil, "which", lambda name: f"/usr/bin/{name}")


KERNEL = Kernel(Path("/k/bzImage"), {}, Path("/k/config"), "key", Path("/k/log"), "7.3.4", Path("/t"))


def go(share: Path, *, board: str = "x86-numa") -> boot.BootResult:
    return boot.boot(boards.load(board), KERNEL, "true", timeout_s=5, share=share)


def test_status_comes_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend_guest(monkeypatch, f"{STAMP}hello\n", "7\n")
    assert go(tmp_path / "share").status == 7


def test_clean_exit_beside_a_splat_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend_guest(monkeypatch, f"{STAMP}BUG: KASAN: x\n", "0\n")
    with pytest.raises(Splat) as caught:
        go(tmp_path)
    assert caught.value.status == 5
    assert caught.value.log == tmp_path / "console.log"
    assert "KASAN: BUG: KASAN: x" in caught.value.cause


def test_a_boot_may_expect_a_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = Kernel(Path("/k/bzImage"), {}, Path("/k/config"), "key", Path("/k/log"), "7.3.4", Path("/t"))

    def status_with(console: str) -> int:
        pretend_guest(monkeypatch, console, "0\n")
        return boot.boot(boards.load("x86-numa"), kernel, "true", timeout_s=5, share=tmp_path, expected=[MIGRC]).status

    assert status_with("\n".join(REPORT)) == 0
    with pytest.raises(Splat, match="KASAN"):
        status_with("\n".join([*REPORT, f"{STAMP}BUG: KASAN: x"]))
    with pytest.raises(Splat, match="migrc"):
        status_with(REPORT[0])


def test_guest_that_dies_is_not_taken_for_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".ferry-status").write_text("0\n")  # of an earlier boot with the same share
    pretend_guest(monkeypatch, f"{STAMP}half a wo", None)
    with pytest.raises(InfraError, match="half a wo"):
        go(tmp_path)


def test_missing_qemu_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend_guest(monkeypatch, "", None)
    monkeypatch.setattr(boot.qemu.shutil, "which", lambda name: None)
    with pytest.raises(InfraError, match="qemu-system-x86_64 is not installed"):
        go(tmp_path)


def test_time_out_names_the_board_but_a_splat_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend_guest(monkeypatch, "", None, late=True)
    with pytest.raises(TimedOut, match="x86-numa"):
        go(tmp_path)
    pretend_guest(monkeypatch, f"{STAMP}watchdog: BUG: soft lockup\n", None, late=True)
    with pytest.raises(Splat):
        go(tmp_path)


def test_shell_sees_the_share_and_its_own_exit_is_kept(tmp_path: Path) -> None:
    boot._write_script(tmp_path, "echo here >$FERRY_SHARE/out\nexit 9")
    proc.run(["sh", tmp_path / ".ferry-command"])
    assert (tmp_path / "out").read_text() == "here\n"
    assert (tmp_path / ".ferry-status").read_text() == "9\n"


ASSERTION = ("qemu-system-x86_64: ../../hw/pci/msix.c:218: msix_table_mmio_write: "
             "Assertion `addr + size <= dev->msix_entries_nr * PCI_MSIX_ENTRY_SIZE' failed.")


@pytest.mark.parametrize(("lines", "fault"), [
    (("smp: Brought up 2 nodes", "Oops: int3: 0000 [#1] SMP"), "a stale int3"),
    (("Run /init as init process", "Oops: int3: 0000 [#1] SMP"), None),
    (("smp: Brought up 2 nodes", "Oops: Oops: 0002 [#1] SMP"), None),
    (("BUG: KASAN: made up", "Oops: int3: 0000 [#1] SMP"), None),
    (("pci 0000:00:01.0: BAR 0 [io  0xc000-0xc03f]", ASSERTION), "a stale memory map"),
    (("Run /init as init process", ASSERTION), None),
    ((ASSERTION, "pci 0000:00:01.0: BAR 0 [io  0xc000-0xc03f]"), None),
    (("smp: Brought up 2 nodes", "qemu-system-x86_64: ../../hw/dma/x.c:1: x: Assertion `x' failed."), None),
    # KUnit tests run before init.
    (("    not ok 3 move_of_a_huge_page", "Oops: int3: 0000 [#1] SMP"), None),
    (("    ok 3 move_of_a_huge_page", "Oops: int3: 0000 [#1] SMP"), "a stale int3"),
    (("Oops: int3: 0000 [#1] SMP", "    not ok 3 move_of_a_huge_page"), "a stale int3"),
    (("not ok 1 ferry_copy", ASSERTION), None),
    (("BUG: KASAN: made up", ASSERTION), None),
])
def test_only_two_faults_before_init_are_the_emulators(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                       lines: tuple[str, ...], fault: str | None) -> None:
    monkeypatch.setattr(kvm, "works", lambda _: False)
    console = tmp_path / "console.log"
    console.write_text("\n".join(line if line == ASSERTION else STAMP + line for line in lines) + "\n")
    assert tcg.fault_before_init(boards.load("x86-numa"), KERNEL, console) == fault
    assert tcg.fault_before_init(boards.load("x86-icount"), KERNEL, console) is None
    assert tcg.fault_before_init(boards.load("x86-numa"), KERNEL, tmp_path / "none.log") is None


@pytest.mark.parametrize("last", [f"{STAMP}Oops: int3: 0000 [#1] SMP", ASSERTION])
@pytest.mark.parametrize(("before", "boots"), [("smp: Brought up 2 nodes", 3), ("Run /init as init process", 1)])
def test_a_boot_that_the_emulator_broke_is_repeated_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: str,
                                                          boots: int, last: str) -> None:
    asked: list[Callable[[str], bool]] = []
    monkeypatch.setattr(kvm, "works", lambda _: False)
    pretend_guest(monkeypatch, f"{STAMP}{before}\n{last}\n", None, asked=asked)
    with pytest.raises((Splat, InfraError)):
        go(tmp_path)
    assert len(asked) == boots
