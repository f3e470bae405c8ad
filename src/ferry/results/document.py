# SPDX-License-Identifier: GPL-2.0
"""The shape of a benchmark's result: one document per bench and board, one row per thing measured.

A sample is identified by (boot, round). Two rows of one document were measured in turn, so samples with the same
identity were taken side by side and their ratio is free of the drift of the host.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict, cast, get_origin, get_type_hints

SCHEMA = 2
"""Since 2, the two sides of a comparison are rows of their own in every bench."""

#: The board that is the machine itself.
LOCAL = "local"

#: The unit of rows of `ferry bench tlb` without a speed.
EVENTS = "ipis_per_1000_pages"

#: The phase of a row of `ferry bench breakdown` that is no phase but all of them.
TOTAL = "total"

#: Units in which a smaller figure is the better one, and endings of the keys of such figures.
COSTS = frozenset({"instructions_per_page", "ns", "ns_per_page", "ns_per_block", EVENTS})
COST_ENDINGS = ("_us", "_ms", "shootdowns_per_1000_pages")

#: Units in words; gbps is 10^9 bytes a second.
UNIT_NAMES = {"gbps": "GB/s", "instructions_per_page": "instructions a page", "ns": "ns", "ns_per_page": "ns a page",
              "ns_per_block": "ns a block",
              "moves_per_second": "page moves/s", "lookups_per_second": "lookups/s",
              "requests_per_second": "requests/s", "touches_per_second": "touches/s",
              EVENTS: "IPIs per 1,000 migrated pages"}

#: How each kind of figure may be used; shown with every table and on every plot.
KIND_NOTES = {
    "emulated": "emulated: ratios only",
    "instructions": "instructions counted by the guest clock",
    "native": "native speed of this host",
}


class Ratio(TypedDict):
    """A ratio above 1 is better, whatever the unit. `ci95` is None when there are too few samples to tell."""

    median: float
    ci95: list[float] | None


class Failure(TypedDict):
    """A sample that was asked for and did not come, or came wrong; it is never among the samples."""

    boot: int
    round: int
    reason: str


class CopySample(TypedDict):
    """The copies of one sample, of one CPU in the same round, and of engines at their speed."""

    boot: int
    round: int
    copy_gbps: float
    cpu_gbps: float
    engine_gbps: float
    """Of all channels of the row together."""


class Row(TypedDict):
    """One configuration at one folio size. `sample_ids` names each sample's [boot, round]."""

    kernel: str
    migrator: str
    threads: int
    channels: int
    folio_bytes: int
    total_bytes: int
    unit: str
    samples: list[float]
    sample_ids: list[list[int]]
    median: float | None
    mad: float | None
    ratio_to_baseline: Ratio | None
    failures: list[Failure]
    store: NotRequired[str]
    verify: NotRequired[str]
    deferring: NotRequired[bool]
    workload: NotRequired[str]
    kind: NotRequired[str]
    order: NotRequired[str | int]
    """Of the addresses that move; in `ferry bench compaction`, of the blocks."""
    pages_per_call: NotRequired[int]
    runs: NotRequired[bool]
    method: NotRequired[str]
    path: NotRequired[str]
    layout: NotRequired[str]
    device: NotRequired[str]
    phase: NotRequired[str]
    ratio_to_limit: NotRequired[Ratio | None]
    ratio_to_off: NotRequired[Ratio | None]
    ratio_to_threads: NotRequired[Ratio | None]
    engine_rate: NotRequired[float]
    """Speed of each channel, in multiples of a CPU's copy rate; absent if the engines are as fast as they are."""
    ratio_to_sum: NotRequired[Ratio | None]
    """Of the copies, to what the row's channels and one CPU together copy; of the same rows, by channels only."""
    copy_samples: NotRequired[list[CopySample]]
    stall_p50_us: NotRequired[float | None]
    """How long a thread waits for the memory while it moves; medians over `stall_samples`, None if it never did."""
    stall_p99_us: NotRequired[float | None]
    stall_p999_us: NotRequired[float | None]
    stall_max_us: NotRequired[float | None]
    stall_samples: NotRequired[list[dict[str, float | None]]]
    """Boot, round and the figures of each, by the keys of a StallRow; no percentiles if the thread never waited."""
    figures: NotRequired[dict[str, list[float | None]]]
    """Of every good sample, by the key of the figure: what was measured beside `samples`."""
    ratios: NotRequired[dict[str, Ratio | None]]
    """To the baseline's, by the key of the figure; above 1 is better. None or absent of the baseline itself."""


