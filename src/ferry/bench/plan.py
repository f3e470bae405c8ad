# SPDX-License-Identifier: GPL-2.0
"""The plan of a move_pages sweep: the configurations, measured in turn, and the cases: what to move, and how."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ferry.errors import UsageError
from ferry.results.document import Column
from ferry.results.stats import MIN_SAMPLES

FOLIO_SIZES = {"4k": 4 << 10, "16k": 16 << 10, "32k": 32 << 10, "64k": 64 << 10, "128k": 128 << 10, "256k": 256 << 10,
               "512k": 512 << 10, "1m": 1 << 20, "2m": 2 << 20, "1g": 1 << 30}
MIGRATORS = ("off", "kernel", "mtcopy", "dcbm", "auto")
#: Those that copy by DMA channels, if there are any, and those that copy by several CPUs.
BY_CHANNELS = ("dcbm", "auto")
BY_CPUS = ("mtcopy", "auto")
#: The one that copies by the calling CPU alone: the measure of a CPU's copy rate.
CPU_MIGRATOR = "kernel"
NONTEMPORAL = ("never", "always", "auto")
VERIFY = ("auto", "always")
KINDS = ("anon", "shmem", "file", "swapcache", "hugetlb")
#: Those whose folios the kernel moves in batches; each hugetlb folio moves on a path of its own.
BATCHED_KINDS = tuple(kind for kind in KINDS if kind != "hugetlb")
ORDERS = ("sequential", "random", "every8")
RUNS = ("off", "on")
#: Limits of the kernel's mtcopy/threads, dcbm/channels and batch_max_us, and of the threads of a guest program.
MAX_THREADS = 64
MAX_CHANNELS = 64
MAX_PROGRAM_THREADS = 4096
MAX_PAGES_PER_CALL = 1 << 20
MAX_BATCH_US = 1_000_000
#: Bounds of an engine's speed, in multiples of a CPU's.
ENGINE_RATES = (0.01, 100.0)
#: Of memory that comes in some folio sizes only: movebench's limits.
READ_ONLY_SIZES = (4 << 10, 2 << 20)
SWAPCACHE_SIZES = (4 << 10,)
#: Of hugetlb memory; the second is of no other memory, and only folios that were reserved at boot are sure to exist.
GIGANTIC = 1 << 30
HUGETLB_SIZES = (2 << 20, GIGANTIC)


@dataclass(frozen=True)
class Config:
    """One configuration. `settings` are files under /sys/kernel/mm/migration and the values to write, in order."""

    label: str
    kernel: str
    migrator: str
    threads: int = 1
    store: str | None = None
    channels: int = 0
    verify: str | None = None
    always: bool = False
    """dcbm and auto: offload also batches that the CPU copies faster."""
    migrc: bool | None = None
    """Whether TLB flushes are deferred; None leaves the switch alone."""
    runs: bool = False
    """Whether base pages are moved in runs."""
    batch_max_us: int | None = None
    """For how long a batch is gathered; None leaves the limit alone."""

    @property
    def settings(self) -> list[tuple[str, str]]:
        """The migrator comes last: it is selected once it is set up."""
        if self.kernel == "stock":
            return []
        threads = [("mtcopy/threads", str(self.threads))] if self.migrator in BY_CPUS else []
        store = [("mtcopy/nontemporal", self.store)] if self.store is not None else []
        channels = [("dcbm/channels", str(self.channels))] if self.channels else []
        # By default a channel hangs after a few milliseconds: an emulator on a busy host is so late, now and then.
        channels += [("dcbm/timeout_ms", "1000")] if self.channels else []
        verify = [("dcbm/verify", self.verify)] if self.verify is not None else []
        always = [("debugfs:ferry_dcbm/force_offload", "1")] if self.always else []
        migrc = [("migrc/enabled", str(int(self.migrc)))] if self.migrc is not None else []
        limit = [("batch_max_us", str(self.batch_max_us))] if self.batch_max_us is not None else []
        runs = ("runs", str(int(self.runs)))
        return [*threads, *store, *channels, *verify, *always, *migrc, *limit, runs, ("migrator", self.migrator)]

    @property
    def argument(self) -> str:
        """As movebench --config takes it."""
        return f"{self.label}:" + ",".join(f"{path}={value}" for path, value in self.settings)


STOCK = Config("stock", "stock", "off")


@dataclass(frozen=True)
class Case:
    """What one movebench moves: `total_bytes` in folios of `folio_bytes`, `pages_per_call` addresses in one call."""

    folio_bytes: int
    total_bytes: int
    kind: str = "anon"
    pages_per_call: int = 0
    """0: all in one call."""
    order: str = "sequential"
    engine_rate: float = 0.0
    """Speed of each channel of the engines, in multiples of a CPU's copy rate; 0: the engines stay as they are."""

    @property
    def name(self) -> str:
        """Unique in a sweep: 4k, shmem-4k, 4k-32, 4k-random, 4k-engine0.2."""
        kind = [self.kind] if self.kind != "anon" else []
        calls = [str(self.pages_per_call)] if self.pages_per_call else []
        order = [self.order] if self.order != "sequential" else []
        engine = [f"engine{self.engine_rate:g}"] if self.engine_rate else []
        return "-".join([*kind, size_argument(self.folio_bytes), *calls, *order, *engine])

    @property
    def memory_bytes(self) -> int:
        """The memory that they are in: `every8` moves one folio of eight."""
        return self.total_bytes * (8 if self.order == "every8" else 1)

    @property
    def column(self) -> Column:
        """The column of its rows."""
        calls = self.pages_per_call or self.total_bytes // self.folio_bytes
        return "", self.kind, self.folio_bytes, self.total_bytes, calls, self.order, self.engine_rate


