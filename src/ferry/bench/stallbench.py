# SPDX-License-Identifier: GPL-2.0
"""The guest's stallbench: the script that runs it for each workload, and its samples.

For each workload the script leaves in $FERRY_SHARE: WORKLOAD.jsonl, WORKLOAD.stderr, WORKLOAD.status, and for redis the
output of redis-benchmark of each sample, which the sample names.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferry.bench import guest_samples
from ferry.bench.plan import GIGANTIC, Config, ends_words
from ferry.control import histogram
from ferry.control.histogram import Histogram
from ferry.debian import packages
from ferry.results import stats
from ferry.results.document import Failure
from ferry.vm import guest_programs

PROGRAM = "stallbench"
TOUCH, HUGE, REDIS, FULL, TMPFS, HUGETLB = "touch", "huge", "redis", "full", "tmpfs", "hugetlb"
WORKLOADS = (TOUCH, HUGE, REDIS, FULL, TMPFS, HUGETLB)
#: What a `ferry bench stall` without --workload measures.
DEFAULT = (TOUCH, REDIS)
BASE_BYTES, HUGE_BYTES = 4 << 10, 2 << 20
#: With redis's own data about 140 MiB.
KEYS, VALUE_BYTES = 25_000, 4096
#: What moves in each workload, but for the program's own memory.
TOTAL_BYTES = {TOUCH: 128 << 20, HUGE: 128 << 20, REDIS: KEYS * VALUE_BYTES, FULL: 16 * HUGE_BYTES,
               TMPFS: 16 * HUGE_BYTES, HUGETLB: GIGANTIC}
FOLIO_BYTES = {TOUCH: BASE_BYTES, HUGE: HUGE_BYTES, REDIS: BASE_BYTES, FULL: HUGE_BYTES, TMPFS: HUGE_BYTES,
               HUGETLB: GIGANTIC}
#: Options of the workloads that are no other program's.
OPTIONS: dict[str, tuple[str, ...]] = {
    TOUCH: (),
    HUGE: ("--memory", "huge", "--waits", "--request-pages", "1"),
    FULL: ("--memory", "huge", "--full", "--waits", "--request-pages", "1"),
    TMPFS: ("--memory", "tmpfs", "--request-pages", "1"),
    HUGETLB: ("--memory", "hugetlb", "--request-pages", "1"),
}
FIGURES = ("requests_per_second", "round_trips_per_second", "p50_us", "p99_us", "p999_us", "max_us")
#: Of workloads whose percentiles are of the requests in which the thread slept, the number of these.
WAITS = "waits"
#: The least bound of the kernel's histogram that the time with locked folios did not exceed in 99 % of the batches, and
#: the number of batches.
LOCKED_P99, LOCKED_BATCHES = "locked_p99_us", "locked_batches"
#: The reason of migration of move_pages(2) and migrate_pages(2).
REASON = "syscall_or_cpuset"


@dataclass(frozen=True)
class Load:
    """How much of each workload makes one sample."""

    touch_ms: int
    redis_requests: int


@dataclass(frozen=True)
class Sample:
    """One configuration under load for some seconds.

    `figures` has a value for each of FIGURES, and failed_folios and, of some workloads, WAITS.
    """

    config: str
    round: int
    figures: dict[str, float]
    locked: Histogram | None = None
    """Of its batches; None on a kernel that does not count them."""


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
           first: Sequence[Sequence[str]], ends: Sequence[int]) -> str:
    """The shell commands of one boot; memory moves between the nodes `ends`."""
    program = guest_programs.programs()[PROGRAM]
    lines = ["set -u", *(f"{shlex.join(command)} || exit 3" for command in first)]
    for workload in workloads:
        words = [*repeated(program, configs, samples, ends), "--warmup", "1"]
        if workload in OPTIONS:
            command = shlex.join([*words, *options(workload, TOTAL_BYTES[workload], load.touch_ms)])
        else:
            server = packages.with_libraries("redis-server")
            programs = [shlex.join(packages.run_unpacked(server, name))
                        for name in ("redis-server", "redis-benchmark")]
            start = guest_programs.script_line("redis.sh", *programs, KEYS, VALUE_BYTES, load.redis_requests)
            command = f"{start} {shlex.join(words)}"
        lines.append(line(command, workload))
    return "\n".join([*lines, "exit 0", ""])


def repeated(program: Path, configs: Sequence[Config], samples: int, ends: Sequence[int]) -> list[str]:
    """The words that run stallbench for `samples` of each configuration, in turn."""
    return [str(program), "--samples", str(samples), *ends_words(ends),
            *(word for config in configs for word in ("--config", config.argument))]


def options(workload: str, total_bytes: int, load_ms: int) -> list[str]:
    """The words of a workload that is no other program's: what it moves, and how long a sample takes at least."""
    return [*OPTIONS[workload], "--bytes", str(total_bytes), "--load-ms", str(load_ms)]


