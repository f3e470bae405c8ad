# SPDX-License-Identifier: GPL-2.0
"""The fragments in kernel/configs: what the suites rest on is asked for."""

from __future__ import annotations

import pytest

from ferry import boards
from ferry.kernel import config

CHECKS = ("DEBUG_VM", "PROVE_LOCKING", "DEBUG_ATOMIC_SLEEP", "PAGE_TABLE_CHECK_ENFORCED", "DMA_API_DEBUG",
          "DEBUG_KMEMLEAK", "PAGE_POISONING", "DEBUG_OBJECTS_WORK", "UBSAN", "WQ_WATCHDOG", "DETECT_HUNG_TASK",
          "IKCONFIG_PROC")


@pytest.mark.parametrize("name", ["x86-numa", "zcu102"])
def test_a_debug_kernel_has_the_checks(name: str) -> None:
    asked = {symbol for file in config.fragments(boards.load(name), "ferry", True)
             for symbol, value in config.requested(file).items() if value == "y"}
    assert asked >= set(CHECKS)
