# SPDX-License-Identifier: GPL-2.0
"""dcbm on working DMA engines (guest/scripts/dma.sh), and with fault injection (guest/scripts/dma-faults.sh)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry import boards
from ferry.devices import COUNTERS, LOG
from ferry.kernel.build import Kernel
from ferry.suites import guest_boot
from ferry.suites.context import Context
from ferry.suites.guest_boot import Job
from ferry.suites.result import Result, failed, result_of
from ferry.vm import guest_programs

NAME = "dma"
FAULTS_NAME = "dma-faults"
MODULE = "ferry_dcbm"
#: A software DMA engine whose driver fails on request.
TESTDMA = "ferry_testdma"
#: Makes a real engine report an error, and loads if its driver handles that right.
ERRORS = "zynqmp_errors"
IOMMU_BOARD = "x86-ptdma-iommu"
#: Of the device models' engines; ioatdma needs dca.
DRIVERS = ("ptdma", "ae4dma", "dca", "ioatdma")
LOAD_S = 20
#: Folios that each case of dma-faults submits to dcbm.
FOLIOS = 10_000
SHORT_FOLIOS = 500
#: For one case of dma-faults: several times the slowest seen.
CASE_S = 300
SHORT_CASE_S = 120
AROUND_S = 600
#: SLUB poisons the freed descriptors of drivers of PCI devices: an access after the free is detected.
POISON = "slub_debug=FZPU,0000:*"
#: All DMA goes through bounce buffers.
BOUNCE = "swiotlb=force"


@dataclass(frozen=True)
class Case:
    """A fault of an engine or a driver, or an action under load. dcbm must copy folios in spite of it.

    `setup` is a line of shell that calls functions of dma-faults.sh; `evidence` one of dcbm's counters or a file of the
    guest, whose number must change; `action` a function of dma-faults.sh, repeated under load. The evidence "actions"
    counts how often it succeeds. Rates are such that a fault is sure to happen, and that some transfers complete
    nevertheless: where a fault makes a channel hang, one in 50 descriptors. A case that is not `always` runs only if
    the user names the suite. "least=N" in a setup asks for so great a change of the number, "may_hang=0" for no channel
    that hangs.
    """

    name: str
    setup: str
    evidence: str
    action: str = "wait_only"
    always: bool = False

    @property
    def argument(self) -> str:
        """As dma-faults.sh takes it."""
        return "|".join((self.name, self.setup, self.evidence, self.action))


#: A thousand if the suite is named, otherwise ten.
_MANY = "least=$((most_folios>1000?1000:10))"
_KUNIT = "/sys/kernel/debug/kunit/ferry_dcbm"
_UNBOUND_BUSY = "/sys/kernel/debug/ferry_testdma/unbound_busy"
_HITS_PREP = "/sys/kernel/debug/ferry_testdma/hits_prep"
_INJECTED = "/sys/kernel/debug/fail_function/times"
_FAILED_SLAB = "/sys/kernel/debug/failslab/times"

#: With ferry_testdma, in the role of a driver whose quirks are known, or as one that is not.
TESTDMA_CASES = (
    Case("an error", "testdma ferry_testdma error=5", "errors", always=True),
    # The quirk of this driver is known: its channels stay active.
    Case("an error reported as success", "testdma sf-pdma partial=5", "verify_failures"),
    Case("an unknown driver, a partial copy", "testdma ferry_testdma partial=20", "leaked_pages", "rebind",
         always=True),
    Case("a write after an early completion", "testdma ferry_testdma early_completion=20", "leaked_pages", "rebind"),
    # A trusted driver, if the user does not trust it.
    Case("a trusted driver, a partial copy, verify=always", "knob verify always; testdma ioatdma partial=20",
         "leaked_pages", "rebind"),
    Case("a lost completion, and the driver unbound", "hang_soon; testdma ferry_testdma lost=50", "leaked_pages",
         "rebind", always=True),
    Case("a write after the driver is unbound", "hang_soon; testdma ferry_testdma late_write=50", "leaked_pages",
         "rebind"),
    Case("a late completion", "hang_soon; testdma ferry_testdma late=50", "late_completions", always=True),
    Case("prep returns no descriptor", "hang_soon; testdma ferry_testdma prep=5", _HITS_PREP),
    Case("the driver unbound under load", "testdma ferry_testdma", "actions", "rebind"),
    Case("channels removed under load", "testdma ferry_testdma", "actions", "remove_channels"),
    # Each descriptor is in time, but all of a batch are not.
    Case("a slow engine", "hang_soon; testdma ferry_testdma late_ms=20 late=1", "deadline_exceeded"),
    Case("four tasks, two channels", "nr_devices=1 movers=4; testdma ferry_testdma", "rejected_busy"),
    Case("four tasks, two channels, late completions",
         "nr_devices=1 movers=4; hang_soon; testdma ferry_testdma late=50", "late_completions", always=True),
    Case("a mapping fails", "testdma ferry_testdma; fail_function dcbm_map 20", _INJECTED),
    Case("prep fails", "testdma ferry_testdma; fail_function dcbm_prep 20", _INJECTED),
    Case("an allocation fails", "testdma ferry_testdma; fail_slab 20", _FAILED_SLAB, always=True),
    # A driver that reports errors.
    Case("a trusted driver, an error", "testdma ioatdma error=5", "errors"),
    Case("a trusted driver, a late completion", "hang_soon; testdma ioatdma late=50", "late_completions"),
    # Like ioat, it stops its device before it unregisters it.
    Case("a driver that stops its device, unbound at work", f"{_MANY}; nr_devices=2; testdma ioatdma late_ms=1 late=8",
         "actions", "rebind_at_once", always=True),
    # idxd: completions out of order, a short queue, and channels that come and go while the device stays.
    Case("idxd: a queue unbound at work", f"{_MANY}; nr_devices=1; testdma idxd late_ms=1 late=8", _UNBOUND_BUSY,
         "rebind_at_once", always=True),
    Case("idxd: an error", "testdma idxd error=5", "errors"),
    Case("idxd: a lost completion, and the queue unbound", "hang_soon; testdma idxd lost=50", "leaked_pages", "rebind"),
    # The driver waits ten times as long as dcbm does for a completion before it gives the channel up.
    Case("idxd: a queue that hangs, unbound",
         "folios=$((most_folios/20)); nr_devices=1; hang_soon; testdma idxd late_ms=10000 late=50", "actions",
         "unbind_hung", always=True),
    # The quirk of this driver is known: its channels stay active although it aborts all descriptors behind an error.
    Case("a trusted driver, an error that aborts others", "testdma xilinx-zynqmp-dma error=5", "errors", always=True),
)


def _models(driver: str, **faults: object) -> str:
    """The setup of a case with device models, which are a process of this machine: several times its response time."""
    return f"knob timeout_ms 200; models {driver} '{json.dumps(faults)}'"


def _few(setup: str) -> str:
    """The setup of a case that takes long for each folio: 500 if the suite is named, otherwise 25."""
    return f"folios=$((most_folios/20)); {setup}"


def _lost(evidence: str) -> Case:
    return Case("ptdma: a lost completion, and unbound", _few(_models("ptdma", stall=20)), evidence, "rebind",
                always=True)


_LATE_MS = 800

#: With the kernel's own ptdma, which reports errors. A device that copies half and reports success is found only if the
#: user does not trust it. Its only channel then hangs until the driver is bound again: that takes time.
PTDMA_CASES = (
    Case("ptdma: no fault", _models("ptdma"), "completed"),
    Case("ptdma: an error", _few(_models("ptdma", error=50)), "errors", always=True),
    Case("ptdma: an error, verify=always", _few(f"knob verify always; {_models('ptdma', error=50)}"), "errors"),
    Case("ptdma: a partial copy, verify=always", _few(f"knob verify always; {_models('ptdma', partial=20)}"),
         "verify_failures", "rebind", always=True),
    Case("ptdma: a late completion", _few(_models("ptdma", late=50, late_ms=_LATE_MS)), "late_completions"),
    Case("ptdma: unbound under load", _few(_models("ptdma")), "actions", "rebind"),
    _lost("leaked_pages"),
)
MIXED_CASES = (
    Case("ptdma beside a slower engine", f"nr_devices=1; testdma ferry_testdma late_ms=5 late=1; {_models('ptdma')}",
         "actions", "both_copy", always=True),
)
#: With the kernel's own ioatdma, whose timer resets a channel without progress after two of its periods of 200 ms.
IOAT_CASES = (
    Case("ioat: no fault", f"{_models('ioatdma')}; only", "completed"),
    Case("ioat: an error that aborts others",
         _few(f"may_hang=0; {_models('ioatdma', error=50)}; knob timeout_ms 5000; only"), "errors", always=True),
    Case("ioat: a late completion", _few(f"{_models('ioatdma', late=50, late_ms=200)}; hang_soon; only"),
         "late_completions"),
    Case("ioat: a lost completion, and the channel reset", _few(f"{_models('ioatdma', stall=50)}; only"),
         "late_completions", always=True),
    # Some end during the reset, which waits up to 100 ms for the descriptor under way.
    Case("ioat: a copy during the reset", f"{_models('ioatdma', late=3, late_ms=350)}; only", "late_completions",
         always=True),
    Case("ioat: a lost completion, and resets that fail",
         _few(f"{_models('ioatdma', stall=50, reset_ms=600)}; only"), "late_completions"),
    Case("ioat: unbound at work", _few(f"{_models('ioatdma')}; only"), "actions", "rebind_used", always=True),
)
#: Behind an IOMMU no page leaks.
IOMMU_CASES = (
    Case("ptdma: IOVA windows", _models("ptdma"), "actions", "windows_copy", always=True),
    *PTDMA_CASES[:-1],
    _lost("released_pages"),
    Case("ioat: IOVA windows", _few(f"{_models('ioatdma')}; only"), "actions", "windows_copy"),
)
#: Its driver cannot be unbound.
AE4DMA_CASES = (
    Case("ae4dma: no fault", f"{_models('ae4dma')}; only", "completed"),
    Case("ae4dma: an error", f"{_models('ae4dma', error=5)}; only", "errors", always=True),
    Case("ae4dma: a partial copy, verify=always", f"knob verify always; {_models('ae4dma', partial=5)}; only",
         "verify_failures", always=True),
    Case("ae4dma: a late completion", f"{_models('ae4dma', late=20, late_ms=_LATE_MS)}; only", "late_completions"),
    Case("ae4dma beside a slower ptdma", _models("ae4dma", ptdma={"delay_us": 5000}), "actions", "both_copy",
         always=True),
)


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    modules = [kernel.modules[module] for module in (MODULE, TESTDMA, ERRORS)]
    command = guest_programs.script_line("dma.sh", context.board.channels, LOAD_S, _program(context, "movebench"),
                                         _program(context, "integrity"), *modules)
    return guest_boot.run_jobs(context, kernel, [_job(kernel, NAME, NAME, command, 2 * LOAD_S + AROUND_S)], NAME)


def run_faults(context: Context) -> list[Result]:
    """On the debug kernel, four boots: ae4dma's driver cannot be unloaded."""
    debug = guest_boot.debug_kernel(context)
    behind_iommu = dataclasses.replace(context, board=boards.load(IOMMU_BOARD))
    cases = (*TESTDMA_CASES, *PTDMA_CASES, *MIXED_CASES, *IOAT_CASES)
    return [
        *_boot(context, debug, "dma-swiotlb", [_swiotlb_job(debug)], BOUNCE),
        *_boot(context, debug, FAULTS_NAME,
               [_kunit_job(debug), _policy_job(context, debug),
                faults_job(context, debug, FAULTS_NAME, cases, "some")]),
        *_boot(behind_iommu, debug, "dma-faults-iommu",
               [faults_job(behind_iommu, debug, "dma-faults-iommu", IOMMU_CASES, "none")]),
        *_boot(context, debug, "dma-faults-ae4dma",
               [faults_job(context, debug, "dma-faults-ae4dma", AE4DMA_CASES, "none"), _dmatest_job(debug)]),
    ]


