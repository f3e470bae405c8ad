# SPDX-License-Identifier: GPL-2.0
"""The verb `metrics`: print counters and settings of the running kernel in Prometheus' text format."""

from __future__ import annotations

from ferry.control.verbs import add_metrics as add_parser
from ferry.control.verbs import run

__all__ = ("add_parser", "run")
