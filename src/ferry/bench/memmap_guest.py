# SPDX-License-Identifier: GPL-2.0
"""Real drivers bound to real devices in a guest, timed by a probe on the kernel's own function (guest/kmod).

Devices: an NVDIMM of the machine as fsdax and as devdax of 2 MiB compounds, struct pages on the device itself; and
address space without memory as DEVICE_PRIVATE and GENERIC, the latter also with 2 MiB compounds, whose vmemmap the
kernel deduplicates. A round binds a device once with each configuration.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferry import boards, paths
from ferry.bench import experiment
from ferry.boards import Board
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.results import stats
from ferry.results.document import Document, Failure, Ratio, Row, baseline_of, is_baseline
from ferry.vm import qemu

DEVICES = ("fsdax", "devdax", "private", "generic", "dedup")
#: Of each device's pages, in bytes: devdax and dedup have compound pages.
FOLIO_BYTES = {"fsdax": 4096, "devdax": 2 << 20, "private": 4096, "generic": 4096, "dedup": 2 << 20}
#: name: settings of /sys/module/zone_device_init/parameters (nontemporal, threads). The first is the baseline without
#: stock.
CONFIGS = {"off": "N,1", "auto": "Y,0"}
STOCK = {"stock": ""}
ROUNDS, QUICK_ROUNDS = 30, 10
GIB, QUICK_GIB, MOST_GIB = 64, 16, 256
#: The slowest binding seen took 4 s.
BINDING_S = 30
LOG = "memmap.log"

MARK = re.compile(r"^memmap_mark: device=(\w+) config=(\w+) round=(\d+)$")
EVENT = re.compile(r"^memmap_watch: (\{.*\})$")


@dataclass(frozen=True)
class Binding:
    """One binding: the time of the initialisation, and of the whole call if the module made it (both in ns)."""

    boot: int
    kernel: str
    device: str
    config: str
    round: int
    pages: int = 0
    init_ns: int = 0
    call_ns: int | None = None


@dataclass(frozen=True)
class Plan:
    """`boots` of each kernel; `rounds` after the first binding."""

    gib: int
    rounds: int
    boots: int
    vs_stock: bool

    @property
    def baseline(self) -> str:
        return "stock" if self.vs_stock else "off"


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build the kernels and measure."""
    vs_stock = args.baseline == "stock"
    sweep = Plan(gib=args.gib or (QUICK_GIB if args.quick else GIB), rounds=QUICK_ROUNDS if args.quick else ROUNDS,
                 boots=2 if vs_stock else 1, vs_stock=vs_stock)
    board = qemu.with_nvdimm(boards.load(args.board), sweep.gib, run_dir)
    kernels = {name: build.build(board, name) for name in ["stock"] * vs_stock + ["ferry"]}
    document = experiment.document("memmap", board, sweep.baseline, kernels, dataclasses.asdict(sweep))
    order = {f"{number}-{name}": (number, name) for number in range(sweep.boots) for name in kernels}
    boots = [one_boot(sweep, board, kernels[kernel], name, number, kernel)
             for name, (number, kernel) in order.items()]
    image = run_dir / qemu.NVDIMM_IMAGE
    image.touch()
    try:
        document["warnings"] += experiment.run(boots, run_dir, f"bindings on {board.name}", bindings(sweep))
    finally:
        image.unlink(missing_ok=True)
    fill(document, sweep, [binding for name, which in order.items() for binding in parse(
        (experiment.share_of(run_dir, name) / LOG).read_text().splitlines(), *which)])
    return document


def bindings(sweep: Plan) -> int:
    """How many there are in all: the length of the bar."""
    return sweep.boots * len(DEVICES) * (sweep.rounds + 1) * (len(CONFIGS) + sweep.vs_stock)


