# SPDX-License-Identifier: GPL-2.0
"""A directory that looks like /sys/kernel/mm/migration, and writes to it that behave as the kernel's."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

REASONS = ("compaction", "memory_failure", "memory_hotplug", "syscall_or_cpuset", "mempolicy_mbind", "numa_misplaced",
           "contig_range", "longterm_pin", "demotion", "damon")
LIMITED = ("syscall_or_cpuset", "damon")
MIGRATORS = ("kernel", "mtcopy", "dcbm", "auto")
WORDS = "off kernel mtcopy dcbm auto"
COUNTERS = ("batches", "folios", "bytes", "copy_ns", "fallbacks", "skipped_unsupported", "skipped_pinned",
            "skipped_small", "skipped_no_buffer", "rejected")
MOVED = ("moved_pages", "failed_pages", "throttled_us")
BOUNDS_US = (64, 256, 1024, 4096, 16384, 65536)
SETTINGS = {
    "migrator": f"[off] {WORDS.removeprefix('off ')}", "runs": "0", "batch_min_bytes": "65536",
    "batch_max_bytes": "33554432", "batch_max_us": "4000",
    "mtcopy/threads": "4", "mtcopy/nontemporal": "never always [auto]",
    "dcbm/channels": "16", "dcbm/devices": "all", "dcbm/timeout_ms": "0", "dcbm/verify": "[auto] always",
    "migrc/enabled": "0", "migrc/max_bytes": "268435456", "migrc/max_age_ms": "1000",
    **{f"reasons/{reason}/migrator": f"[inherit] {WORDS}" for reason in REASONS},
    **{f"reasons/{reason}/batch_max_us": "0" for reason in REASONS},
    **{f"reasons/{reason}/max_bytes_per_s": "0" for reason in LIMITED},
}
ZEROES = (
    "migrc/quarantined_bytes", "migrc/peak_bytes", "migrc/oldest_ms", "migrc/counters/folios", "migrc/counters/ptes",
    "migrc/counters/avoided_ipis", "migrc/counters/flushed_drain", "migrc/counters/flushed_age",
    "migrc/counters/skipped_writable", "dcbm/counters/copied_bytes", "dcbm/counters/verify_ns", "dcbm/counters/errors",
    "dcbm/counters/timeouts", "dcbm/counters/verify_failures", "dcbm/counters/rejected_busy",
    "dcbm/counters/hung_pages", "dcbm/counters/leaked_pages",
    "mtcopy/helper_ns", "stats/runs/moved", "stats/runs/left_busy", "stats/runs/left_pinned",
    *(f"stats/{migrator}/{file}" for migrator in MIGRATORS for file in COUNTERS),
    *(f"stats/{migrator}/{reason}/{file}" for migrator in MIGRATORS for reason in REASONS for file in COUNTERS),
    *(f"stats/reasons/{reason}/{file}" for reason in REASONS for file in MOVED),
    *(f"stats/reasons/{reason}/locked/{file}" for reason in REASONS
      for file in (*(f"le_{bound}us" for bound in BOUNDS_US), "count", "total_us")),
)
MAXIMUM = {"runs": 1, "migrc/enabled": 1, "mtcopy/threads": 64, "dcbm/channels": 64}


def make(root: Path) -> Path:
    """All files, with every counter at 0."""
    files = {**SETTINGS, **dict.fromkeys(ZEROES, "0"), "migrc/drain": ""}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
        path.chmod(0o444 if name in ZEROES else 0o200 if name == "migrc/drain" else 0o644)
    return root


def count(root: Path, **increases: int) -> None:
    """Add to counters of demotion with mtcopy, and of all reasons together."""
    for file, increase in increases.items():
        add(root, f"stats/mtcopy/{file}", increase)
        add(root, f"stats/mtcopy/demotion/{file}", increase)


def add(root: Path, name: str, increase: int) -> None:
    path = root / name
    path.write_text(f"{int(path.read_text()) + increase}\n")


def lock(root: Path, reason: str, *times_us: int) -> None:
    """Batches whose folios were locked for so long."""
    for time_us in times_us:
        reached = [f"le_{bound}us" for bound in BOUNDS_US if time_us <= bound]
        for file in (*reached, "count"):
            add(root, f"stats/reasons/{reason}/locked/{file}", 1)
        add(root, f"stats/reasons/{reason}/locked/total_us", time_us)


def store(root: Path, name: str, text: str) -> None:
    """A write as the kernel takes it: a word selects, a number within bounds is kept, anything else is EINVAL."""
    path = root / name
    shown = path.read_text().split()
    words = [word.strip("[]") for word in shown]
    if any(word.startswith("[") for word in shown):
        if text not in words:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
        text = " ".join(f"[{word}]" if word == text else word for word in words)
    elif name == "dcbm/devices":
        if text == "none0":
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), str(path))
    elif not re.fullmatch(r"\d+", text) or int(text) > MAXIMUM.get(name, 1 << 30):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
    path.write_text(f"{text}\n")