def line(command: str, name: str) -> str:
    """The shell line that runs a stallbench and leaves what outcome() reads under this name."""
    out = f'"$FERRY_SHARE"/{name}'
    return f"{{ {command} 2>{out}.stderr; echo $? >{out}.status; }} | tee {out}.jsonl"


def outcome(share: Path, name: str) -> Outcome:
    """The outcome of the stallbench of this name, which is a workload's in script(), read from `share`."""
    events = guest_samples.events(guest_samples.text_of(share / f"{name}.jsonl"))
    found = [Sample(event["config"], event["round"], figures(event, share), locked(event)) for event in events
             if event.get("event") == "sample" and not event["warmup"]]
    return Outcome(guest_samples.status_of(share / f"{name}.status"), found,
                   guest_samples.text_of(share / f"{name}.stderr"))


def median(samples: Sequence[Sample], key: str) -> float | None:
    """The median of a figure over the samples; None without one."""
    return stats.median([sample.figures[key] for sample in samples]) if samples else None


def locked_figures(samples: Sequence[Sample]) -> dict[str, float | None]:
    """LOCKED_BATCHES and LOCKED_P99 of the batches of all samples.

    The first is absent on a kernel that does not count them, the second also without a batch. It is None if it is above
    the kernel's last bound.
    """
    found = [sample.locked for sample in samples if sample.locked is not None]
    if not found:
        return {}
    batches = histogram.together(found)
    p99 = histogram.percentile(batches, 0.99)
    return {LOCKED_BATCHES: batches.count} | ({} if p99 is None else {LOCKED_P99: p99 if math.isfinite(p99) else None})


def sort_out(outcome: Outcome, config: Config, wanted: int, boot: int,
             must_wait: bool = True) -> tuple[list[Sample], list[Failure]]:
    """One configuration's good samples, and a failure for each of the `wanted` that is wrong or did not come.

    With `must_wait`, a sample without a request that was timed is wrong.
    """
    got = [sample for sample in outcome.samples if sample.config == config.label]
    faults = {sample.round: fault(sample, outcome, must_wait) for sample in got}
    failures = [Failure(boot=boot, round=turn, reason=said) for turn, said in faults.items() if said]
    failures += [Failure(boot=boot, round=turn, reason=outcome.reason) for turn in range(len(got), wanted)]
    return [sample for sample in got if not faults[sample.round]], failures


def fault(sample: Sample, outcome: Outcome, must_wait: bool) -> str:
    """Why a sample does not count, or ""."""
    if outcome.status != 0:
        return outcome.reason
    if missing := [key for key in FIGURES if key not in sample.figures]:
        return f"it has no {', '.join(missing)}"
    if must_wait and not sample.figures["max_us"]:
        return "no request waited"
    return "" if sample.figures["round_trips_per_second"] else "no memory moved"


def figures(event: dict[str, Any], share: Path) -> dict[str, float]:
    """FIGURES of one sample, how many folios failed to move in a round trip, and WAITS if the guest counted them."""
    trips = {"round_trips_per_second": 1e9 * event["round_trips"] / event["ns"],
             "failed_folios": event["pages_failed"] / max(event["round_trips"], 1)}
    if "output" in event:
        return trips | of_redis(guest_samples.text_of(share / event["output"]))
    waits = {f"{name}_us": event[f"{name}_ns"] / 1000 for name in ("p50", "p99", "p999", "max")}
    counted = {WAITS: event[WAITS]} if WAITS in event else {}
    return trips | waits | counted | {"requests_per_second": 1e9 * event["requests"] / event["ns"]}


def locked(event: dict[str, Any]) -> Histogram | None:
    """The growth of the kernel's histogram during a sample."""
    files = {f"stats/reasons/{REASON}/locked/{key.removeprefix('locked_')}": value for key, value in event.items()
             if key.startswith("locked_")}
    return histogram.locked(files).get(REASON)


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
