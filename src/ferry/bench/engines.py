# SPDX-License-Identifier: GPL-2.0
"""DMA engines of a given speed in `ferry bench move_pages`: how near the copies come to what engines and a CPU can do.

Before each case the guest measures the copy rate of one CPU and sets the speed of the device models, see
movebench.script(). Within the case the configuration of CPU_MIGRATOR measures that rate again, in each round. All rates
are those of copies, from the kernel's counters: the rest of a migration is the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ferry import boards
from ferry.bench.movebench import Outcome, Sample
from ferry.bench.plan import BY_CHANNELS, CPU_MIGRATOR, Case, Config
from ferry.boards import Board
from ferry.errors import UsageError
from ferry.results import stats
from ferry.results.document import CopySample, Row
from ferry.vm import plugin

#: Instructions in a microsecond of each CPU of the guest. A CPU then copies 93 to 100 MB a second, so that an access to
#: a register, which leaves the guest and takes some 0.1 ms, costs as much as on a server: some 10 KB of a CPU's copy.
MIPS = 32
LIMIT_CPU = Path(__file__).with_name("limit_cpu.c")
#: `batch_max_us` unless the options say otherwise: a batch is to have as many bytes as on a server with the default.
BATCH_MAX_US = 500_000
#: Divisor of the bytes of one move, by default.
SLOWED = 4
#: Moves before each sample. In these dcbm compares its ways to copy, with up to seven batches to each node. A move
#: there and back has two.
UNMEASURED = 4
#: The device model that rated() leaves, and its channels. Its driver fills a ring, so the engine need not wait for the
#: driver; PTDMA's starts each descriptor by the interrupt of the one before.
ENGINE = "ae4dma"
ENGINE_CHANNELS = 16


def rated(board: Board) -> Board:
    """The board on which engines of a given speed are measured. Raises InfraError if the plugin does not build.

    Models are processes of the host: they need CPU time that the guest leaves, and a CPU whose rate stays what it is.
    So a plugin for QEMU lets each CPU of the guest execute MIPS, at any time, and no more. It cannot slow string
    instructions; the kernel's memcpy has none on these boards.
    """
    limit = ("-plugin", f"{plugin.built(LIMIT_CPU)},mips={MIPS}")
    return replace(board, qemu_options=(*board.qemu_options, *limit), devices=(ENGINE,))


def refuse(board: Board, channels: Sequence[int]) -> None:
    """Raises UsageError if the board has no engines whose speed can be set, or if they have fewer channels."""
    if not board.devices:
        modelled = [name for name in boards.names() if boards.load(name).devices]
        raise UsageError(f"{board.name} has no DMA engine whose speed can be set", hint=f"--board {'|'.join(modelled)}")
    if max(channels) > ENGINE_CHANNELS:
        raise UsageError(f"engines whose speed is set have {ENGINE_CHANNELS} channels",
                         hint=f"--channels {ENGINE_CHANNELS}")


def attach(row: Row, config: Config, case: Case, good: Sequence[tuple[int, Sample]],
           outcomes: Mapping[int, Outcome]) -> None:
    """Add the engines' speed to a row of a case that sets it, and to one of dcbm or auto its ratio to the sum.

    `good` are the row's samples and their boots, `outcomes` are by boot.
    """
    row["engine_rate"] = case.engine_rate
    if config.migrator not in BY_CHANNELS:
        return
    cpu = {(boot, sample.round): sample.copied_bytes / sample.copied_ns for boot, outcome in outcomes.items()
           for sample in outcome.samples if sample.config == CPU_MIGRATOR and sample.copied_ns}
    row["copy_samples"] = [copy_sample(boot, sample, cpu[boot, sample.round], config.channels * engine)
                           for boot, sample in good
                           if (boot, sample.round) in cpu and (engine := outcomes[boot].queue_gbps)]
    ratios = {(one["boot"], one["round"]): one["copy_gbps"] / (one["engine_gbps"] + one["cpu_gbps"])
              for one in row["copy_samples"]}
    row["ratio_to_sum"] = stats.ratio_of(stats.groups_of(ratios)) if ratios else None


def copy_sample(boot: int, sample: Sample, cpu: float, engine: float) -> CopySample:
    """The copy rates of a sample, its CPU and its engines (GB/s). What the migrator rejected, one CPU copied."""
    ns = sample.copied_ns + (sample.bytes - sample.copied_bytes) / cpu
    return CopySample(boot=boot, round=sample.round, copy_gbps=sample.bytes / ns, cpu_gbps=cpu, engine_gbps=engine)
