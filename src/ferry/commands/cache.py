# SPDX-License-Identifier: GPL-2.0
"""The verb `cache`: list what the cache holds, and remove what was not used for long."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime

from ferry import cache, paths, progress
from ferry.cache import Entry
from ferry.errors import UsageError
from ferry.results import formats

SCHEMA = 2


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry cache list|prune`."""
    parser = sub.add_parser("cache", help="list the cache's entries, or remove those not used for some days")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    listing = actions.add_parser("list", help="kind, size, last use and age of each entry (the default)")
    for printing in (parser, listing):
        formats.add_option(printing)
    prune = actions.add_parser("prune", help="remove entries that no ferry has used for some days",
                               description="Remove entries that no ferry has used for some days, and that none uses "
                                           "now. ferry fetches or builds again what it needs.")
    prune.add_argument("--older-than", type=float, required=True, metavar="DAYS", help="since the last use")
    prune.add_argument("--dry-run", action="store_true", help="only print what would be removed")


def run(args: argparse.Namespace) -> int:
    listed = cache.entries()
    sized = list(zip(listed, cache.sizes(listed), strict=True))
    if args.action == "prune":
        prune(sized, args.older_than, dry_run=args.dry_run)
    else:
        print(formats.render(output(sized), args.format))
    return 0


def prune(sized: Sequence[tuple[Entry, int]], days: float, *, dry_run: bool) -> None:
    """Remove the entries older than that, and print each with its size. Raises UsageError for a negative age."""
    if days < 0:
        raise UsageError(f"--older-than {days:g} is no number of days", hint="--older-than 30")
    freed = busy = count = 0
    for entry, size in sized:
        if entry.age_days < days:
            continue
        if cache.in_use(entry) if dry_run else not cache.remove(entry):
            busy += 1
            continue
        print(f"{entry.kind:15}{_name(entry):40}{size / 1e6:8.0f} MB  {entry.age_days:.0f} days")
        freed, count = freed + size, count + 1
    progress.note(f"{'would remove' if dry_run else 'removed'} {count} entries, {freed / 1e9:.1f} GB"
                  + (f"; {busy} are in use" if busy else ""))


def output(sized: Sequence[tuple[Entry, int]]) -> formats.Output:
    """The list of entries. Sizes are on the disk: a file that two entries share counts in the first."""
    records = [{"kind": entry.kind, "entry": _name(entry), "bytes": size, "in_use": cache.in_use(entry),
                "last_use": f"{datetime.fromtimestamp(entry.used, UTC):%Y-%m-%dT%H:%M:%SZ}",
                "age_days": round(entry.age_days, 2)} for entry, size in sized]
    rows = [[[str(line["kind"])], [str(line["entry"])], [f"{size / 1e6:,.0f}"], [str(line["last_use"])[:10]],
             [f"{entry.age_days:.0f}"], ["now" if line["in_use"] else ""]]
            for line, (entry, size) in zip(records, sized, strict=True)]
    columns = ["kind", "entry", "MB", "last use", "days", "in use"]
    whole = f"{sum(size for _, size in sized) / 1e9:.1f} GB in {paths.cache_dir()}"
    return formats.Output([formats.Grid(whole, columns, rows)], {"schema": SCHEMA, "entries": records}, records)


def _name(entry: Entry) -> str:
    """Its path below the directory of its kind."""
    inside = entry.path.relative_to(paths.cache_dir())
    return str(inside.relative_to(entry.kind)) if inside.parts[0] == entry.kind != str(inside) else str(inside)
