# SPDX-License-Identifier: GPL-2.0
"""`ferry bench`: measure something, print it, and keep the run."""

from __future__ import annotations

import argparse
from pathlib import Path

from ferry.bench import compaction, copy, memmap, move_pages, stall, tiering, tlb
from ferry.commands.cli import add_global_options
from ferry.errors import AllSkipped
from ferry.profile import breakdown
from ferry.results import formats, report, runs, table
from ferry.results.document import failure_count


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry bench BENCH`; every bench has the same ways out."""
    parser = sub.add_parser("bench", help="measure, print and keep the result")
    benches = parser.add_subparsers(dest="bench", required=True, metavar="BENCH")
    for bench in (move_pages, breakdown, stall, compaction, tiering, copy, memmap, tlb):
        options = bench.add_parser(benches)
        formats.add_option(options)
        options.add_argument("--out", type=Path, metavar="DIR", help="keep the run here (default: a new one in runs/)")
        options.add_argument("--report", action="store_true", help="also write report.html")
        options.set_defaults(measure=bench.bench)
        add_global_options(options, top=False)


def run(args: argparse.Namespace) -> int:
    """Measure, keep, print: 1 when a sample failed, 4 when there was nothing that this guest could measure."""
    with runs.created(args.bench, args.board, args.out) as run_dir:
        document = args.measure(args, run_dir)
    if not document["rows"]:
        raise AllSkipped("; ".join(skip["reason"] for skip in document["skipped"]),
                         hint="ferry bench move_pages --folio 4k")
    runs.finish(run_dir, [document])
    if args.report:
        report.write(run_dir)
    print(formats.render(table.output([document]), args.format))
    return int(failure_count(document) > 0)