@dataclass(frozen=True)
class Plan:
    """A sweep of the configurations over the cases; samples and warm-ups are rounds of one boot."""

    configs: tuple[Config, ...]
    cases: tuple[Case, ...]
    samples: int
    warmup: int
    boots: int
    vs_stock: bool = False
    hogs: int = 0
    always: bool = False
    read_only: bool = False
    settle_ms: int = 0
    """Sleep before each move, so that other tasks do not run during it."""
    unmeasured: int = 0
    """Moves there and back before each sample. When a migrator is selected, dcbm and auto forget which way of copying
    is the fastest, and find it out by the first batches."""
    stalls: tuple[Case, ...] = ()
    """The cases for which stallbench then measures how long a thread waits."""
    ends: tuple[int, ...] = (0, 1)
    """The nodes between which memory moves."""
    batch_max_us: int | None = None
    """The limit of all configurations, None where it stays as it is."""

    @property
    def gigantic_folios(self) -> int:
        """How many folios of 1 GiB each node must have."""
        return max((case.memory_bytes // GIGANTIC for case in self.cases if case.folio_bytes == GIGANTIC), default=0)

    @property
    def samples_per_boot(self) -> int:
        """Enough that all boots together give at least `samples`."""
        return -(-self.samples // self.boots)

    def workload(self, kind: str) -> str:
        """Kind of memory, and options that differ from the default; results of different workloads do not compare."""
        hogs = [f"{self.hogs} hogs"] if self.hogs else []
        always = ["dcbm always"] if self.always else []
        read_only = ["read-only"] if self.read_only else []
        limit = [f"batch_max_us {self.batch_max_us}"] if self.batch_max_us is not None else []
        return ", ".join([kind, *read_only, *hogs, *always, *limit])

    @property
    def baseline(self) -> str:
        """The row that ratios are taken against."""
        return "stock" if self.vs_stock else "off"


@dataclass(frozen=True)
class Choice:
    """The migrators to measure, and for each kind of migrator the settings, each of which makes a configuration."""

    migrators: list[str]
    threads: list[int]
    stores: list[str] | None = None
    channels: list[int] | None = None
    verify: list[str] | None = None
    always: bool = False
    migrc: bool = False
    runs: list[str] | None = None
    """Whether each of them is measured with runs `on`, `off` or both; None: one row with runs beside the others."""
    batch_max_us: int | None = None
    """Of all of them."""


def configs(choice: Choice) -> tuple[Config, ...]:
    """`off` without runs first, always: it is a baseline. The others come once per setting of theirs."""
    found = _without_runs(choice)
    on = [replace(config, label="runs" if config.label == "off" else f"{config.label}-runs", runs=True)
          for config in found]
    if choice.runs is None:
        return (*found, on[0])
    return (*found[:None if "off" in choice.runs else 1], *on[:None if "on" in choice.runs else 0])


def _without_runs(choice: Choice) -> list[Config]:
    found = [Config("off", "ferry", "off")]
    for migrator in dict.fromkeys(choice.migrators):
        if migrator == "kernel":
            found.append(Config("kernel", "ferry", "kernel"))
        elif migrator == "mtcopy":
            found += [Config(f"mtcopy{count}" + (f"-{store}" if store else ""), "ferry", "mtcopy", count, store)
                      for store in _each(choice.stores) for count in choice.threads]
        elif migrator == "dcbm":
            found += [Config(f"dcbm{count}" + (f"-{verify}" if verify else ""), "ferry", "dcbm", channels=count,
                             verify=verify, always=choice.always)
                      for verify in _each(choice.verify) for count in choice.channels or [16]]
        elif migrator == "auto":
            found += [Config(f"auto{count or ''}", "ferry", "auto", max(choice.threads), channels=count,
                             always=choice.always)
                      for count in choice.channels or [16]]
    if choice.migrc:
        found = [*(replace(config, migrc=False) for config in found), Config("migrc", "ferry", "off", migrc=True)]
    return [replace(config, batch_max_us=choice.batch_max_us) for config in found]


def _each(words: list[str] | None) -> list[str | None]:
    """The words; without any, one configuration that leaves the setting as it is."""
    return [*words] if words else [None]


def listed(parse: Callable[[str], float | str]) -> Callable[[str], list[float | str]]:
    """An argparse type: a list separated by commas, each value once."""

    def split(text: str) -> list[float | str]:
        found = list(dict.fromkeys(parse(item.strip()) for item in text.split(",") if item.strip()))
        if not found:
            raise argparse.ArgumentTypeError("the list is empty")
        return found

    return split


def folio_size(text: str) -> int:
    """`64k` as bytes; an argparse error names the sizes there are."""
    try:
        return FOLIO_SIZES[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"no folio size '{text}', there are {', '.join(FOLIO_SIZES)}") from None


def bounded(low: int, high: int) -> Callable[[str], int]:
    """An argparse type: a whole number from `low` to `high`."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is no number from {low} to {high}")
        return int(text)

    return parse


def engine_rate(text: str) -> float:
    """`0.2` as a multiple of a CPU's rate."""
    low, high = ENGINE_RATES
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not low <= rate <= high:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from {low:g} to {high:g}")
    return rate


def byte_count(text: str) -> int:
    """`32m` as bytes: a multiple of 2 MiB, so that it is whole folios of every size."""
    unit = {"m": 1 << 20, "g": 1 << 30}.get(text[-1:].lower(), 0)
    count = int(text[:-1]) * unit if text[:-1].isdecimal() else 0
    if not count or count % (2 << 20):
        raise argparse.ArgumentTypeError(f"'{text}' is no multiple of 2m")
    return count


def size_argument(count: int) -> str:
    """Bytes as movebench takes a folio size: 4k, 2m, 1g."""
    if count >= GIGANTIC:
        return f"{count >> 30}g"
    return f"{count >> 20}m" if count >= 1 << 20 else f"{count >> 10}k"


def ends_words(ends: Sequence[int]) -> list[str]:
    """The nodes between which memory moves, as the programs of guest/ take them."""
    start, end = ends
    return ["--from", str(start), "--to", str(end)]


def one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    """An argparse type: one of some names."""

    def check(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(names)}")
        return text

    return check


def checked(plan: Plan) -> Plan:
    """The plan, or UsageError when it could not support a comparison."""
    if plan.samples < MIN_SAMPLES:
        raise UsageError(f"{plan.samples} samples are too few: a comparison needs {MIN_SAMPLES}",
                         hint=f"--samples {MIN_SAMPLES}")
    if plan.read_only and (other := [case.kind for case in plan.cases if case.kind != "anon"]):
        raise UsageError(f"--read-only is for anonymous memory, not for {other[0]}", hint="--kind anon")
    for case in plan.cases:
        possible = sizes_of(case.kind, plan.read_only)
        if case.folio_bytes not in possible:
            raise UsageError(f"memory of this kind ({plan.workload(case.kind)}) does not come in folios of "
                             f"{size_argument(case.folio_bytes)}",
                             hint="--folio " + ",".join(map(size_argument, possible)))
        if case.total_bytes % case.folio_bytes:
            raise UsageError(f"{case.total_bytes >> 20}m are not whole folios of "
                             f"{size_argument(case.folio_bytes)}", hint=f"--bytes {size_argument(case.folio_bytes)}")
    return plan


def sizes_of(kind: str, read_only: bool) -> tuple[int, ...]:
    """The folio sizes that a kind of memory can have, in bytes."""
    if kind == "swapcache":
        return SWAPCACHE_SIZES
    if kind == "hugetlb":
        return HUGETLB_SIZES
    return READ_ONLY_SIZES if read_only else tuple(size for size in FOLIO_SIZES.values() if size != GIGANTIC)
