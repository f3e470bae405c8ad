# SPDX-License-Identifier: GPL-2.0
"""Boot the debug kernel once and run one or more programs in it, each of which prints its results as KTAP."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ferry import progress
from ferry.boards import LOCAL
from ferry.errors import AllSkipped, FerryError
from ferry.kernel import build, running
from ferry.kernel.build import Kernel
from ferry.suites import ktap
from ferry.suites.context import Context
from ferry.suites.result import Outcome, Result, error, failed, passed, result_of
from ferry.vm import boot, splat, tcg

MODULE = "ferry_mtcopy"
MODULES = (MODULE, "ferry_dcbm")
_SYSFS = "/sys/kernel/mm/migration"
_MARK = "ferry-test-job"
_AGAIN = "-again"
_LOADED = "modules.before"
"""In the share: /proc/modules as it was before the jobs, of which each unloads what it has loaded."""

#: If the host does not run an emulated CPU for a while, the guest takes it for locked up. Both detectors therefore have
#: their longest timeouts (s): a real lockup does not end.
LOCKUP_TIMEOUTS = ("watchdog_thresh=60", "rcupdate.rcu_cpu_stall_timeout=300", "workqueue.watchdog_thresh=120")

#: Checks of debug-numa.config that the command line turns on.
CHECKS = ("page_poison=1",)

#: kmemleak reports an object that was unreachable, and did not change, in two scans; it ignores the last 5 s.
SCAN_FOR_LEAKS = """\
leaks=/sys/kernel/debug/kmemleak
if [ -e $leaks ]; then sleep 5; echo scan >$leaks; echo scan >$leaks; cat $leaks; fi"""


@dataclass(frozen=True)
class Job:
    """A program to run in the guest: `command` prints KTAP and is done within `seconds`.

    `setup` are shell lines before it, each of which must succeed; `migrator` is one that must copy during the job.
    """

    suite: str
    name: str
    command: str
    seconds: int
    setup: tuple[str, ...] = ()
    migrator: str = ""
    files: tuple[Path, ...] = ()
    """Files of this machine for guests that do not see its file system: `carry` of boot.boot()."""


def debug_kernel(context: Context) -> Kernel:
    """The kernel under test, with the checks of debug.config; on this machine itself the one that runs."""
    return running.kernel() if context.board.runner == LOCAL else build.build(context.board, "ferry", debug=True)


def load(kernel: Kernel, module: str = MODULE) -> str:
    """The shell line that loads a module unless it is loaded."""
    return f"grep -q '^{module} ' /proc/modules || insmod {shlex.quote(str(kernel.modules[module]))}"


def select(migrator: str, **settings: object) -> tuple[str, ...]:
    """The shell lines that write a migrator's settings, then select it."""
    lines = [f"echo {value} >{_SYSFS}/{migrator}/{name}" for name, value in settings.items()]
    return (*lines, f"echo {migrator} >{_SYSFS}/migrator")


def write(setting: str, value: int) -> tuple[str, ...]:
    """The shell line that writes to a file below /sys/kernel/mm/migration."""
    return (f"echo {value} >{_SYSFS}/{setting}",)


def run_jobs(
    context: Context, kernel: Kernel, jobs: Sequence[Job], name: str, expected: Sequence[splat.Report] = (),
    append: Sequence[str] = (), silence_s: float | None = None,
) -> list[Result]:
    """Boot once, run the jobs in turn, return all their results and the boot's own.

    If QEMU's stale int3 stopped the guest, all jobs run again in a second boot. Its results count, and the failures of
    those jobs that had ended in the first boot before.

    `expected` and `silence_s`: see boot.boot(); `append` are words for the kernel's command line.
    """
    found = _run_jobs(context, kernel, jobs, name, expected, append, silence_s)
    if not tcg.stale_int3(context.board, kernel, context.logs / name / "console.log"):
        return found
    progress.note(f"{name}: QEMU's TCG ran a stale int3; booting again")
    failures = _failures_before_splat(jobs, context.logs / name)
    return [*_run_jobs(context, kernel, jobs, f"{name}{_AGAIN}", expected, append, silence_s), *failures]


def _failures_before_splat(jobs: Sequence[Job], share: Path) -> list[Result]:
    """The failed results of the jobs after which the console has another mark before the first splat."""
    text = (share / "console.log").read_text(errors="replace")
    splats = splat.scan(text)
    marks = sum(_MARK in line for line in text.splitlines()[: splats[0].line])
    return [replace(result, reason=f"before a stale int3 of QEMU stopped the boot: {result.reason}")
            for job in jobs[: max(marks - 1, 0)] for result in results(job, share)
            if result.outcome is Outcome.FAILED]


def shares(context: Context, name: str) -> list[Path]:
    """The directories of the boots that run_jobs() made: one, or two if it repeated the boot."""
    again = context.logs / f"{name}{_AGAIN}"
    return [context.logs / name, *([again] if again.is_dir() else [])]


