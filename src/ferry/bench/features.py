# SPDX-License-Identifier: GPL-2.0
"""What migrators and runs did in the samples of a row, and the rows in which they did nothing."""

from __future__ import annotations

from ferry.results.document import Event, Row, label


def copied(event: Event) -> float:
    """Pages that migrators copied, all of them together; none where the kernel has none."""
    return float(sum(value for key, value in event.items() if key.startswith("copied_")))


def moved_in_runs(event: Event) -> float:
    """Pages that moved in runs; none where the kernel has no runs."""
    return float(event.get("moved_in_runs", 0))


def warnings(row: Row) -> list[str]:
    """What was on in a row and did nothing in any of its samples."""
    name, figures, found = f"{row.get('device')}, {label(row)}", row["figures"], []
    if row["samples"] and row["migrator"] != "off" and not any(figures["copied_by_migrator"]):
        found.append(f"{name}: the migrator copied no page, so this row shows the fallback")
    if row["samples"] and row.get("runs") and not any(figures["moved_in_runs"]):
        found.append(f"{name}: no page was moved in a run")
    return found
