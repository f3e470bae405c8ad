# SPDX-License-Identifier: GPL-2.0
"""The guest's movebench: the script that runs it for each case, and its JSON lines.

For each case the script leaves in $FERRY_SHARE: NAME.jsonl, NAME.stderr, NAME.status and NAME.stats (the migrators'
counters afterwards), where NAME is the case's; of a case with engines of a given speed also NAME.engine, the rates.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry.bench import guest_samples
from ferry.bench.plan import CPU_MIGRATOR, FOLIO_SIZES, STOCK, Case, Config, Plan, ends_words, size_argument
from ferry.results.document import Failure
from ferry.vm import guest_programs

CONTROL = "/sys/kernel/mm/migration"

PROGRAM = "movebench"


@dataclass(frozen=True)
class Sample:
    """One round of one configuration: all pages there and back. All figures cover both directions; `copied_bytes` were
    copied by the migrator, in `copied_ns`."""

    config: str
    round: int
    ns: int
    moved: int
    failed: int
    bytes: int
    copied_bytes: int = 0
    copied_ns: int = 0

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
    queue_gbps: float | None = None
    """The speed of each queue of the device models, if the case has set it."""

    @property
    def reason(self) -> str:
        """Why there are fewer samples than asked for."""
        return guest_samples.reason(PROGRAM, self.status, self.stderr)


def script(program: Path, plan: Plan, configs: tuple[Config, ...], first: list[list[str]],
           then: Sequence[str] = ()) -> str:
    """The shell commands that a guest runs; if one of those that come first, to load modules, fails, it ends with 3.

    `then` are lines to run after all samples.
    """
    lines = ["set -u", *(f"{shlex.join(command)} || exit 3" for command in first)]
    for case in plan.cases:
        out = f'"$FERRY_SHARE"/{case.name}'
        command = shlex.join([str(program), *arguments(plan, configs, case)])
        if case.kind == "file":
            command = f"{guest_programs.script_line('with-disk.sh', disk_mib(case))} {command} --file @/pages"
        if case.engine_rate and configs != (STOCK,):
            command = f"{{ {engine_speed(program, case)} && {command}; }}"
        lines += [f"{{ {command} 2>{out}.stderr; echo $? >{out}.status; }} | tee {out}.jsonl",
                  f"grep -r . {CONTROL}/stats {CONTROL}/migrc/counters >{out}.stats 2>/dev/null"]
    return "\n".join([*lines, *then, "exit 0", ""])


def arguments(plan: Plan, configs: tuple[Config, ...], case: Case) -> list[str]:
    """movebench's arguments for one case."""
    words = ["--folio", size_argument(case.folio_bytes), "--bytes", f"{case.total_bytes >> 10}k", "--kind", case.kind,
             "--order", case.order, "--samples", str(plan.samples_per_boot), "--warmup", str(plan.warmup),
             *ends_words(plan.ends)]
    words += ["--read-only"] * plan.read_only + ["--cpu-hogs", str(plan.hogs)] * (plan.hogs > 0)
    words += ["--unmeasured", str(plan.unmeasured)] * (plan.unmeasured > 0)
    words += ["--settle-ms", str(plan.settle_ms)] * (plan.settle_ms > 0)
    words += ["--pages-per-call", str(case.pages_per_call)] * (case.pages_per_call > 0)
    return words + [word for config in configs for word in ("--config", config.argument)]


def engine_speed(program: Path, case: Case) -> str:
    """The shell line that measures the copy rate of one CPU and sets the speed of the device models.

    It copies anonymous memory, which has no folio of 1 GiB.
    """
    script = guest_programs.script_line("engine-speed.sh", round(case.engine_rate * 1000))
    folio = size_argument(min(case.folio_bytes, FOLIO_SIZES["2m"]))
    moves = [str(program), "--folio", folio, "--bytes", f"{case.total_bytes >> 10}k",
             "--samples", "2", "--warmup", "1", "--from", "0", "--to", "1", "--config",
             Config(CPU_MIGRATOR, "ferry", CPU_MIGRATOR).argument]
    return f'{script} "$FERRY_SHARE"/{case.name}.engine {shlex.join(moves)}'


def disk_mib(case: Case) -> int:
    """A disk for the file of a case, in MiB: half of it stays free for the file system's own data."""
    return max(64, 2 * case.memory_bytes >> 20)


def outcome(share: Path, case: Case) -> Outcome:
    """The outcome of one case, read from `share`."""
    name = case.name
    return Outcome(
        status=guest_samples.status_of(share / f"{name}.status"),
        samples=list(samples(guest_samples.text_of(share / f"{name}.jsonl"))),
        stderr=guest_samples.text_of(share / f"{name}.stderr"),
        counters=counters(guest_samples.text_of(share / f"{name}.stats")),
        queue_gbps=queue_gbps(guest_samples.text_of(share / f"{name}.engine")),
    )


def queue_gbps(text: str) -> float | None:
    """The speed of a queue in the output of engine-speed.sh; None if there is none."""
    return json.loads(text)["queue_mb_per_s"] / 1000 if text else None


def samples(text: str) -> Iterator[Sample]:
    """The samples among movebench's lines, without warm-ups."""
    for event in guest_samples.events(text):
        if event.get("event") == "sample" and not event["warmup"]:
            yield Sample(event["config"], event["round"], event["ns_there"] + event["ns_back"],
                         event["pages_moved"], event["pages_failed"], event["bytes"],
                         event["copied_bytes"], event["copied_ns"])


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
