# SPDX-License-Identifier: GPL-2.0
"""Struct pages written at the host's native speed, by the kernel's own code, beside a limit.

The KUnit suite `ferry_zone_device_init_bench` makes the samples inside the kernel, booted as User-Mode Linux. The limit
is the faster of two ways to fill the same bytes with a constant pattern. Paths: full (field by field, the baseline),
nontemporal (copies of a template), auto (the kernel's choice), and parallel (a first binding on two CPUs).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry import boards
from ferry.bench import experiment, guest_samples
from ferry.errors import UsageError
from ferry.kernel import build
from ferry.results import stats
from ferry.results.document import Document, Failure, Row, baseline_of, column, is_baseline

SUITE = "ferry_zone_device_init_bench"
BASELINE = "full"
LIMIT = "limit"
PAGE_BYTES = 4096
FOLIO_BYTES = {"order0": PAGE_BYTES, "compound": 2 << 20}
#: Memory that the host has never touched, as a device's struct pages are at its first binding.
FIRST = "first_"

SAMPLE = "ferry_memmap_sample: "


@dataclass(frozen=True)
class Sample:
    """`pages` struct pages of one layout in so many equal ranges, each initialised on its own."""

    path: str
    layout: str
    round: int
    threads: int
    ranges: int
    pages: int
    struct_page_bytes: int
    ns: int

    @property
    def key(self) -> tuple[str, str, int]:
        """Samples with the same key belong to one row."""
        return self.path, self.layout, self.threads


def bench(args: argparse.Namespace, run_dir: Path) -> Document:
    """Build and measure; UsageError for `--baseline stock`."""
    if args.baseline == "stock":
        raise UsageError("the unpatched kernel has no such test; its code is the path called full",
                         hint="ferry bench memmap, or ferry bench memmap --board x86-numa --baseline stock")
    board = boards.load(args.board)
    kernel = build.build(board, "ferry")
    document = experiment.document("memmap", board, BASELINE, {"ferry": kernel}, {"suite": SUITE})
    fill(document, parse(guest_samples.kunit_lines(board, kernel, SUITE, SAMPLE, run_dir)))
    return document


def parse(lines: Sequence[str]) -> list[Sample]:
    """The samples in a console's lines, whatever stands before them on the line."""
    return [Sample(**event) for event in guest_samples.kunit_events(lines, SAMPLE)]


def fill(document: Document, samples: Sequence[Sample]) -> None:
    """Add the rows, with one limit for each layout, and the ratios."""
    document["meta"]["struct_page_bytes"] = sorted({sample.struct_page_bytes for sample in samples})
    rows = [row([sample for sample in samples if sample.key == key])
            for key in dict.fromkeys(sample.key for sample in samples)]
    for layout in dict.fromkeys(one["layout"] for one in rows):
        name_limit([one for one in rows if one["layout"] == layout])
    # Which candidate is slower differs between runs, so compare would miss its row. Failed samples are shown.
    document["rows"] = [one for one in rows if one["failures"] or not one["path"].startswith(f"{LIMIT}_")]
    for one in document["rows"]:
        full, limit = baseline_of(document, one), limit_of(document, one)
        one["ratio_to_baseline"] = stats.ratio(one, full) if full and not is_baseline(document, one) else None
        if limit is not None and limit is not one:
            one["ratio_to_limit"] = stats.ratio(one, limit)


def row(samples: Sequence[Sample]) -> Row:
    """One path on one layout, in ns a struct page; a sample without a duration is a failed one."""
    first = samples[0]
    good = [sample for sample in samples if sample.ns > 0]
    values = [sample.ns / sample.pages for sample in good]
    cold = first.path.startswith(FIRST)
    return Row(
        kernel="ferry", migrator="off", threads=first.threads, channels=0, folio_bytes=FOLIO_BYTES[first.layout],
        total_bytes=first.pages // first.ranges * PAGE_BYTES, unit="ns_per_page", samples=values,
        sample_ids=[[0, sample.round] for sample in good],
        median=stats.median(values) if values else None, mad=stats.mad(values) if values else None,
        ratio_to_baseline=None, failures=[Failure(boot=0, round=sample.round, reason="it took no time")
                                          for sample in samples if sample.ns <= 0],
        path=first.path.removeprefix(FIRST), layout=first.layout,
        device=f"{first.layout}, first binding" if cold else first.layout,
    )


def name_limit(rows: Sequence[Row]) -> None:
    """Call the fastest of the limit's candidates the limit; `method` keeps how it was reached."""
    candidates = [one for one in rows if one["path"].startswith(f"{LIMIT}_") and one["median"] is not None]
    if candidates:
        best = min(candidates, key=lambda one: one["median"] or 0.0)
        best["method"] = best["path"].removeprefix(f"{LIMIT}_")
        best["path"] = LIMIT


def limit_of(made: Document, one: Row) -> Row | None:
    """The limit in a row's column."""
    rows = (other for other in made["rows"] if other.get("path") == LIMIT)
    return next((other for other in rows if column(other) == column(one)), None)