class Skip(TypedDict):
    """A folio size, or a workload, that this guest cannot measure, and why."""

    folio_bytes: int
    reason: str
    workload: NotRequired[str]


class Document(TypedDict):
    """The output of `--format json`; result.json is a list of these."""

    schema: int
    bench: str
    board: str
    kind: str
    baseline: str
    meta: dict[str, Any]
    rows: list[Row]
    skipped: NotRequired[list[Skip]]
    warnings: NotRequired[list[str]]
    counters: NotRequired[dict[str, dict[str, int]]]
    no_stalls: NotRequired[str]
    """Why no row has stall_p50_us."""


def missing_keys(document: dict[str, Any]) -> list[str]:
    """The required keys that a document from a file lacks; those of a row are named once."""
    rows = document.get("rows")
    wrong = [] if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else ["rows"]
    for part, shape in [(document, Document), *((row, Row) for row in rows or [] if not wrong)]:
        wrong += sorted(_required(shape) - part.keys() - set(wrong))
    return wrong


def _required(shape: type) -> set[str]:
    hints = get_type_hints(shape, include_extras=True)
    return {name for name, kind in hints.items() if get_origin(kind) is not NotRequired}


def label(row: Row) -> str:
    """The row's name in a table: `off`, `kernel`, `mtcopy 2 always`, `dcbm 16`, `auto 16`, `migrc`, `runs`, `stock`."""
    if row["kernel"] == "stock":
        return "stock"
    if "path" in row:
        return row["path"]
    if row.get("deferring"):
        return "migrc runs" if row.get("runs") else "migrc"
    if row.get("runs") and row["migrator"] == "off":
        return "runs"
    name = row.get("method") or row["migrator"]
    count = [str(row["threads"])] * counts_threads(name)
    if name in ("dcbm", "auto") and row["channels"]:
        count = [str(row["channels"])]
    store = [row["store"]] if "store" in row else []
    verify = [row["verify"]] if "verify" in row else []
    runs = ["runs"] if row.get("runs") else []
    return " ".join([name, *count, *store, *verify, *runs])


def counts_threads(name: str) -> bool:
    """Whether the number of threads tells rows of this name apart."""
    return name not in ("off", "kernel", "memcpy", "dcbm", "auto")


def is_cost(unit: str) -> bool:
    """Whether less is better of a unit, or of the figure with this key."""
    return unit in COSTS or unit.endswith(COST_ENDINGS)


def identity(row: Row) -> tuple[str | float, ...]:
    """Rows of different runs with the same identity are the same measurement."""
    return (label(row), row["kernel"], row.get("workload", ""), row["unit"], row["threads"], row["channels"],
            row.get("phase", ""), *column(row))


#: Device, kind of memory, folio bytes, bytes, pages a call, order of the addresses, and speed of the engines.
Column = tuple[str, str, int, int, int, str, float]


def column(row: Row) -> Column:
    """The table column of a row: rows of one column do the same work in different configurations."""
    return (row.get("device", ""), row.get("kind", ""), row["folio_bytes"], row["total_bytes"],
            row.get("pages_per_call", 0), str(row.get("order", "")), row.get("engine_rate", 0.0))


def is_baseline(document: Document, row: Row) -> bool:
    """Whether the document's ratios are taken against this row."""
    return label(row) == document["baseline"]


def baseline_of(document: Document, row: Row) -> Row | None:
    """The baseline's row of the same column, and of the same phase."""
    columns = (other for other in document["rows"] if is_baseline(document, other))
    return next((other for other in columns if column(other) == column(row)
                 and other.get("phase") == row.get("phase")), None)


def stock_note(document: Document) -> list[str]:
    """What `stock` is, for a table that has it."""
    base = document["meta"].get("base")
    return [f"stock: {base}, without ours"] if base and document["baseline"] == "stock" else []


def failure_count(document: Document) -> int:
    """How many samples of the document failed."""
    return sum(len(row["failures"]) for row in document["rows"])


Event = dict[str, Any]


