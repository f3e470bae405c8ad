# SPDX-License-Identifier: GPL-2.0
"""The guest's tierbench: the script that runs it for each workload and policy, and its samples.

For each of them the script leaves in $FERRY_SHARE: WORKLOAD-POLICY.jsonl, .stderr, .status, and for redis the output of
redis-benchmark of each sample, which the sample names.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ferry.bench import features, guest_samples, stallbench
from ferry.bench.plan import Config
from ferry.debian import packages
from ferry.vm import guest_programs

PROGRAM = "tierbench"
TENANTS, REDIS = "tenants", "redis"
WORKLOADS = (TENANTS, REDIS)
NUMAB, DAMON, RECLAIM = "numab", "damon", "reclaim"
POLICIES = (NUMAB, DAMON, RECLAIM)
MIB = 1 << 20
#: The memory of all tenants, a quarter more than the fast node has, and the hot set of each.
TENANT_COUNT, TENANT_BYTES, HOT_BYTES = 3, 320 * MIB, 8 * MIB
#: The same of the larger fast node that reclaim has.
RECLAIM_BYTES = 1280 * MIB
#: More than the fast node has, too. The keys of a group are the hot set of one sample, and few: NUMA balancing takes a
#: page for hot if it is used within a second, and an emulated server is slow.
GROUPS, GROUP_KEYS, VALUE_BYTES = 400, 200, 4096
REDIS_BYTES = GROUPS * GROUP_KEYS * VALUE_BYTES
#: The figure of each workload that counts how much work its users get done.
RATES = {TENANTS: "touches_per_second", REDIS: "requests_per_second"}
WAITS = ("p50_us", "p99_us", "p999_us", "max_us")
#: The names of the pages that moved for each reason, among the counters of a sample.
REASON = "moved_for_"


@dataclass(frozen=True)
class Load:
    """How much of each workload makes one sample: of the tenants its time and how long a hot set stays, in ms."""

    tenant_ms: int
    shift_ms: int
    redis_requests: int


@dataclass(frozen=True)
class Sample:
    """One configuration under load for some seconds; `figures` by their keys in a row.

    `tenants` are the touches a second of each tenant, `by_reason` the pages that moved for each reason; the unpatched
    kernel does not count these.
    """

    config: str
    round: int
    figures: dict[str, float]
    tenants: list[float] = field(default_factory=list)
    by_reason: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The result of one tierbench. `status` is None if the guest died before it could write one."""

    status: int | None
    samples: list[Sample]
    stderr: str

    @property
    def reason(self) -> str:
        """Why there are fewer samples than asked for."""
        return guest_samples.reason(PROGRAM, self.status, self.stderr)


def cases(workloads: Sequence[str], policies: Sequence[str]) -> list[tuple[str, str]]:
    """Each workload under each policy that moves its memory: redis allocates nothing, so reclaim alone does not."""
    return [case for case in itertools.product(workloads, policies) if case != (REDIS, RECLAIM)]


def total_bytes(workload: str, policy: str) -> int:
    """The memory of all users of a workload."""
    if workload == REDIS:
        return REDIS_BYTES
    return RECLAIM_BYTES if policy == RECLAIM else TENANT_BYTES


def script(chosen: Sequence[tuple[str, str]], configs: Sequence[Config], load: Load, samples: int,
           first: Sequence[Sequence[str]]) -> str:
    """The shell commands of one boot; `chosen` are its workloads, each with a policy."""
    lines = ["set -u", *(f"{shlex.join(command)} || exit 3" for command in first)]
    for workload, policy in chosen:
        words = [str(guest_programs.programs()[PROGRAM]), "--policy", policy]
        words += ["--samples", str(samples), "--warmup", "1"]
        words += [word for config in configs for word in ("--config", config.argument)]
        command = tenants_command(words, load, policy) if workload == TENANTS else redis_command(words, load)
        out = f'"$FERRY_SHARE"/{workload}-{policy}'
        lines.append(f"{{ {command} 2>{out}.stderr; echo $? >{out}.status; }} | tee {out}.jsonl")
    return "\n".join([*lines, "exit 0", ""])


def tenants_command(words: Sequence[str], load: Load, policy: str) -> str:
    """The shell command of the workload `tenants`. kswapd wakes now and then, and must do so in each sample."""
    shift_ms = load.shift_ms // 8 if policy == RECLAIM else load.shift_ms
    return shlex.join([*words, "--tenants", str(TENANT_COUNT), "--bytes", str(total_bytes(TENANTS, policy)),
                       "--hot-bytes", str(HOT_BYTES), "--load-ms", str(load.tenant_ms), "--shift-ms", str(shift_ms)])


def redis_command(words: Sequence[str], load: Load) -> str:
    """The shell command of the workload `redis`. Raises InfraError if it cannot be fetched."""
    server = packages.with_libraries("redis-server")
    programs = [shlex.join(packages.run_unpacked(server, name))
                for name in ("redis-server", "redis-benchmark")]
    start = guest_programs.script_line("redis-tier.sh", *programs, GROUPS, GROUP_KEYS, VALUE_BYTES, load.redis_requests)
    return f"{start} {shlex.join(words)}"


def outcome(share: Path, workload: str, policy: str) -> Outcome:
    """The outcome of one workload under one policy, read from `share`."""
    name = f"{workload}-{policy}"
    events = guest_samples.events(guest_samples.text_of(share / f"{name}.jsonl"))
    found = [sample(event, share) for event in events if event.get("event") == "sample" and not event["warmup"]]
    return Outcome(guest_samples.status_of(share / f"{name}.status"), found,
                   guest_samples.text_of(share / f"{name}.stderr"))


def sample(event: dict[str, Any], share: Path) -> Sample:
    """One sample, from the line that the guest printed."""
    seconds = event["ns"] / 1e9
    by_reason = {key.removeprefix(REASON): value for key, value in event.items() if key.startswith(REASON)}
    moves = {"promotions": event["promotions"], "demotions": event["demotions"],
             "promotions_per_second": event["promotions"] / seconds, "migrated_pages": event["pgmigrate_success"],
             "shootdowns": event["ipis"], "copied_by_migrator": features.copied(event),
             "moved_in_runs": features.moved_in_runs(event)}
    if event["pgmigrate_success"]:
        moves["shootdowns_per_1000_pages"] = 1000 * event["ipis"] / event["pgmigrate_success"]
    tenants = [event[f"touches_{number}"] / seconds for number in range(TENANT_COUNT) if "output" not in event]
    users = of_tenants(event, tenants) if tenants else stallbench.of_redis(
        guest_samples.text_of(share / event["output"]))
    return Sample(event["config"], event["round"], moves | users, tenants, by_reason)


def of_tenants(event: dict[str, Any], tenants: Sequence[float]) -> dict[str, float]:
    """What the tenants did and how long they waited; `tenants` are the touches a second of each."""
    waits = {f"{name}_us": event[f"{name}_ns"] / 1000 for name in ("p50", "p99", "p999", "max")}
    return waits | {"touches_per_second": sum(tenants), "slowest_touches_per_second": min(tenants)}
