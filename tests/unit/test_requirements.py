# SPDX-License-Identifier: GPL-2.0
"""requirements.txt pins, by hash, what pyproject.toml names."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ferry import paths


def pins() -> dict[str, tuple[str, int]]:
    """Version and number of hashes of each pinned package."""
    text = (paths.repo_root() / "requirements.txt").read_text()
    found = re.findall(r"^([\w.-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", text, re.MULTILINE)
    assert len(found) == len([line for line in text.splitlines() if "==" in line])
    return {canonicalize_name(name): (version, hashes.count("--hash=")) for name, version, hashes in found}


def test_each_package_is_pinned_within_its_range_and_has_hashes() -> None:
    project = tomllib.loads((paths.repo_root() / "pyproject.toml").read_text())["project"]
    pinned = pins()
    for words in (*project["dependencies"], *project["optional-dependencies"]["dev"]):
        wanted = Requirement(words)
        assert canonicalize_name(wanted.name) in pinned, f"{words}: make requirements.txt again"
        assert wanted.specifier.contains(pinned[canonicalize_name(wanted.name)][0]), words


def test_the_launcher_takes_nothing_without_a_hash() -> None:
    launcher = (paths.repo_root() / "ferry").read_text()
    assert launcher.count("pip ") == launcher.count("pip --disable-pip-version-check install --require-hashes") == 1
