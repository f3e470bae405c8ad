# SPDX-License-Identifier: GPL-2.0
"""The programs of the suite `outside`: the mm selftests of the kernel's tree, and Debian's stress-ng, fio and trinity.

Each has parameters that keep it short on an emulated debug kernel. The selftests reserve huge pages and write the
settings that they need themselves, as root; the tree's own script, run_vmtests.sh, has longer ones.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry.debian import packages
from ferry.kernel import tree_selftests
from ferry.vm import guest_programs

DISK_MIB = 256
#: A limit for what hangs: uffd-unit-tests alone takes 900 s on an emulated debug kernel, and twice that on a busy host.
LIMIT_S = 2700
STRESS_NG_S = 20
FIO_S = 20
TRINITY_S = 600


@dataclass(frozen=True)
class Program:
    """An outside program: `command` is a shell line that prints KTAP, and is killed after `seconds`.

    `module` is a module of the kernel that it needs. One that is `alone` has a boot of its own.
    """

    name: str
    seconds: int
    command: str
    module: str = ""
    alone: bool = False


@dataclass(frozen=True)
class Selftest:
    """A program of the tree's mm selftests with its arguments; `case` distinguishes runs of one program."""

    program: str
    arguments: str = ""
    case: str = ""
    module: str = ""

    @property
    def name(self) -> str:
        return f"{self.program}-{self.case}" if self.case else self.program


SELFTESTS = (
    Selftest("migration"),
    Selftest("rmap"),
    Selftest("ksm_functional_tests"),
    Selftest("ksm_tests", "-M -p 10", "merge"),
    Selftest("ksm_tests", "-U", "unmerge"),
    Selftest("ksm_tests", "-Z -p 10 -z 0", "zero"),
    Selftest("ksm_tests", "-Z -p 10 -z 1", "use_zero_pages"),
    Selftest("ksm_tests", "-N -m 1", "across_nodes"),
    Selftest("ksm_tests", "-N -m 0", "within_node"),
    Selftest("ksm_tests", "-P -s 16", "time"),
    Selftest("ksm_tests", "-H -s 16", "time_huge"),
    Selftest("ksm_tests", "-D -s 16", "unmerge_time"),
    Selftest("ksm_tests", "-C", "cow_time"),
    Selftest("uffd-unit-tests"),
    # MiB, bounces.
    Selftest("uffd-stress", "anon 8 4", "anon"),
    Selftest("uffd-stress", "shmem 8 4", "shmem"),
    Selftest("uffd-stress", "shmem-private 8 4", "shmem-private"),
    Selftest("uffd-stress", "hugetlb 64 4", "hugetlb"),
    Selftest("uffd-stress", "hugetlb-private 64 4", "hugetlb-private"),
    Selftest("cow"),
    Selftest("gup_longterm"),
    Selftest("mremap_test"),
    Selftest("guard-regions"),
    Selftest("merge"),
    Selftest("madv_populate"),
    Selftest("process_madv"),
    Selftest("soft-dirty"),
    Selftest("pagemap_ioctl"),
    Selftest("split_huge_page_test"),
    Selftest("folio_split_race_test"),
    # Seconds, MiB.
    Selftest("transhuge-stress", "-d 20 512"),
    Selftest("khugepaged"),
    Selftest("compaction_test"),
    Selftest("hugetlb-mmap", "64"),
    Selftest("hugetlb-shm"),
    Selftest("hugetlb-mremap", "64"),
    Selftest("hugetlb-madvise"),
    Selftest("hugetlb_dio"),
    Selftest("hugetlb_fault_after_madv"),
    Selftest("hugetlb_madv_vs_map"),
    Selftest("hmm-tests", module="test_hmm"),
    # These poison pages for good.
    Selftest("memory-failure"),
    Selftest("hugetlb-soft-offline"),
    Selftest("hugetlb-read-hwpoison"),
)

#: KSM has no stressor in stress-ng: `vm` verifies memory that it declares mergeable. `memhotplug` is the last, because
#: it may leave memory offline.
STRESSORS: Mapping[str, str] = {
    "numa": "--numa 2",
    "mremap": "--mremap 2 --mremap-bytes 8M",
    "userfaultfd": "--userfaultfd 2 --userfaultfd-bytes 8M",
    "ksm": "--vm 2 --vm-bytes 16M --vm-madvise mergeable",
    "vm-splice": "--vm-splice 2",
    "mmapfork": "--mmapfork 1",
    "madvise": "--madvise 2",
    "memhotplug": "--memhotplug 1",
}

#: With mmap, moveall moves the file's own pages; psync leaves them to compaction; libaio pins fio's buffers.
ENGINES: Mapping[str, str] = {
    "psync": "--ioengine=psync",
    "mmap": "--ioengine=mmap",
    "libaio": "--ioengine=libaio --iodepth=8 --direct=1",
}


def all_programs() -> list[Program]:
    """Build or fetch the programs. Raises InfraError."""
    return [*_selftests(), *_packaged()]


def _selftests() -> list[Program]:
    built = tree_selftests.programs(tuple(dict.fromkeys(test.program for test in SELFTESTS)))
    return [Program(test.name, LIMIT_S, _on_ext4(_copied(built[test.program], test.arguments)), test.module)
            for test in SELFTESTS]


def _packaged() -> list[Program]:
    moveall = str(guest_programs.programs()["moveall"])
    stress_ng = packages.run_unpacked(packages.with_libraries("stress-ng"), "stress-ng")
    fio = packages.run_unpacked(packages.with_libraries("fio"), "fio")
    trinity = packages.with_libraries("trinity") / "usr/bin/trinity"

    def moving(script: str, *arguments: object) -> str:
        return shlex.join([moveall, *guest_programs.script_words(script, *arguments)])

    stress = moving("stress-ng.sh", shlex.join(stress_ng), STRESS_NG_S, *_cases(STRESSORS))
    verified = moving("fio.sh", shlex.join(fio), FIO_S, *_cases(ENGINES))
    return [
        Program("fio-ext4", LIMIT_S, _on_ext4(verified)),
        Program("fio-tmpfs", LIMIT_S, f"cd /dev/shm && {verified}"),
        Program("stress-ng", LIMIT_S, stress),
        Program("trinity", LIMIT_S, moving("trinity.sh", trinity, TRINITY_S), alone=True),
    ]


def _cases(options: Mapping[str, str]) -> Sequence[str]:
    return [f"{name}={words}" for name, words in options.items()]


def _copied(path: Path, arguments: str) -> str:
    """A program that is copied to the current directory, where it also finds itself."""
    return f"cp {shlex.quote(str(path))} . && exec ./{path.name}" + (f" {arguments}" if arguments else "")


def _on_ext4(line: str) -> str:
    return guest_programs.script_line("with-disk.sh", DISK_MIB, "sh", "-c", f'cd "$0" && {line}', "@")
