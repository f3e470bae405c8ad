# SPDX-License-Identifier: GPL-2.0
"""What a sweep's options come to."""

from __future__ import annotations

import argparse
from dataclasses import replace

import made_up
import pytest

from ferry.bench import plan
from ferry.errors import UsageError


@pytest.mark.parametrize(("text", "count"), [("4k", 4096), ("64K", 65536), ("2m", 2 << 20), ("1G", 1 << 30)])
def test_folio_sizes_survive_the_way_to_movebench(text: str, count: int) -> None:
    assert plan.folio_size(text) == count
    assert plan.size_argument(count) == text.lower()


@pytest.mark.parametrize("text", ["0", "65", "-1", "1.5", "x", "²", ""])
def test_a_number_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no number from 1 to 64"):
        plan.bounded(1, 64)(text)


def test_a_value_that_is_listed_twice_is_measured_once() -> None:
    assert plan.listed(plan.folio_size)("4k,2m,4k") == [4 << 10, 2 << 20]


def test_a_list_of_thread_counts() -> None:
    assert plan.listed(plan.bounded(1, 64))("1, 64,") == [1, 64]


@pytest.mark.parametrize("text", ["1m", "3m", "64", "k", "m", "0m", "-2m"])
def test_totals_that_are_not_whole_folios(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        plan.byte_count(text)


def test_an_unknown_migrator_names_those_there_are() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="'dma' is none of off, kernel, mtcopy"):
        plan.one_of(plan.MIGRATORS)("dma")


def test_boots_share_the_samples_and_give_no_fewer() -> None:
    assert made_up.plan(samples=10, boots=3).samples_per_boot == 4
    assert made_up.plan(samples=12, boots=3).samples_per_boot == 4


def test_the_workload_says_what_differs_from_the_default() -> None:
    assert made_up.plan().workload("anon") == "anon"
    assert made_up.plan(hogs=4).workload("shmem") == "shmem, 4 hogs"


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(UsageError, match="9 samples are too few"):
        plan.checked(made_up.plan(samples=9))


def test_a_part_of_a_folio_is_refused() -> None:
    sweep = made_up.plan()
    case = plan.Case(1 << 30, 32 << 20, "hugetlb")
    with pytest.raises(UsageError, match="32m are not whole folios of 1g"):
        plan.checked(replace(sweep, cases=(case,)))


def test_folios_of_1g_are_counted_for_the_largest_case() -> None:
    assert made_up.plan().gigantic_folios == 0
    cases = (plan.Case(2 << 20, 4 << 30, "hugetlb"), *(plan.Case(1 << 30, count << 30, "hugetlb") for count in (2, 1)))
    assert replace(made_up.plan(), cases=cases).gigantic_folios == 2


def test_off_is_always_measured() -> None:
    assert [one.label for one in plan.configs(plan.Choice(["mtcopy"], [2]))] == ["off", "mtcopy2", "runs"]


def test_always_is_a_workload_of_its_own() -> None:
    chosen = plan.configs(plan.Choice(["dcbm"], [1], channels=[4], always=True))
    assert chosen[1].argument == ("dcbm4:dcbm/channels=4,dcbm/timeout_ms=1000,debugfs:ferry_dcbm/force_offload=1,"
                                  "runs=0,migrator=dcbm")
    assert made_up.plan(always=True).workload("anon") == "anon, dcbm always"


def test_a_limit_is_of_all_rows_and_a_workload_of_its_own() -> None:
    chosen = plan.configs(plan.Choice(["mtcopy"], [2], batch_max_us=100_000))
    assert [dict(one.settings).get("batch_max_us") for one in chosen] == ["100000"] * 3
    assert made_up.plan(batch_max_us=100_000).workload("anon") == "anon, batch_max_us 100000"


def test_channels_and_verification_make_rows_of_their_own() -> None:
    chosen = plan.configs(plan.Choice(["dcbm"], [1], channels=[1, 16], verify=["auto", "always"]))
    assert [one.label for one in chosen] == ["off", "dcbm1-auto", "dcbm16-auto", "dcbm1-always",
                                                "dcbm16-always", "runs"]
    assert chosen[2].argument == ("dcbm16-auto:dcbm/channels=16,dcbm/timeout_ms=1000,dcbm/verify=auto,runs=0,"
                                  "migrator=dcbm")


def test_migrc_is_a_row_beside_the_others_which_have_it_off() -> None:
    chosen = plan.configs(plan.Choice(["kernel"], [1], migrc=True))
    assert [one.label for one in chosen] == ["off", "kernel", "migrc", "runs"]
    assert [dict(one.settings)["migrc/enabled"] for one in chosen] == ["0", "0", "1", "0"]
    assert chosen[-2].migrator == "off"


@pytest.mark.parametrize(("asked", "labels"), [
    (None, ["off", "mtcopy2", "runs"]), (["off"], ["off", "mtcopy2"]), (["on"], ["off", "runs", "mtcopy2-runs"]),
    (["on", "off"], ["off", "mtcopy2", "runs", "mtcopy2-runs"])])
def test_runs_are_a_row_or_the_second_half_of_the_rows(asked: list[str] | None, labels: list[str]) -> None:
    chosen = plan.configs(plan.Choice(["mtcopy"], [2], runs=asked))
    assert [one.label for one in chosen] == labels
    assert [dict(one.settings)["runs"] for one in chosen] == ["1" if "runs" in label else "0" for label in labels]


def test_cases_have_names_of_their_own() -> None:
    cases = [plan.Case(4096, 1 << 20, kind, count, order)
             for kind in plan.KINDS for count in (0, 1, 32) for order in plan.ORDERS]
    assert len({case.name for case in cases}) == len(cases)
    assert plan.Case(4096, 1 << 20).name == "4k" and plan.Case(4096, 1 << 20, "shmem", 32).name == "shmem-4k-32"


def test_without_migrc_its_switch_is_left_alone() -> None:
    assert all("migrc/enabled" not in dict(one.settings) for one in plan.configs(plan.Choice(["kernel"], [1])))
