# SPDX-License-Identifier: GPL-2.0
"""The phases of `ferry bench breakdown` where nothing counts instructions: the copy by a tracepoint, and the rest.

Only a migrator has the tracepoint ferry:ferry_copy_end, which says how long a batch took to copy. Without a migrator
each folio is copied in the middle of its move, and only the total is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ferry.bench import guest_samples
from ferry.bench.movebench import Outcome
from ferry.bench.plan import Config, Plan
from ferry.boards import Board
from ferry.errors import InfraError
from ferry.profile.breakdown_method import Sample, Turn
from ferry.results.breakdown_table import COPY

REST = "all but the copy"
_TRACE = "trace"
_TRACEFS = "/sys/kernel/tracing"
_ENABLE = (f"test -e {_TRACEFS}/trace || mount -t tracefs tracefs {_TRACEFS}; echo mono >{_TRACEFS}/trace_clock && "
           f"echo 1 >{_TRACEFS}/events/ferry/ferry_copy_end/enable")
_EVENT = re.compile(r" (\d+)\.(\d{6}): ferry_copy_end: .* ns=(\d+)$", re.MULTILINE)
_WRITTEN = re.compile(r"entries-in-buffer/entries-written: (\d+)/(\d+)")


def recorded(board: Board, share: Path) -> Board:
    """Any board can."""
    return board


def commands(kernel: str) -> list[list[str]]:
    """The unpatched kernel has no migrator to trace. The trace is written when the guest's script ends."""
    return [] if kernel == "stock" else [["sh", "-c", _ENABLE], ["trap", f"cat {_TRACEFS}/trace >{_TRACE}", "EXIT"]]


def phases(config: Config) -> list[str]:
    """Of migrators only."""
    return [] if config.migrator == "off" else [COPY, REST]


def samples(share: Path, sweep: Plan, configs: Sequence[Config], outcome: Outcome) -> dict[Turn, Sample]:
    """Raises InfraError if the guest has lost events."""
    (case,) = sweep.cases
    copies = list(_copies(share / _TRACE))
    migrators = {config.label for config in configs if phases(config)}
    found = {}
    for event in guest_samples.events(guest_samples.text_of(share / f"{case.name}.jsonl")):
        if event.get("event") != "sample" or event["warmup"] or not event["pages_moved"]:
            continue
        ways = [(event[f"at_{way}"], event[f"ns_{way}"]) for way in ("there", "back")]
        # The trace has microseconds, rounded down.
        copied = sum(ns for at, ns in copies if any(begin - 1000 <= at <= begin + took for begin, took in ways))
        total, pages = sum(took for _, took in ways), event["pages_moved"]
        by_phase = {COPY: copied / pages, REST: (total - copied) / pages} if event["config"] in migrators else {}
        found[event["config"], event["round"]] = Sample(by_phase)
    return found


def _copies(path: Path) -> Iterator[tuple[int, int]]:
    """When each copy ended, and how long it took (ns)."""
    text = guest_samples.text_of(path)
    if (written := _WRITTEN.search(text)) and written[1] != written[2]:
        raise InfraError(f"the trace has {written[1]} of {written[2]} events", log=path)
    for seconds, microseconds, ns in _EVENT.findall(text):
        yield int(seconds) * 10**9 + int(microseconds) * 1000, int(ns)


def remove(share: Path) -> None:
    """A trace of batches is small."""