def one_boot(sweep: Plan, board: Board, kernel: Kernel, name: str, number: int, kernel_name: str) -> experiment.Boot:
    """A boot that binds the devices; boots take turns in which configuration has the first binding."""
    configs = list((STOCK if kernel_name == "stock" else CONFIGS).items())[:: -1 if number % 2 else 1]
    words = ["sh", str(paths.repo_root() / "guest/scripts/memmap-bench.sh"), str(kernel.modules["memmap_watch"]),
             LOG, str(sweep.rounds), str(sweep.gib), " ".join(DEVICES),
             " ".join(f"{config}={settings}" for config, settings in configs)]
    return experiment.Boot(name, board, kernel, f"{shlex.join(words)}\n", "memmap_mark:", timeout_s=board.boot_timeout_s
                           + BINDING_S * len(DEVICES) * len(configs) * (sweep.rounds + 1))


def parse(lines: Sequence[str], number: int, kernel: str) -> list[Binding]:
    """The bindings in a guest's log; one without a report after its mark has no pages."""
    found: list[Binding] = []
    for line in lines:
        if mark := MARK.match(line):
            found.append(Binding(number, kernel, mark[1], mark[2], int(mark[3])))
        elif found and (event := EVENT.match(line)):
            found[-1] = _add_event(found[-1], json.loads(event[1]))
    return found


def _add_event(binding: Binding, event: dict[str, Any]) -> Binding:
    """The binding with the figures of one report."""
    if event["event"] == "init":
        return dataclasses.replace(binding, pages=event["pages"], init_ns=event["ns"])
    if event["event"] == "remap":
        return dataclasses.replace(binding, call_ns=event["remap_ns"])
    return binding


def fill(document: Document, sweep: Plan, found: Sequence[Binding]) -> None:
    """Add rows and ratios: the initialisation of each device, and the whole call where it was timed."""
    keys = dict.fromkeys((one.kernel, one.device, one.config) for one in found)
    counts = document["kind"] == "instructions"
    firsts = first_bindings(found)
    for key in keys:
        mine = [one for one in found if (one.kernel, one.device, one.config) == key]
        first = [one for one in mine if one in firsts]
        again = [one for one in mine if one not in firsts]
        document["rows"].append(row(again, sweep, key, "", counts))
        if first:
            document["rows"].append(row(first, sweep, key, ", first", counts))
        if any(one.call_ns for one in mine):
            whole = [dataclasses.replace(one, init_ns=one.call_ns or 0) for one in again]
            document["rows"].append(row(whole, sweep, key, ", whole call", counts))
    for one in document["rows"]:
        one["ratio_to_baseline"] = _ratio(document, one)


def first_bindings(found: Sequence[Binding]) -> list[Binding]:
    """The first binding of each device in each boot, in whichever configuration: it touches the memory first."""
    firsts: dict[tuple[int, str, str], Binding] = {}
    for one in found:
        firsts.setdefault((one.boot, one.kernel, one.device), one)
    return list(firsts.values())


def _ratio(document: Document, one: Row) -> Ratio | None:
    """Of samples of one boot in pairs; between kernels, which no boot has both of, of their medians."""
    baseline = baseline_of(document, one)
    if baseline is None or is_baseline(document, one) or not one["samples"] or not baseline["samples"]:
        return None
    if baseline["kernel"] == one["kernel"]:
        return stats.ratio(one, baseline)
    ours, theirs = (stats.groups_of(stats.by_boot(row)) for row in (one, baseline))
    return stats.ratio_between(theirs, ours)


def row(bindings: Sequence[Binding], sweep: Plan, key: tuple[str, str, str], what: str, counts: bool) -> Row:
    """One configuration of one device, in ns or instructions a struct page."""
    kernel, device, config = key
    good = [one for one in bindings if one.pages and one.init_ns]
    values = [one.init_ns / one.pages for one in good]
    return Row(
        kernel=kernel, migrator="off", threads=0, channels=0, folio_bytes=FOLIO_BYTES[device],
        total_bytes=sweep.gib << 30, unit="instructions_per_page" if counts else "ns_per_page", samples=values,
        sample_ids=[[one.boot, one.round] for one in good],
        median=stats.median(values) if values else None, mad=stats.mad(values) if values else None,
        ratio_to_baseline=None,
        failures=[Failure(boot=one.boot, round=one.round, reason="no report by the kernel")
                  for one in bindings if one not in good],
        path=config, device=device + what,
    )
