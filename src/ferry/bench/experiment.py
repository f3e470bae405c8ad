# SPDX-License-Identifier: GPL-2.0
"""The boots of a benchmark: in order, each with a console log, a bar over all of them, and one known retry.

A bench describes each boot as a Boot, calls run(), and reads what each boot left in its share. The boots of the
kernels that it compares follow each other in turn, so that a drift of the host affects all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferry import boards, progress
from ferry.bench import environment
from ferry.boards import LOCAL, Board
from ferry.control import machine
from ferry.errors import FerryError, InfraError, Splat, TimedOut, UsageError
from ferry.kernel import build, running
from ferry.kernel.build import Kernel
from ferry.paths import CONSOLE, RAW
from ferry.results.document import SCHEMA, Document
from ferry.vm import boot, tcg

SCRIPT = "bench.sh"


@dataclass(frozen=True)
class Boot:
    """One boot of `kernel` on `board`, which runs `script` by sh. `name` is unique in a run, and names its share.

    A line of the console with `sample` in it moves the bar on by one. The guest hangs if the whole boot takes more
    than `timeout_s` seconds, or if it prints nothing for `silence_s`. `append` is for the kernel's command line.
    """

    name: str
    board: Board
    kernel: Kernel
    script: str
    sample: str
    timeout_s: float
    silence_s: float | None = None
    append: tuple[str, ...] = ()


def kernels(board: Board, vs_stock: bool) -> dict[str, Kernel]:
    """The kernels to measure on a board by name, the baseline first.

    Raises what build.build(), running.kernel() and boards.two_nodes() raise, and UsageError for a baseline that the
    board cannot boot.
    """
    if board.runner != LOCAL:
        return {name: build.build(board, name) for name in ["stock"] * vs_stock + ["ferry"]}
    if vs_stock:
        raise UsageError("--baseline stock needs boots of the unpatched kernel, and the board local boots none",
                         hint="--baseline off; to compare two kernels, measure under each, then: ferry compare A B")
    found = {"ferry": running.kernel()}
    boards.two_nodes(board)
    return found


def document(bench: str, board: Board, baseline: str, kernels: Mapping[str, Kernel],
             config: Mapping[str, Any]) -> Document:
    """A document without rows, with the surroundings as they are before the first boot; `config` is kept with them."""
    captured = environment.capture(
        base=next(iter(kernels.values())).base, config=config,
        kernel_keys={name: kernel.key for name, kernel in kernels.items()},
        accelerator=environment.accelerator(board, next(iter(kernels.values())).image), **environment.tools(board))
    # An instruction takes as long on a busy host.
    warnings = [] if board.kind == "instructions" else environment.warnings(captured)
    if board.runner == LOCAL:
        captured["machine"] = environment.machine_found()
        warnings += [doubt.reason for doubt in machine.doubts()]
    return Document(schema=SCHEMA, bench=bench, board=board.name, kind=board.kind, baseline=baseline, rows=[],
                    meta=captured, warnings=warnings)


def share_of(run_dir: Path, name: str) -> Path:
    """Where the boot of this name leaves its files."""
    return run_dir / RAW / name


def run(boots: Sequence[Boot], run_dir: Path, title: str, samples: int | None = None) -> list[str]:
    """Carry out the boots and return the warnings that the result must carry; `samples` (None: unknown) are expected.

    If QEMU's stale int3 stopped a boot, it is repeated once. Nothing else is repeated, a hang least of all. Raises what
    ferry.vm.boot.boot() raises, and InfraError if a script does not end with 0.
    """
    warnings = []
    with progress.stage(title) as stage:
        bar = _Bar(stage, samples)
        for number, one in enumerate(boots, start=1):
            progress.note(f"boot {one.name} on {one.board.name}, {number} of {len(boots)}")
            try:
                _boot(one, run_dir, bar)
            except Splat:
                share = share_of(run_dir, one.name)
                if not tcg.stale_int3(one.board, one.kernel, share / CONSOLE):
                    raise
                warnings.append(f"boot {one.name} was repeated: QEMU's TCG ran a stale int3")
                progress.note(warnings[-1])
                share.rename(share.with_name(f"{one.name}-failed"))
                _boot(one, run_dir, bar)
    return warnings


class _Bar:
    """The samples of all boots so far."""

    def __init__(self, stage: progress.Stage, total: int | None) -> None:
        self._stage, self._total, self._done = stage, total, 0

    def advance(self) -> None:
        self._done += 1
        self._stage.update(self._done, self._total, f"sample {self._done}")


def _boot(one: Boot, run_dir: Path, bar: _Bar) -> None:
    """One attempt; adds its console to the run's, also if it fails."""
    share = share_of(run_dir, one.name)
    share.mkdir(parents=True)
    (share / SCRIPT).write_text(one.script)
    try:
        result = boot.boot(one.board, one.kernel, f"sh {SCRIPT}", timeout_s=one.timeout_s, silence_s=one.silence_s,
                           share=share, append=one.append,
                           on_line=lambda line: bar.advance() if one.sample in line else None)
    except FerryError as error:
        if isinstance(error, TimedOut):
            error.hint = "read the log; then the same again, with less work if the host is slow"
        if error.log is not None:
            _log(run_dir, one.name, error.log)
            error.log = run_dir / CONSOLE
        raise
    _log(run_dir, one.name, result.console)
    if result.status:
        raise InfraError(f"the script of boot {one.name} ended with {result.status} in the guest",
                         hint="read the log" if one.board.runner == LOCAL else f"ferry boot --board {one.board.name}",
                         log=run_dir / CONSOLE)


def _log(run_dir: Path, name: str, console: Path) -> None:
    text = console.read_text(errors="replace") if console.exists() else ""
    with (run_dir / CONSOLE).open("a") as out:
        out.write(f"==== boot {name} ====\n{text}\n")