def faults_job(context: Context, kernel: Kernel, name: str, cases: Sequence[Case], leaks: str) -> Job:
    """dma-faults.sh with these cases, which leak `some` or `none` of the pages that a device may still write."""
    folios, seconds = (FOLIOS, CASE_S) if context.thorough else (SHORT_FOLIOS, SHORT_CASE_S)
    chosen = [case for case in cases if case.always or context.thorough]
    modules = [kernel.modules.get(module, "-") for module in (MODULE, TESTDMA, *DRIVERS)]
    command = guest_programs.script_line("dma-faults.sh", folios, _program(context, "integrity"), *modules, leaks,
                                         *(case.argument for case in chosen))
    return _job(kernel, FAULTS_NAME, name, command, len(chosen) * seconds + AROUND_S)


def _kunit_job(kernel: Kernel) -> Job:
    """The KUnit tests in the module: an engine that is late, refuses or hangs just when a test says so."""
    setup = (guest_boot.load(kernel), guest_boot.load(kernel, MODULE))
    return Job(FAULTS_NAME, "dma-kunit", f"echo 1 >{_KUNIT}/run && cat {_KUNIT}/results", AROUND_S, setup)


def _policy_job(context: Context, kernel: Kernel) -> Job:
    command = guest_programs.script_line("dma-policy.sh", _program(context, "stallbench"), kernel.modules[MODULE],
                                         kernel.modules[TESTDMA])
    return _job(kernel, FAULTS_NAME, "dma-policy", command, AROUND_S)


