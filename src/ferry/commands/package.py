# SPDX-License-Identifier: GPL-2.0
"""The verb `package`: make Debian packages of the kernel, of the tool and of the guest programs."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ferry import paths, progress
from ferry.errors import UsageError
from ferry.package import configurations, kernel, tool


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`ferry package`."""
    known = "; ".join(f"{configuration.name}: {configuration.summary}" for configuration in configurations.ALL.values())
    parser = sub.add_parser("package", help="make Debian packages of the kernel, the tool and the guest programs",
                            description="Make Debian packages: the kernel's image with its modules, its headers, and "
                                        "folio-ferry with this tool and the guest programs. The same commit gives the "
                                        "same bytes on the same release of Debian. An interrupted build goes on where "
                                        "it was.")
    parser.add_argument("--config", default="board", choices=tuple(configurations.ALL),
                        help=f"{known} (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="where to put them; created if missing")


def run(args: argparse.Namespace) -> int:
    """Entry of the verb. Whatever would make it fail in the end is tested before the build."""
    out = _writable(args.out)
    kernel.need_tools()
    with tempfile.TemporaryDirectory(prefix="ferry-package-", dir=paths.cache_dir()) as scratch:
        made = [tool.build_package(Path(scratch)), *kernel.build_packages(configurations.ALL[args.config])]
        _copy(made, out)
    for path in made:
        print(out / path.name)
    progress.note(f"to install them: apt install {out}/*.deb")
    return 0


def _writable(out: Path) -> Path:
    """The absolute path of a directory, made if it is missing. Raises UsageError if this user may not write there."""
    where = out.expanduser().absolute()
    try:
        where.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=where).close()
    except OSError as error:
        raise UsageError(f"--out {out}: {error.strerror}", hint="--out DIR that you may write") from error
    return where


def _copy(files: Sequence[Path], out: Path) -> None:
    """Copy the packages; each appears under its name when it is complete."""
    paths.need_disk(out, sum(path.stat().st_size for path in files), "copying the packages")
    for path in files:
        part = out / f".{path.name}.part"
        shutil.copyfile(path, part)
        part.replace(out / path.name)
