# SPDX-License-Identifier: GPL-2.0
"""Made-up output of movebench and stallbench, and documents, for the tests. None of these figures was ever measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ferry.bench import stallbench, stalls
from ferry.bench.movebench import Outcome, counters, samples
from ferry.bench.plan import Case, Choice, Plan, configs
from ferry.bench.rows import BootResult, fill
from ferry.results.document import SCHEMA, Document

PAGE = 4096
TOTAL = 1 << 20
COPIERS = ("kernel", "mtcopy", "dcbm", "auto")

#: How the made-up samples of a row wobble: enough for an interval to have a width.
WOBBLE = (1.00, 1.01, 0.99, 1.02, 0.98, 1.00, 1.01, 0.99, 1.00, 1.03)


def lines(costs: Mapping[str, float], folio_bytes: int = PAGE, count: int = 10, **spoil: Any) -> str:
    """movebench's lines: `costs` is nanoseconds a page by configuration; `spoil` overrides keys of the last sample."""
    pages = TOTAL // PAGE
    events: list[dict[str, Any]] = [{"event": "start", "folio_bytes": folio_bytes, "bytes": TOTAL}]
    for turn in range(-1, count):
        for number, (config, cost) in enumerate(costs.items()):
            ns = round(cost * pages * WOBBLE[(turn + number) % len(WOBBLE)])
            events.append({"event": "sample", "config": config, "round": turn + 1, "warmup": turn < 0, "ns_there": ns,
                           "ns_back": ns, "pages_moved": 2 * pages, "pages_failed": 0, "bytes": 2 * TOTAL,
                           "copied_bytes": 2 * TOTAL * config.startswith(COPIERS), "copied_ns": 0})
    events[-1] |= spoil
    return "".join(json.dumps(event) + "\n" for event in [*events, {"event": "end"}])


def stats_text(**counted: int) -> str:
    """What `grep -r . stats migrc/counters` prints: mtcopy_folios=3 is mtcopy/folios."""
    base = "/sys/kernel/mm/migration"
    parts = [(*name.split("_", 1), count) for name, count in counted.items()]
    return "".join(f"{base}/{'migrc/counters' if of == 'migrc' else f'stats/{of}'}/{name}:{count}\n"
                   for of, name, count in parts)


def outcome(text: str, status: int | None = 0, stderr: str = "", **counted: int) -> Outcome:
    """As movebench.outcome reads it from a guest's share."""
    return Outcome(status, list(samples(text)), stderr, counters(stats_text(**counted)))


def leave(share: Path, folio_bytes: int, text: str, status: int = 0, stderr: str = "", **counted: int) -> None:
    """What a guest leaves in its share for one folio size."""
    parts = {"jsonl": text, "stderr": stderr, "status": f"{status}\n", "stats": stats_text(**counted)}
    for suffix, content in parts.items():
        (share / f"{Case(folio_bytes, TOTAL).name}.{suffix}").write_text(content)


def stall_event(label: str, turn: int, requests: int, p99_ns: int, **more: object) -> dict[str, object]:
    """A sample as stallbench prints it."""
    return {"event": "sample", "config": label, "round": turn, "warmup": False, "ns": 1_000_000_000, "round_trips": 4,
            "pages_failed": 2, "requests": requests, "p50_ns": 1000, "p99_ns": p99_ns, "p999_ns": 2 * p99_ns,
            "max_ns": 3 * p99_ns, **more}


def leave_stalls(share: Path, name: str, p99s: Mapping[str, int], count: int = stalls.SAMPLES, status: int = 0,
                 **spoil: Any) -> None:
    """What a stallbench leaves in its share, by p99 in ns of each configuration; `spoil` is of the last sample."""
    events = [stall_event(label, turn, 1000, p99 + 1000 * turn) for turn in range(count) for label, p99 in p99s.items()]
    events[-1] |= spoil
    parts = {"jsonl": "".join(json.dumps(event) + "\n" for event in events), "status": f"{status}\n",
             "stderr": "stallbench: made up\n" if status else ""}
    for suffix, content in parts.items():
        (share / f"{name}.{suffix}").write_text(content)


def stall_outcome(p99s: Mapping[str, int]) -> stallbench.Outcome:
    """The outcome of a stallbench, by p99 in ns of each configuration."""
    return stallbench.Outcome(0, [
        stallbench.Sample(label, turn, stallbench.figures(stall_event(label, turn, 1000, p99 + 1000 * turn), Path()))
        for turn in range(stalls.SAMPLES) for label, p99 in p99s.items()], "")


def case(folio_bytes: int = PAGE) -> Case:
    """What one movebench moves."""
    return Case(folio_bytes, TOTAL)


def plan(sizes: Sequence[int] = (PAGE,), **more: Any) -> Plan:
    """A sweep of off, kernel and mtcopy with 1 and 2 threads."""
    values: dict[str, Any] = {"samples": 10, "warmup": 1, "boots": 1} | more
    chosen = configs(Choice(["kernel", "mtcopy"], [1, 2], runs=["off"]))
    return Plan(configs=chosen, cases=tuple(case(size) for size in sizes), **values)


def document(costs: Mapping[str, float] | None = None, *, kind: str = "emulated", unit: str = "gbps") -> Document:
    """The document of a sweep at two folio sizes in one boot, by nanoseconds a page."""
    chosen = costs or {"off": 100.0, "kernel": 95.0, "mtcopy1": 98.0, "mtcopy2": 60.0}
    sweep = plan((PAGE, 2 << 20), stalls=(case(),))
    boot = BootResult(0, "ferry", {case: outcome(lines(chosen, case.folio_bytes), kernel_folios=9,
                                                 mtcopy_folios=9 + case.folio_bytes) for case in sweep.cases},
                      {case(): stall_outcome({name: 7000 * len(name) for name in chosen})})
    made = Document(schema=SCHEMA, bench="move_pages", board="x86-numa", kind=kind, baseline="off", rows=[],
                    meta={"host": {"cpu": "made up"}, "command": "ferry <made up>"})
    fill(made, sweep, [boot], unit)
    return made