def _swiotlb_job(kernel: Kernel) -> Job:
    modules = [kernel.modules[module] for module in (MODULE, TESTDMA, "ptdma")]
    command = guest_programs.script_line("dma-swiotlb.sh", *modules)
    return _job(kernel, FAULTS_NAME, "dma-swiotlb", command, AROUND_S)


def _dmatest_job(kernel: Kernel) -> Job:
    """Several clients of a channel of ae4dma, where dcbm is a single one. Its driver is loaded, and is not in use."""
    command = guest_programs.script_line("dmatest.sh", kernel.modules["dmatest"], "ae4dma")
    return Job(FAULTS_NAME, "dmatest", command, AROUND_S)


def _job(kernel: Kernel, suite: str, name: str, command: str, seconds: int) -> Job:
    """A job that loads dcbm itself; dcbm needs mtcopy."""
    return Job(suite, name, command, seconds, (guest_boot.load(kernel),))


def _boot(context: Context, kernel: Kernel, name: str, jobs: Sequence[Job], *append: str) -> list[Result]:
    found = guest_boot.run_jobs(context, kernel, jobs, name, append=[POISON, *append])
    shares = guest_boot.shares(context, name) if context.board.devices else []
    return [*found, *(_refusals(share) for share in shares)]


def _refusals(share: Path) -> Result:
    """A failure if a device model refused an access: nobody injects that, so the guest had unmapped memory too early.

    Behind the IOMMU this is the only sign of it. The models write their last counters when the guest has ended.
    """
    title, log = f"{share.name}: the device models refused no access", share / LOG
    try:
        document = json.loads((share / COUNTERS).read_text())
    except (OSError, ValueError) as cause:
        return failed(FAULTS_NAME, title, f"{COUNTERS} cannot be read: {cause}", log=log)
    if not document["final"]:
        return failed(FAULTS_NAME, title, f"{COUNTERS} is not that of the end", log=log)
    refused = [f"bad_addresses of queue {queue['queue']} of {device}: {queue['bad_addresses']}"
               for device, report in document["devices"].items() for queue in report["queues"]
               if queue["bad_addresses"]]
    return result_of(not refused, FAULTS_NAME, title, "; ".join(refused), log=log)


def _program(context: Context, name: str) -> Path:
    return guest_programs.programs(context.board.arch)[name]
