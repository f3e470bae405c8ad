# SPDX-License-Identifier: GPL-2.0
"""The guest's stallbench: the script that runs it for each workload, and its samples.

For each workload the script leaves in $FERRY_SHARE: WORKLOAD.jsonl, WORKLOAD.stderr, WORKLOAD.status, and for redis the
output of redis-benchmark of each sample, which the sample names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferry.bench import guest_samples
from ferry.bench.plan import Config
from ferry.debian import packages
from ferry.vm import guest_programs

PROGRAM = "stallbench"
TOUCH, REDIS, FULL, TMPFS = "touch", "redis", "full", "tmpfs"
WORKLOADS = (TOUCH, REDIS, FULL, TMPFS)
#: What a `ferry bench stall` without --workload measures.
DEFAULT = (TOUCH, REDIS)
BASE_BYTES, HUGE_BYTES = 4 << 10, 2 << 20
#: With redis's own data about 100 MiB.
KEYS, VALUE_BYTES = 25_000, 4096
#: What moves in each workload, but for the program's own memory.
TOTAL_BYTES = {TOUCH: 128 << 20, REDIS: KEYS * VALUE_BYTES, FULL: 16 * HUGE_BYTES, TMPFS: 16 * HUGE_BYTES}
FOLIO_BYTES = {TOUCH: BASE_BYTES, REDIS: BASE_BYTES, FULL: HUGE_BYTES, TMPFS: HUGE_BYTES}
#: Options of the workloads that are no other program's.
OPTIONS: dict[str, tuple[str, ...]] = {
    TOUCH: (),
    FULL: ("--memory", "huge", "--full", "--waits", "--request-pages", "1"),
    TMPFS: ("--memory", "tmpfs", "--request-pages", "1"),
}
FIGURES = ("requests_per_second", "round_trips_per_second", "p50_us", "p99_us", "p999_us", "max_us")


@dataclass(frozen=True)
class Load:
    """How much of each workload makes one sample."""

    touch_ms: int
    redis_requests: int


@dataclass(frozen=True)
class Sample:
    """One configuration under load for some seconds. `figures` has a value for each of FIGURES, and failed_folios."""

    config: str
    round: int
    figures: dict[str, float]


@dataclass(frozen=True)
class Outcome:
    """The result of one stallbench. `status` is None if the guest died before it could write one."""

    status: int | None
    samples: list[Sample]
    stderr: str

    @property
    def reason(self) -> str:
        """Why there are fewer samples than asked for."""
        return guest_samples.reason(PROGRAM, self.status, self.stderr)


def script(workloads: Sequence[str], configs: Sequence[Config], load: Load, samples: int,
           first: Sequence[Sequence[str]]) -> str:
    """The shell commands of one boot."""
    program = str(guest_programs.programs()[PROGRAM])
    lines = ["set -u", *(f"{shlex.join(command)} || exit 3" for command in first)]
    for workload in workloads:
        words = [program, "--samples", str(samples), "--warmup", "1"]
        words += [word for config in configs for word in ("--config", config.argument)]
        if workload in OPTIONS:
            command = shlex.join([*words, *OPTIONS[workload], "--bytes", str(TOTAL_BYTES[workload]),
                                  "--load-ms", str(load.touch_ms)])
        else:
            server = packages.with_libraries("redis-server")
            programs = [shlex.join(packages.run_unpacked(server, f"usr/bin/{name}"))
                        for name in ("redis-server", "redis-benchmark")]
            start = guest_programs.script_line("redis.sh", *programs, KEYS, VALUE_BYTES, load.redis_requests)
            command = f"{start} {shlex.join(words)}"
        out = f'"$FERRY_SHARE"/{workload}'
        lines.append(f"{{ {command} 2>{out}.stderr; echo $? >{out}.status; }} | tee {out}.jsonl")
    return "\n".join([*lines, "exit 0", ""])


def outcome(share: Path, workload: str) -> Outcome:
    """The outcome of one workload, read from `share`."""
    events = guest_samples.events(guest_samples.text_of(share / f"{workload}.jsonl"))
    found = [Sample(event["config"], event["round"], figures(event, share)) for event in events
             if event.get("event") == "sample" and not event["warmup"]]
    return Outcome(guest_samples.status_of(share / f"{workload}.status"), found,
                   guest_samples.text_of(share / f"{workload}.stderr"))


def figures(event: dict[str, Any], share: Path) -> dict[str, float]:
    """FIGURES of one sample, and how many folios failed to move in a round trip."""
    trips = {"round_trips_per_second": 1e9 * event["round_trips"] / event["ns"],
             "failed_folios": event["pages_failed"] / max(event["round_trips"], 1)}
    if "output" in event:
        return trips | of_redis(guest_samples.text_of(share / event["output"]))
    waits = {f"{name}_us": event[f"{name}_ns"] / 1000 for name in ("p50", "p99", "p999", "max")}
    return trips | waits | {"requests_per_second": 1e9 * event["requests"] / event["ns"]}


def of_redis(text: str) -> dict[str, float]:
    """FIGURES but for the round trips, from what redis-benchmark prints; without what it did not print."""
    found = {}
    if rate := re.search(r"throughput summary: ([\d.]+) requests per second", text):
        found["requests_per_second"] = float(rate[1])
    # Percentiles double their distance to 100 %: 99.902 % is the first that is not below 99.9 %.
    reached = [(float(percent), round(1000 * float(ms), 3)) for percent, ms
               in re.findall(r"^([\d.]+)% <= ([\d.]+) milliseconds \(cumulative", text, re.MULTILINE)]
    for name, wanted in (("p50_us", 50.0), ("p99_us", 99.0), ("p999_us", 99.9), ("max_us", 100.0)):
        if us := next((us for percent, us in reached if percent >= wanted), None):
            found[name] = us
    return found
