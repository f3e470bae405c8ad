# SPDX-License-Identifier: GPL-2.0
"""`ferry bench copy`: how fast the copy engine copies folios at the host's native speed, beside two limits.

The KUnit suite `ferry_copy_bench` makes the samples inside the kernel, booted as User-Mode Linux. The limits are plain
memcpy on one thread, and plain threads that copy the same bytes without any migration around them. Both threads and
mtcopy have 2, 4, 8 and 16 threads, as far as the guest has CPUs.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry import boards
from ferry.bench import experiment, guest_samples, plan
from ferry.boards import Board
from ferry.kernel import build
from ferry.kernel.build import Kernel
from ferry.results import stats
from ferry.results.document import Document, Failure, Ratio, Row, baseline_of, is_baseline

NAME = "copy"
SUITE = "ferry_copy_bench"
BASELINE = "memcpy"
THREADS = "threads"

SAMPLE = "ferry_copy_sample: "
#: Why a sample of mtcopy with 0 ns has failed: it would be the copy of one thread.
NO_HELPER = "no other CPU was idle"
#: As many as the board's kernel can have: CONFIG_NR_CPUS in kernel/configs/uml.config.
MAX_CPUS = 16


@dataclass(frozen=True)
class Sample:
    """One timed copy of `total_bytes`; 0 ns if mtcopy should have had a helper and had none."""

    method: str
    threads: int
    folio_bytes: int
    total_bytes: int
    round: int
    ns: int

    @property
    def key(self) -> tuple[int, str, int, int]:
        """Samples with the same key belong to one row. Sorts by folio size, the limits before the migrator."""
        return self.folio_bytes, self.method, self.threads, self.total_bytes


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The options of this bench."""
    parser = sub.add_parser(NAME, help="copy folios at native speed, beside memcpy and plain threads")
    parser.add_argument("--board", default="uml", choices=("uml",), help="default: uml")
    parser.add_argument("--cpus", type=plan.bounded(2, MAX_CPUS), metavar="N",
                        help=f"CPUs of the guest, 2 to {MAX_CPUS}, and so the most threads; default: the board's, 2")
    parser.add_argument("--quick", action="store_true", help="accepted everywhere; this bench is always quick")
    return parser


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build the kernel and measure."""
    board = boards.load(args.board)
    board = dataclasses.replace(board, cpus=args.cpus or board.cpus)
    return measure(board, build.build(board, "ferry"), run_dir)


def measure(board: Board, kernel: Kernel, run_dir: Path) -> Document:
    """Measure on a kernel; InfraError if the suite prints no sample."""
    document = experiment.document(NAME, board, BASELINE, {"ferry": kernel}, {"suite": SUITE, "cpus": board.cpus})
    if board.cpus > (host := len(os.sched_getaffinity(0))):
        document["warnings"].append(f"the guest's {board.cpus} CPUs share {host} of this host")
    fill(document, parse(guest_samples.kunit_lines(board, kernel, SUITE, SAMPLE, run_dir)))
    return document


def parse(lines: Sequence[str]) -> list[Sample]:
    """The samples in a console's lines, whatever stands before them on the line."""
    return [Sample(**event) for event in guest_samples.kunit_events(lines, SAMPLE)]


def fill(document: Document, samples: Sequence[Sample]) -> None:
    """Add the rows and their ratios to a document that has none."""
    expected = {sample.round for sample in samples}
    keys = dict.fromkeys(sample.key for sample in samples)
    document["rows"] = [row([sample for sample in samples if sample.key == key], expected) for key in keys]
    for one in document["rows"]:
        if not is_baseline(document, one):
            one["ratio_to_baseline"] = _ratio(one, baseline_of(document, one))
        if one["migrator"] == "mtcopy":
            one["ratio_to_threads"] = _ratio(one, threads_row(document, one))


def _ratio(one: Row, other: Row | None) -> Ratio | None:
    return stats.ratio(one, other) if other else None


def threads_row(document: Document, one: Row) -> Row | None:
    """Plain threads, as many as this row has, copying the same bytes: the limit."""
    same = ("threads", "folio_bytes", "total_bytes")
    rows = (row for row in document["rows"] if row.get("method") == THREADS)
    return next((row for row in rows if all(row.get(key) == one.get(key) for key in same)), None)


def row(samples: Sequence[Sample], expected: set[int]) -> Row:
    """One method at one size; a round that others have and this one lacks is a failed sample."""
    first = samples[0]
    good = [sample for sample in samples if sample.ns > 0]
    alone = {sample.round for sample in samples} - {sample.round for sample in good}
    lacking = sorted(expected - {sample.round for sample in good})
    values = [sample.total_bytes / sample.ns for sample in good]
    made = Row(
        kernel="ferry", migrator="mtcopy" if first.method.startswith("mtcopy") else "off", threads=first.threads,
        channels=0, folio_bytes=first.folio_bytes, total_bytes=first.total_bytes, unit="gbps", samples=values,
        sample_ids=[[0, sample.round] for sample in good],
        median=stats.median(values) if values else None, mad=stats.mad(values) if values else None,
        ratio_to_baseline=None, method=first.method,
        failures=[Failure(boot=0, round=turn, reason=NO_HELPER if turn in alone else "no sample") for turn in lacking],
    )
    return made
