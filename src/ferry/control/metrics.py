# SPDX-License-Identifier: GPL-2.0
"""The control files in Prometheus' text format, in seconds and bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.control import tree
from ferry.control.histogram import locked
from ferry.control.tree import Choice, Value

COUNTER = "counter"
GAUGE = "gauge"
HISTOGRAM = "histogram"

_COPY = r"stats/(?P<migrator>[^/]+)/(?:(?P<reason>[^/]+)/)?"
_RULES = tuple((re.compile(pattern), family, kind) for pattern, family, kind in (
    (r"stats/runs/left_(?P<cause>.+)", "runs_left_pages", COUNTER),
    (r"stats/runs/moved", "runs_moved_pages", COUNTER),
    (r"stats/runs/(?P<file>[^/]+)", "runs_{file}", COUNTER),
    (r"stats/reasons/(?P<reason>[^/]+)/(?P<file>.+)", "{file}", COUNTER),
    (_COPY + "batches", "copied_batches", COUNTER),
    (_COPY + "folios", "copied_folios", COUNTER),
    (_COPY + "bytes", "copied_bytes", COUNTER),
    (_COPY + "fallbacks", "fallback_folios", COUNTER),
    (_COPY + "rejected", "rejected_batches", COUNTER),
    (_COPY + "skipped_(?P<cause>unsupported|pinned)", "skipped_folios", COUNTER),
    (_COPY + r"skipped_(?P<cause>[^/]+)", "skipped_batches", COUNTER),
    (_COPY + r"(?P<file>[^/]+)", "{file}", COUNTER),
    (r"(?P<part>[^/]+)/counters/(?P<file>avoided_.+|hung_pages)", "{part}_{file}", GAUGE),
    (r"(?P<part>[^/]+)/counters/(?P<file>flushed|skipped|rejected)_(?P<cause>.+)", "{part}_{file}", COUNTER),
    (r"(?P<part>[^/]+)/counters/(?P<file>.+)", "{part}_{file}", COUNTER),
    (r"(?P<file>mtcopy/helper_ns)", "{file}", COUNTER),
    (r"reasons/(?P<reason>[^/]+)/(?P<file>.+)", "reason_{file}", GAUGE),
    (r"runs", "runs_enabled", GAUGE),
    (r"(?P<file>.+)", "{file}", GAUGE),
))
"""Pattern of a file's name, the name of its metric, and its type. Groups other than part and file become labels.

avoided_* and hung_pages can fall.
"""
_UNITS = {"_ns": ("_seconds", 10**9), "_us": ("_seconds", 10**6), "_ms": ("_seconds", 10**3),
          "_per_s": ("_per_second", 1)}
"""Suffix of a file's name, that of the metric, and the divisor."""


@dataclass
class Family:
    """A metric: its type, the files that it comes from, and its lines."""

    kind: str
    help: str
    lines: list[str] = field(default_factory=list)


def exposition(values: Mapping[str, Value]) -> str:
    """All values, grouped by metric as the format requires."""
    families: dict[str, Family] = {}
    copies = tree.copies(values)
    # A sum over reasons would count the directory of all reasons together twice.
    totals = {f"stats/{one.migrator}" for one in copies if one.reason}
    for name, value in values.items():
        if "/locked/" in name or name.rpartition("/")[0] in totals:
            continue
        if isinstance(value, int):
            _add_number(families, name, value)
        else:
            _add_words(families, name, value)
    _add_locked(families, values)
    return "".join(f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"
                   + "".join(f"{line}\n" for line in family.lines) for name, family in sorted(families.items()))


def _add_number(families: dict[str, Family], name: str, value: int) -> None:
    match, template, kind = next((match, template, kind) for pattern, template, kind in _RULES
                                 if (match := pattern.fullmatch(name)))
    groups = {key: text for key, text in match.groupdict().items() if text}
    labels = {key: text for key, text in groups.items() if key not in ("part", "file")}
    origin = name
    for key in sorted(labels, key=match.start, reverse=True):
        origin = f"{origin[:match.start(key)]}<{key}>{origin[match.end(key):]}"
    family, number = re.sub(r"\W", "_", template.format(**groups)), str(value)
    for suffix, (unit, divisor) in _UNITS.items():
        if name.endswith(suffix):
            family, number = family.removesuffix(suffix) + unit, str(value if divisor == 1 else value / divisor)
    full = f"ferry_{family}{'_total' if kind == COUNTER else ''}"
    families.setdefault(full, Family(kind, f"File {origin}")).lines.append(f"{full}{_labels(labels)} {number}")


def _add_words(families: dict[str, Family], name: str, value: Choice | str) -> None:
    """A setting that is no number is a label, and the number is 1."""
    selected = value.selected if isinstance(value, Choice) else value
    if match := re.fullmatch(r"(?:reasons/([^/]+)/)?migrator", name):
        full, origin = "ferry_migrator_selected", "Files migrator and reasons/<reason>/migrator"
        labels = {"reason": match[1]} if match[1] else {}
        labels["migrator"] = selected
    else:
        full, origin = "ferry_setting_info", "Files whose value is no number"
        labels = {"name": name, "value": selected}
    families.setdefault(full, Family(GAUGE, origin)).lines.append(f"{full}{_labels(labels)} 1")


def _add_locked(families: dict[str, Family], values: Mapping[str, Value]) -> None:
    full = "ferry_locked_seconds"
    for reason, histogram in locked(values).items():
        lines = families.setdefault(full, Family(HISTOGRAM, "Files stats/reasons/<reason>/locked/*")).lines
        lines += [f"{full}_bucket{_labels({'reason': reason, 'le': str(bound / 10**6)})} {most}"
                  for bound, most in histogram.buckets.items()]
        lines += [f"{full}_bucket{_labels({'reason': reason, 'le': '+Inf'})} {histogram.count}",
                  f"{full}_sum{_labels({'reason': reason})} {histogram.total_us / 10**6}",
                  f"{full}_count{_labels({'reason': reason})} {histogram.count}"]


def _labels(labels: Mapping[str, str]) -> str:
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    inner = ",".join(f'{key}="{text.translate(escapes)}"' for key, text in labels.items())
    return f"{{{inner}}}" if inner else ""
