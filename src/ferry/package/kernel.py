# SPDX-License-Identifier: GPL-2.0
"""The kernel's packages, made by its own `make bindeb-pkg`: image with modules, and headers.

They are reproducible. What depended on the build is fixed or left out: time, user and host (naming.environment()), the
date in the changelog that mkdebian writes, the times of files (archive.py), debug information with the names of
directories, in the kernel by its configuration, in the headers' host programs by the linker, and the versions of
programs that Kconfig asks for and no package needs. No module is signed, since that takes a key of the build.
The object directory is in a tree of its own, because make then calls the tree "..", whatever its name.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from ferry import paths, progress
from ferry.errors import InfraError
from ferry.kernel import build, config, toolchain
from ferry.package import archive, configurations, naming
from ferry.package.configurations import Configuration
from ferry.series import patches, source, tree
from ferry.series.source import Source

_ARCH = "x86_64"
#: Variables of make that hide two programs, of whose versions configuration and headers would tell.
_HIDDEN = ("RUSTC=/nonexistent", "PAHOLE=/nonexistent")
TOOLS = {"dpkg-buildpackage": "dpkg-dev", "dh_builddeb": "debhelper"}
"""Programs that bindeb-pkg runs beside those of an ordinary build -> Debian's packages with them."""


def build_packages(configuration: Configuration) -> list[Path]:
    """The packages of our kernel in a configuration, built unless the cache has them.

    An interrupted build goes on where it was. Raises InfraError when fetching, patching, configuring or compiling
    fails, UsageError if the clone has no date.
    """
    base = source.obtain()
    start = configurations.debians(configuration.flavour) if configuration.flavour else b""
    home = _home(base, configuration, start)
    if not paths.use(home):
        with paths.lock(f"tree-{base.key}-package-{configuration.name}"):
            # The clone may have changed while another process had the lock.
            home = _home(base, configuration, start)
            if not paths.use(home):
                _build_and_publish(base, configuration, start, home)
    return sorted(home.glob("*.deb"))


def _home(base: Source, configuration: Configuration, start: bytes) -> Path:
    return paths.cache_dir() / "packages" / _key(base, configuration, start)


def _key(base: Source, configuration: Configuration, start: bytes) -> str:
    parts: list[str | bytes] = [base.key, naming.release(base, configuration.name), naming.kernel_version(base),
                                str(naming.epoch()), toolchain.version(), start]
    parts += [path.read_bytes() for path in configurations.fragments(configuration)]
    return build.key_of(parts + build.series_parts())


def need_tools() -> None:
    """Raises InfraError that names the Debian packages of the programs that this machine lacks."""
    if missing := [package for program, package in TOOLS.items() if not shutil.which(program)]:
        raise InfraError(f"missing here: {' '.join(missing)}; kernel packages are built with them",
                         hint=f"./ferry setup (as root), or apt-get install {' '.join(missing)}")


def _build_and_publish(base: Source, configuration: Configuration, start: bytes, home: Path) -> None:
    need_tools()
    paths.need_disk(paths.cache_dir(), configuration.needed_bytes, "building kernel packages")
    where = tree.materialise(base, f"package-{configuration.name}", patches.load())
    objects = where / "objects"
    objects.mkdir(exist_ok=True)
    (objects / "start.config").write_bytes(start)
    config.configure(where, objects, _ARCH, configurations.fragments(configuration),
                     start=objects / "start.config" if start else None, variables=_HIDDEN)
    # bindeb-pkg puts the packages beside the object directory.
    for old in where.glob("*.deb"):
        old.unlink()
    seconds, log = naming.epoch(), objects / "build.log"
    with progress.stage(f"building the {configuration.name} kernel's packages") as stage:
        env = {**naming.environment(seconds), "KDEB_PKGVERSION": naming.kernel_version(base),
               "KDEB_CHANGELOG_DIST": "unstable", "DPKG_FLAGS": _dpkg_flags(seconds), "KDEB_COMPRESS": "none"}
        targets = ("bindeb-pkg", f"LOCALVERSION={naming.local_version(configuration.name)}", "HOSTLDFLAGS=-s", *_HIDDEN)
        build.make(where, objects, _ARCH, targets, log, stage, configuration.steps, env=env,
                   timeout_s=configuration.timeout_s)
        for deb in where.glob("*.deb"):
            archive.rewrite(deb, seconds)
    if _home(base, configuration, start) != home:
        raise InfraError("the kernel's sources in the clone were changed while they were built", hint="the same again")
    with paths.publish(home) as scratch:
        for name in (*where.glob("*.deb"), objects / ".config", log):
            shutil.copy2(name, scratch / name.name.lstrip("."))


def _dpkg_flags(seconds: int) -> str:
    """Arguments for bindeb-pkg's dpkg-buildpackage: only our two packages, and a date of ours in the changelog.

    Without -T there would also be a linux-libc-dev, which would replace the distribution's. -d: the build dependencies
    that mkdebian lists are those of any configuration. The Makefile's $(strip) leaves one of two blanks, so that
    those before a changelog's date must be written otherwise.
    """
    edit = rf"sed -i 's/> .*/>\x20\x20{naming.changelog_date(seconds)}/' debian/changelog"
    return f'-d -Tbinary-image,binary-headers --hook-init="{edit}"'
