# SPDX-License-Identifier: GPL-2.0
"""The guest's movebench: the script that runs it at each folio size, and its JSON lines.

For each size the script leaves in $FERRY_SHARE: SIZE.jsonl, SIZE.stderr, SIZE.status and SIZE.stats (the migrators'
counters afterwards), where SIZE is 4k, 64k, 2m and so on.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ferry.bench import guest_samples
from ferry.bench.plan import Config, Plan, size_argument
from ferry.results.document import Failure

CONTROL = "/sys/kernel/mm/migration"

PROGRAM = "movebench"


@dataclass(frozen=True)
class Sample:
    """One round of one configuration: all pages there and back. `ns` and `moved` cover both directions."""

    config: str
    round: int
    ns: int
    moved: int
    failed: int
    bytes: int

    def value(self, unit: str) -> float:
        """The sample in a unit of bench.document; gbps is 10^9 bytes a second, and a byte a nanosecond is just that."""
        return self.bytes / self.ns if unit == "gbps" else self.ns / self.moved


@dataclass(frozen=True)
class Outcome:
    """The result of one movebench. `status` is None if the guest died before it could write one."""

    status: int | None
    samples: list[Sample]
    stderr: str
    counters: dict[str, int]

    @property
    def reason(self) -> str:
        """Why there are fewer samples than asked for."""
        return guest_samples.reason(PROGRAM, self.status, self.stderr)


def script(program: Path, plan: Plan, configs: tuple[Config, ...], first: list[list[str]]) -> str:
    """The shell commands that a guest runs; if one of those that come first, to load modules, fails, it ends with 3."""
    lines = ["set -u", *(f"{shlex.join(command)} || exit 3" for command in first)]
    for folio_bytes, total in plan.totals.items():
        out = f'"$FERRY_SHARE"/{size_argument(folio_bytes)}'
        command = shlex.join([str(program), *arguments(plan, configs, folio_bytes, total)])
        command += ' --file "$FERRY_SHARE"/pages' if plan.kind == "file" else ""
        lines += [f"{{ {command} 2>{out}.stderr; echo $? >{out}.status; }} | tee {out}.jsonl",
                  f"grep -r . {CONTROL}/stats {CONTROL}/migrc/counters >{out}.stats 2>/dev/null"]
    return "\n".join([*lines, "exit 0", ""])


def arguments(plan: Plan, configs: tuple[Config, ...], folio_bytes: int, total: int) -> list[str]:
    """movebench's arguments for one folio size."""
    words = ["--folio", size_argument(folio_bytes), "--bytes", f"{total >> 10}k", "--kind", plan.kind,
             "--samples", str(plan.samples_per_boot), "--warmup", str(plan.warmup),
             "--from", "0", "--to", "1"]
    words += ["--read-only"] * plan.read_only
    words += ["--one-per-call"] * plan.single + ["--cpu-hogs", str(plan.hogs)] * (plan.hogs > 0)
    return words + [word for config in configs for word in ("--config", config.argument)]


def outcome(share: Path, folio_bytes: int) -> Outcome:
    """The outcome of one size, read from `share`."""
    name = size_argument(folio_bytes)
    return Outcome(
        status=guest_samples.status_of(share / f"{name}.status"),
        samples=list(samples(guest_samples.text_of(share / f"{name}.jsonl"))),
        stderr=guest_samples.text_of(share / f"{name}.stderr"),
        counters=counters(guest_samples.text_of(share / f"{name}.stats")),
    )


def samples(text: str) -> Iterator[Sample]:
    """The samples among movebench's lines, without warm-ups."""
    for event in guest_samples.events(text):
        if event.get("event") == "sample" and not event["warmup"]:
            yield Sample(event["config"], event["round"], event["ns_there"] + event["ns_back"],
                         event["pages_moved"], event["pages_failed"], event["bytes"])


def counters(text: str) -> dict[str, int]:
    """`grep -r` of stats/ and migrc/counters/ as {"mtcopy/folios": 512, "migrc/folios": 512}."""
    found = {}
    for line in text.splitlines():
        path, _, value = line.partition(":")
        if value.strip().isdecimal():
            name = path.removeprefix(f"{CONTROL}/").removeprefix("stats/")
            found[name.replace("/counters/", "/")] = int(value)
    return found


def sort_out(result: Outcome, config: Config, plan: Plan, boot: int) -> tuple[list[Sample], list[Failure]]:
    """One configuration's good samples, and a failure for each one that is wrong or did not come.

    movebench checks every byte and every folio's size before it exits with 0; otherwise none of its samples counts.
    """
    got = [sample for sample in result.samples if sample.config == config.label]
    faults = {sample: _fault(sample) or ("" if result.status == 0 else result.reason) for sample in got}
    failures = [Failure(boot=boot, round=sample.round, reason=fault) for sample, fault in faults.items() if fault]
    absent = range(len(got), plan.samples_per_boot)
    failures += [Failure(boot=boot, round=turn, reason=result.reason) for turn in absent]
    return [sample for sample, fault in faults.items() if not fault], failures


def _fault(sample: Sample) -> str:
    if sample.failed or not sample.moved:
        return f"{sample.failed} of {sample.failed + sample.moved} page moves failed"
    return ""
