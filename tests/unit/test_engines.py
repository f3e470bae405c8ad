# SPDX-License-Identifier: GPL-2.0
"""`ferry bench move_pages --engine-rate`: engines of a given speed, and the ratio to what they and a CPU can do."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

import made_up
import pytest
from test_move_pages import parsed

from ferry.bench import engines, move_pages, movebench, stalls
from ferry.bench.movebench import Outcome, Sample
from ferry.bench.plan import STOCK, Choice, Plan, configs, engine_rate
from ferry.bench.rows import BootResult, fill
from ferry.boards import load
from ferry.errors import UsageError
from ferry.paths import repo_root
from ferry.results import table
from ferry.results.document import SCHEMA, Document, Row, baseline_of, label

MIB = 1 << 20
#: Bytes of a sample, in both directions.
BYTES = 2 * made_up.TOTAL
CPU_GBPS, QUEUE_GBPS = 2.0, 0.5


def sweep_of(*rates: float) -> Plan:
    cases = tuple(dataclasses.replace(made_up.case(), engine_rate=rate) for rate in rates)
    return Plan(configs=configs(Choice(["kernel", "mtcopy", "dcbm"], [2], channels=[4], runs=["off"])), cases=cases,
                samples=10, warmup=1, boots=1)


def sample(config: str, turn: int, gbps: float, copied: int = BYTES) -> Sample:
    """A migrator copied `copied` bytes at this rate; the whole took twice as long."""
    ns = round(copied / gbps) if copied else 0
    return Sample(config, turn, 2 * ns or 1, BYTES // made_up.PAGE, 0, BYTES, copied, ns)


def summed_up(copied: int = BYTES, queue_gbps: float | None = QUEUE_GBPS) -> dict[str, Row]:
    """The rows of a sweep in which dcbm copied `copied` bytes of each sample at 3 GB/s."""
    sweep = sweep_of(0.25)
    samples = [one for turn in range(10) for one in (
        sample("off", turn, 1.0, 0), sample("kernel", turn, CPU_GBPS), sample("mtcopy2", turn, 3.0),
        sample("dcbm4", turn, 3.0, copied))]
    document = Document(schema=SCHEMA, bench="move_pages", board="made-up", kind="emulated", baseline="off", rows=[],
                        meta={})
    fill(document, sweep, [BootResult(0, "ferry", {sweep.cases[0]: Outcome(0, samples, "", {}, queue_gbps)})], "gbps")
    return {label(row): row for row in document["rows"]}


def test_the_ratio_is_that_of_copy_rates_to_four_channels_and_a_cpu() -> None:
    row = summed_up()["dcbm 4"]
    ratio = row["ratio_to_sum"]
    assert ratio is not None and ratio["ci95"] is not None
    assert ratio["median"] == pytest.approx(3.0 / (4 * QUEUE_GBPS + CPU_GBPS), rel=1e-3)
    assert row["engine_rate"] == 0.25 and row["channels"] == 4 and len(row["copy_samples"]) == 10
    assert row["copy_samples"][0] == pytest.approx({"boot": 0, "round": 0, "copy_gbps": 3.0, "cpu_gbps": CPU_GBPS,
                                                    "engine_gbps": 2.0}, rel=1e-3)


@pytest.mark.parametrize(("copied", "copies"), [(0, CPU_GBPS), (BYTES // 2, 1 / (0.5 / 3.0 + 0.5 / CPU_GBPS))])
def test_what_a_migrator_rejects_counts_with_the_rate_of_the_cpu(copied: int, copies: float) -> None:
    ratio = summed_up(copied)["dcbm 4"]["ratio_to_sum"]
    assert ratio is not None and ratio["median"] == pytest.approx(copies / (4 * QUEUE_GBPS + CPU_GBPS), rel=1e-3)


def test_rows_without_channels_have_the_speed_of_their_column_and_no_ratio() -> None:
    for name in ("off", "kernel", "mtcopy 2"):
        assert summed_up()[name]["engine_rate"] == 0.25 and "ratio_to_sum" not in summed_up()[name]


def test_an_unknown_speed_gives_no_ratio() -> None:
    row = summed_up(queue_gbps=None)["dcbm 4"]
    assert row["ratio_to_sum"] is None and row["copy_samples"] == []


def test_each_speed_is_a_column_with_a_baseline_of_its_own() -> None:
    sweep = sweep_of(0.25, 8)
    outcomes = {case: made_up.outcome(made_up.lines({"off": 100.0 * number, "kernel": 100.0, "mtcopy2": 90.0,
                                                     "dcbm4": 80.0})) for number, case in enumerate(sweep.cases, 1)}
    document = Document(schema=SCHEMA, bench="move_pages", board="made-up", kind="emulated", baseline="off", rows=[],
                        meta={})
    fill(document, sweep, [BootResult(0, "ferry", outcomes)], "gbps")
    slow, fast = (row for row in document["rows"] if row["migrator"] == "dcbm")
    base = baseline_of(document, fast)
    assert base is not None and base["engine_rate"] == 8
    ratios = [row["ratio_to_baseline"] for row in (slow, fast)]
    assert [ratio and round(ratio["median"], 1) for ratio in ratios] == [1.2, 2.5]
    assert [heading.rpartition(", ")[2] for heading in table.grid(document).columns[1:]] == ["engine 0.25", "engine 8"]


def test_the_options_make_a_case_for_each_speed_with_the_cpu_in_it() -> None:
    board = load("x86-ptdma")
    sweep = move_pages.plan_for(parsed("--board", "x86-ptdma", "--folio", "2m", "--migrator", "auto,dcbm",
                                       "--engine-rate", "0.2,8", "--channels", "1,16", "--runs", "off"), board)
    assert [case.name for case in sweep.cases] == ["2m-engine0.2", "2m-engine8"]
    assert [one.label for one in sweep.configs] == ["off", "kernel", "auto1", "auto16", "dcbm1", "dcbm16"]
    assert sweep.stalls == () and "speed" in stalls.why_none(sweep, board)
    assert (sweep.batch_max_us, sweep.unmeasured) == (engines.BATCH_MAX_US, engines.UNMEASURED)
    assert sweep.cases[0].total_bytes == 64 * MIB
    limited = move_pages.plan_for(parsed("--board", "x86-ptdma", "--migrator", "auto", "--engine-rate", "1",
                                         "--batch-max-us", "4000", "--runs", "off"), board)
    assert {config.batch_max_us for config in limited.configs} == {4000}


def test_a_board_with_engines_of_a_given_speed_has_one_engine_and_a_slow_cpu() -> None:
    before = load("x86-ptdma-iommu")
    board = engines.rated(before)
    assert board.devices == ("ae4dma",)
    assert board.qemu_options[:-1] == (*before.qemu_options, "-plugin")
    program, _, argument = board.qemu_options[-1].partition(",")
    assert Path(program).is_file() and argument == f"mips={engines.MIPS}"


@pytest.mark.parametrize("board", ["x86-numa", "zcu102"])
def test_boards_without_models_are_refused(board: str) -> None:
    with pytest.raises(UsageError, match=f"{board} has no DMA engine whose speed can be set") as caught:
        move_pages.plan_for(parsed("--engine-rate", "1"), load(board))
    assert "x86-ptdma" in (caught.value.hint or "")


def test_more_channels_than_the_engines_have_are_refused() -> None:
    words = ("--engine-rate", "1", "--channels", "4,17", "--board", "x86-ptdma")
    with pytest.raises(UsageError, match="have 16 channels"):
        move_pages.plan_for(parsed(*words), load("x86-ptdma"))


@pytest.mark.parametrize("text", ["0", "-1", "101", "fast", "nan", ""])
def test_a_speed_out_of_bounds_is_a_usage_error(text: str) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed("--engine-rate", text)
    assert caught.value.code == 2
    assert engine_rate("0.2") == 0.2


def test_the_guest_sets_the_speed_before_it_measures() -> None:
    sweep = sweep_of(0.25)
    text = movebench.script(Path("/movebench"), sweep, sweep.configs, [])
    (line,) = (line for line in text.splitlines() if "engine-speed.sh" in line)
    before, _, after = line.partition(" && ")
    assert 'engine-speed.sh 250 "$FERRY_SHARE"/4k-engine0.25.engine /movebench --folio 4k' in before
    assert before.endswith("--config kernel:runs=0,migrator=kernel") and after.startswith("/movebench ")
    assert "engine-speed" not in movebench.script(Path("/movebench"), sweep, (STOCK,), [])


def test_the_speed_beside_folios_of_1_gib_is_that_of_anonymous_memory() -> None:
    case = dataclasses.replace(made_up.case(), folio_bytes=1 << 30, total_bytes=1 << 30, kind="hugetlb", engine_rate=4)
    assert "--folio 2m --bytes 1048576k" in movebench.engine_speed(Path("/movebench"), case)


def test_the_script_computes_the_speed_from_what_the_kernel_counted(tmp_path: Path) -> None:
    """With a directory for the kernel's, and a command that copies 3 MB in 2 ms."""
    stats = tmp_path / "stats"
    stats.mkdir()
    (stats / "bytes").write_text("1000\n")
    (stats / "copy_ns").write_text("50\n")
    command = tmp_path / "moves"
    command.write_text(f"#!/bin/sh\necho 3001000 >{stats}/bytes; echo 2000050 >{stats}/copy_ns; echo dropped\n")
    command.chmod(0o755)
    text = (repo_root() / "guest/scripts/engine-speed.sh").read_text()
    script = tmp_path / "engine-speed.sh"
    script.write_text(text.replace("/sys/kernel/mm/migration/stats/kernel", str(stats)))
    env = {"FERRY_SHARE": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["sh", str(script), "200", str(tmp_path / "rates"), str(command)], env=env, check=True,
                          capture_output=True, text=True)
    assert done.stdout == ""
    assert json.loads((tmp_path / "dma-faults.json").read_text()) == {"queue_mb_per_s": 300}
    assert movebench.queue_gbps((tmp_path / "rates").read_text()) == 0.3
    command.write_text("#!/bin/sh\nexit 4\n")
    assert subprocess.run(["sh", str(script), "200", "/dev/null", str(command)], env=env).returncode == 4