def _run_jobs(
    context: Context, kernel: Kernel, jobs: Sequence[Job], name: str, expected: Sequence[splat.Report],
    append: Sequence[str], silence_s: float | None,
) -> list[Result]:
    share = context.logs / name
    share.mkdir(parents=True)
    limit = context.board.boot_timeout_s + sum(job.seconds for job in jobs)
    started = time.monotonic()
    suite = jobs[-1].suite
    try:
        with progress.stage(f"{name}: {len(jobs)} runs on {context.board.name}") as stage:
            boot.boot(context.board, kernel, script(jobs), timeout_s=limit, share=share,
                      append=(*LOCKUP_TIMEOUTS, *CHECKS, *append), expected=expected, silence_s=silence_s,
                      on_line=_Follower(stage, [job.name for job in jobs]),
                      carry=[file for job in jobs for file in job.files])
        end = passed(suite, f"{name}: no splat", time.monotonic() - started, share / "console.log")
    except FerryError as cause:
        end = error(suite, f"{name}: boot", cause, time.monotonic() - started)
    return [result for job in jobs for result in results(job, share)] + [end]


class _Follower:
    """Shows the current job in the progress bar, from the marks on the console; the last mark ends the last job."""

    def __init__(self, stage: progress.Stage, names: Sequence[str]) -> None:
        self._stage = stage
        self._names = [*names, "search for memory leaks"]
        self._done = -1

    def __call__(self, line: str) -> None:
        self._done += _MARK in line
        text = self._names[self._done] if 0 <= self._done < len(self._names) else "booting"
        self._stage.update(max(self._done, 0), len(self._names) - 1, text)


def script(jobs: Sequence[Job]) -> str:
    """The shell lines for all jobs, then a search for memory leaks; after a job that fails the next one still runs."""
    return "\n".join((f"cat /proc/modules >{_LOADED}", *(line for job in jobs for line in _job_lines(job)),
                      f"echo {_MARK} end", SCAN_FOR_LEAKS))


def _job_lines(job: Job) -> list[str]:
    """The output of a job goes to its file and to the console, among the kernel's messages.

    It runs in a subshell under set -e: a setup line that fails ends the job without a result, which is a failure.
    """
    count = f"cat {_SYSFS}/stats/{job.migrator}/batches" if job.migrator else "echo"
    body = "\n".join((*job.setup, f"{count} >{job.name}.before", job.command))
    return [
        f"echo {_MARK} {job.name}",
        f"{{ ( set -e\n{body}\n); echo $? >{job.name}.status; }} 2>{job.name}.err | tee {job.name}.ktap",
        f"cat {job.name}.err",
        f"{count} >{job.name}.after",
        f"echo off >{_SYSFS}/migrator",
        *(f"if grep -q '^{module} ' /proc/modules && ! grep -q '^{module} ' {_LOADED}; then rmmod {module}; fi"
          for module in MODULES),
    ]


def results(job: Job, share: Path) -> list[Result]:
    """The results that a job left in the share; a failure if it left none."""
    log = share / f"{job.name}.ktap"
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    found = [_explained(result, share / f"{job.name}.err") for result in
             (ktap.parse(job.suite, job.name, lines, log) if lines else [])]
    return found + _ending(job, share, found) + _used(job, share)


def _explained(result: Result, diagnostics: Path) -> Result:
    """A failure's reason, with what kselftest_harness.h writes to stderr: "# FILE:LINE:TEST:TEXT" or "# TEST: TEXT"."""
    if result.outcome is not Outcome.FAILED or not diagnostics.is_file():
        return result
    mark = re.compile(rf"# (?:\S+:)?{re.escape(result.name.rpartition('.')[2])}:")
    said = [line for line in diagnostics.read_text(errors="replace").splitlines() if mark.match(line)]
    return replace(result, reason="; ".join([result.reason, *said[-ktap.QUOTED_LINES:]]))


def _ending(job: Job, share: Path, found: list[Result]) -> list[Result]:
    """A failure if the program ended badly and none of its results tells why."""
    status = _number(share / f"{job.name}.status")
    if any(result.outcome is Outcome.FAILED for result in found) or (status == 0 and found):
        return []
    if status == AllSkipped.status and found:
        return []
    words = (share / f"{job.name}.err").read_text(errors="replace").split("\n") if status is not None else []
    last = next((line for line in reversed(words) if line.strip()), "it printed nothing")
    how = "did not end" if status is None else f"ended with status {status}"
    return [failed(job.suite, job.name, f"{how}, after {len(found)} results: {last}", log=share / "console.log")]


def _used(job: Job, share: Path) -> list[Result]:
    """A failure if the migrator copied nothing: the job then tested something else."""
    if not job.migrator:
        return []
    before, after = (_number(share / f"{job.name}.{when}") for when in ("before", "after"))
    ok = before is not None and after is not None and after > before
    reason = f"the migrator's batches went from {before} to {after}"
    return [result_of(ok, job.suite, f"{job.name}: {job.migrator} copied", reason, log=share / "console.log")]


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
