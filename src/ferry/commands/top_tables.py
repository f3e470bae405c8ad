# SPDX-License-Identifier: GPL-2.0
"""What the verb `top` shows: copies by migrator and reason, what moved for each reason, the parts' own counters."""

from __future__ import annotations

from ferry.control.histogram import Histogram, percentile
from ferry.control.rates import CopyRates, Interval, ReasonRates, copy_rates, number, reason_rates
from ferry.control.tree import Choice
from ferry.results.formats import Grid

COPY_COLUMNS = {"MB/s": "bytes", "folios/s": "folios", "batches/s": "batches", "fallback\nfolios/s": "fallbacks",
                "rejected\nbatches/s": "rejected"}
"""Column and counter."""
REASON_COLUMNS = ["reason", "migrator", "moved\npages/s", "failed\npages/s", "locked\np50", "locked\np99",
                  "limit\nMB/s", "throttled\ns/s"]


def grids(interval: Interval) -> list[Grid]:
    """Both tables."""
    selected = interval.after.values.get("migrator")
    title = f"copies, with {selected.selected if isinstance(selected, Choice) else '?'} selected"
    copies = Grid(title, ["migrator", "reason", "copy\nGB/s", *COPY_COLUMNS, "skipped/s"],
                  [_copy_row(one) for one in copy_rates(interval)], keys=2)
    reasons = Grid("base pages by reason", REASON_COLUMNS, [_reason_row(one) for one in reason_rates(interval)])
    return [copies, reasons]


def _copy_row(one: CopyRates) -> list[list[str]]:
    figures = [one.rates.get(file, 0.0) / (10**6 if file == "bytes" else 1) for file in COPY_COLUMNS.values()]
    skipped = [f"{rate(value)} {file.removeprefix('skipped_')}" for file, value in one.rates.items()
               if file.startswith("skipped_") and value]
    return [[one.of.migrator], [one.of.reason or "all"], ["-" if one.gbps is None else f"{one.gbps:.2f}"],
            *([rate(figure)] for figure in figures), skipped or ["0"]]


def _reason_row(one: ReasonRates) -> list[list[str]]:
    return [[one.reason], [one.migrator or "-"], [rate(one.moved_pages)], [rate(one.failed_pages)],
            [bound(one.locked, 0.5)], [bound(one.locked, 0.99)],
            [rate(one.max_bytes_per_s / 10**6) if one.max_bytes_per_s else "-"], [f"{one.throttled_share:.2f}"]]


def parts(interval: Interval) -> list[str]:
    """One line for migrc and one for dcbm, where present."""
    now, notes = interval.after, []
    if "migrc/quarantined_bytes" in now.values:
        flushes = sum(interval.rate(name) for name in now.values if name.startswith("migrc/counters/flushed_"))
        notes.append(f"migrc: {number(now, 'migrc/quarantined_bytes') / 10**6:,.1f} MB in quarantine, "
                     f"{rate(interval.rate('migrc/counters/folios'))} folios/s deferred, {rate(flushes)} flushes/s")
    if "dcbm/counters/copied_bytes" in now.values:
        failed = sum(interval.rate(f"dcbm/counters/{name}") for name in ("errors", "timeouts", "verify_failures"))
        notes.append(f"dcbm: {rate(interval.rate('dcbm/counters/copied_bytes') / 10**6)} MB/s by channels, "
                     f"{rate(failed)} failed descriptors/s, {number(now, 'dcbm/counters/hung_pages')} pages hung, "
                     f"{number(now, 'dcbm/counters/leaked_pages')} leaked")
    return notes


def rate(value: float) -> str:
    """Enough digits to tell rare from never."""
    return "0" if not value else f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def bound(locked: Histogram, share: float) -> str:
    """A percentile in milliseconds, as far as the histogram's bounds tell."""
    bound_us = percentile(locked, share)
    if bound_us is None:
        return "-"
    above = bound_us == float("inf")
    return f"> {max(locked.buckets, default=0) / 1000:g} ms" if above else f"<= {bound_us / 1000:g} ms"
