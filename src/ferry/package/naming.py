# SPDX-License-Identifier: GPL-2.0
"""Names, versions and times of the packages: the same for the same commit, whatever the directory or the day."""

from __future__ import annotations

import os
import time
from email.utils import formatdate

from ferry import __version__, paths, proc
from ferry.errors import InfraError, UsageError
from ferry.series import source
from ferry.series.source import Source

MAINTAINER = ("Folio Ferry", "folio-ferry@example.org")


def local_version(configuration: str) -> str:
    """What the kernel's release has after the base's version: each configuration has packages of its own name."""
    return f"-ferry-{configuration}"


def release(base: Source, configuration: str) -> str:
    """`uname -r` of a packaged kernel. Boot loaders sort it after Debian's of the same version, before the next."""
    return base.version + local_version(configuration)


def kernel_version(base: Source) -> str:
    """The version of the kernel's packages, which sorts between that of the base's package and the next one's."""
    debians = source.base().debian["version"]
    mine = debians if source.is_debians(base) else f"{base.version.replace('-rc', '~rc')}-1"
    return f"{mine}+ferry{__version__}"


def epoch() -> int:
    """The time (s since 1970) that files in packages have: $SOURCE_DATE_EPOCH, or that of the clone's commit.

    Raises UsageError if there is neither, or if the variable is not a number.
    """
    named = os.environ.get("SOURCE_DATE_EPOCH")
    hint = "SOURCE_DATE_EPOCH=SECONDS ./ferry package ..."
    try:
        return int(named or proc.capture(["git", "log", "-1", "--format=%ct"], cwd=paths.repo_root()))
    except ValueError as error:
        raise UsageError(f"SOURCE_DATE_EPOCH is {named!r}, not a number of seconds", hint=hint) from error
    except InfraError as error:
        raise UsageError(f"the packages have no date, because git names no commit: {error.cause}", hint=hint) from error


def environment(seconds: int) -> dict[str, str]:
    """Variables without which a package would hold the time, the machine or the user of its build."""
    name, address = MAINTAINER
    return {
        "SOURCE_DATE_EPOCH": str(seconds), "TZ": "UTC", "LC_ALL": "C.UTF-8",
        "KBUILD_BUILD_TIMESTAMP": time.strftime("%Y-%m-%d", time.gmtime(seconds)),
        "DEBFULLNAME": name, "DEBEMAIL": address,
        # xz cuts its input otherwise with more threads than one.
        "DPKG_DEB_THREADS_MAX": "1",
    }


def changelog_date(seconds: int) -> str:
    """A time as the last line of a Debian changelog has it."""
    return formatdate(seconds).replace("-0000", "+0000")
