# SPDX-License-Identifier: GPL-2.0
"""The unit that restores settings at boot calls the tool as it is, and only where there is something to restore."""

from __future__ import annotations

import configparser
import shlex
from pathlib import Path

from ferry import paths
from ferry.commands import cli

UNITS = paths.repo_root() / "packaging/systemd"


def unit(path: Path) -> configparser.ConfigParser:
    """A unit without repeated keys, or with the last of them."""
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read(path)
    return parsed


def test_the_service_restores_the_file_that_it_waits_for() -> None:
    service = unit(UNITS / "ferry-restore.service")
    program, *words = shlex.split(service["Service"]["ExecStart"])
    args = cli.build_parser(("ctl",)).parse_args(words)
    assert program == "/usr/bin/ferry" and (args.verb, args.action) == ("ctl", "restore")
    assert service["Unit"]["ConditionPathExists"] == str(args.file)
    assert service["Service"]["ExecStartPre"] == "-/usr/bin/udevadm settle --timeout=30"
    assert service["Service"]["Type"] == "oneshot" and service["Install"]["WantedBy"] == "multi-user.target"


def test_the_drop_in_only_adds_a_step_that_may_fail() -> None:
    drop_in = unit(UNITS / "ferry-restore.service.d/modules.conf")
    assert drop_in.sections() == ["Service"] and list(drop_in["Service"]) == ["ExecStartPre"]
    assert drop_in["Service"]["ExecStartPre"].startswith("-/usr/sbin/modprobe -a ferry_mtcopy")