class TlbRow(Row, total=False):
    """A row of `ferry bench tlb`, with further keys. Figures are medians over the samples."""

    ratio: str
    processes: int
    compaction_order: int
    nodes: list[dict[str, Any]]
    events: list[Event]
    """Every good sample, as the guest printed it."""
    ipis: float | None
    flushes: float | None
    ipis_per_1000_moves: float | None
    flushes_per_1000_moves: float | None
    moved_pages: float | None
    migrated_pages: float | None
    kept_kb: float | None
    calls: float | None
    """To munmap(2) and mprotect(2), of all processes."""
    calls_per_second: float | None
    """By each process."""
    ipi_reduction: float | None
    """The share of the baseline's IPIs that is gone. Of all rows but the baseline's, like the next one, and like
    `ratios`: of the events "ipis" and "flushes" per 1,000 pages."""
    flush_reduction: float | None
    migrc: dict[str, int]
    """Its own counters; like all that follow, of rows with migrc."""
    max_bytes: int | None
    max_age_ms: int | None
    peak_bytes: int | None


class StallRow(Row, total=False):
    """A row of `ferry bench stall`. Figures are medians over the samples; ratios are to the baseline's samples."""

    requests_per_second: float | None
    round_trips_per_second: float | None
    p50_us: float | None
    p99_us: float | None
    p999_us: float | None
    max_us: float | None
    failed_folios: float | None
    """That did not move, in a round trip of all memory."""
    waits: float | None
    """The requests that the percentiles are of; only of workloads in which not all count."""
    locked_batches: float
    """That were gathered for a migrator in all samples; absent on stock."""
    locked_p99_us: float | None
    """The bound that the time with locked folios did not exceed in 99 % of these batches; None if that is above the
    kernel's last bound. Absent if there was no batch."""


class TieringRow(Row, total=False):
    """A row of `ferry bench tiering`. Figures are medians over the samples; ratios are to the baseline's samples.

    `figures` and `ratios` also have each tenant, as `tenant_N`.
    """

    policy: str
    touches_per_second: float | None
    """Of all tenants together; like the next two, of the workload `tenants`."""
    slowest_touches_per_second: float | None
    """Of the slowest tenant of each sample."""
    tenants: list[float]
    """The touches a second of each."""
    requests_per_second: float | None
    """Of the workload `redis`."""
    promotions: float | None
    """Pages in a sample, like the next four."""
    demotions: float | None
    migrated_pages: float | None
    copied_by_migrator: float | None
    moved_in_runs: float | None
    promotions_per_second: float | None
    shootdowns: float | None
    """Interrupts for TLB shootdowns of all CPUs in a sample."""
    shootdowns_per_1000_pages: float | None
    """Per 1,000 migrated pages."""
    p50_us: float | None
    p99_us: float | None
    p999_us: float | None
    max_us: float | None
    by_reason: dict[str, int]
    """Pages that moved for each reason in all good samples together; none on the unpatched kernel."""


class CompactionRow(Row, total=False):
    """A row of `ferry bench compaction`. Figures are medians over the samples; None where a sample has no such figure.

    Its `order` is that of the blocks. The percentages are of the CPU that compacts, as /proc/stat has them.
    """

    wall_ms: float | None
    migrated: float | None
    """Pages, as pgmigrate_success of /proc/vmstat counts them."""
    copied_by_migrator: float | None
    """Pages of these that a migrator copied."""
    moved_in_runs: float | None
    hog_iterations: float | None
    hog_iterations_per_second: float | None
    user_percent: float | None
    sys_percent: float | None
    idle_percent: float | None
    sys_ms: float | None
    thread_ms: float | None
    """CPU time of the thread that compacts. It is exact; /proc/stat counts ticks."""
    success_percent: float | None
    """Of the timed allocations."""
    allocated: float | None
    """Blocks that could be made in all, untimed ones included."""
    events: list[Event]
    """Every good sample, as the guest printed it."""


class BreakdownRow(Row, total=False):
    """A row of `ferry bench breakdown`: a phase, or TOTAL. The keys after `share` are those of the phase "copy"."""

    share: float | None
    """The phase's part of the total; None without a sample."""
    migrate_pages_share: float | None
    """The copy's part of migrate_pages() alone, without move_pages(2) around it."""
    amdahl_bound: float | None
    """How many times as fast the same would be if the copy took no time: 1 / (1 - share)."""
    reached: float | None
    """Of migrators only: the part of what the bound promises beside `off` that the migrator has gained; below 0 it has
    lost."""


def rows_of(document: Document) -> list[TlbRow]:
    """The rows of a document of this bench."""
    return cast(list[TlbRow], document["rows"])
