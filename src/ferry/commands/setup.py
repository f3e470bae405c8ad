# SPDX-License-Identifier: GPL-2.0
"""The verb `setup`: install the packages that `doctor` finds missing, by Debian's apt."""

from __future__ import annotations

import argparse
import os
import shutil

from ferry import paths, progress
from ferry.commands import doctor
from ferry.debian import apt
from ferry.errors import InfraError


def install_missing() -> list[str]:
    """Install the missing packages and return them.

    Raises InfraError without apt, root or network; not for what a single board, verb or suite needs.
    """
    absent = doctor.absent()
    done = _install([requirement.package for requirement in absent if not requirement.only])
    try:
        return done + _install([requirement.package for requirement in absent if requirement.only])
    except InfraError as error:
        users = ", ".join(sorted({requirement.only for requirement in absent if requirement.only}))
        progress.note(f"{users} will not work: {error.cause}")
        return done


def _install(packages: list[str]) -> list[str]:
    if not packages:
        return []
    listed = " ".join(packages)
    if not shutil.which("apt-get"):
        raise InfraError(
            f"missing here: {listed}; ferry can install packages by Debian's apt only",
            hint="install your system's equivalents of these packages, then ./ferry doctor",
        )
    if os.geteuid() != 0:
        raise InfraError(f"missing here: {listed}; only root may install them", hint=f"sudo apt-get install {listed}")
    apt.install(packages, paths.cache_dir() / "apt-install.log")
    still = [requirement.package for requirement in doctor.absent() if requirement.package in packages]
    if still:
        raise InfraError(f"apt installed {listed}, but missing are still: {' '.join(still)}", hint="./ferry doctor")
    return packages


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sub.add_parser("setup", help="install missing packages (Debian, as root)")


def run(args: argparse.Namespace) -> int:
    """Entry of the verb. Raises InfraError without a clone: the installed tool builds nothing."""
    paths.repo_root()
    done = install_missing()
    progress.note(f"installed {' '.join(done)}" if done else "nothing is missing")
    return 0
