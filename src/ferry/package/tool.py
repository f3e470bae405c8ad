# SPDX-License-Identifier: GPL-2.0
"""The package folio-ferry: the tool for a machine that runs the kernel, and the guest programs.

The tool runs with Debian's own Python and modules, without the clone's virtual environment. The programs are static,
so that one package serves every release of Debian.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ferry import __version__, paths, proc, progress
from ferry.kernel import kunit_tool, series_selftests
from ferry.package import archive, naming
from ferry.vm import guest_programs

NAME = "folio-ferry"
LIBRARY = f"usr/lib/{NAME}"
PROGRAMS = f"usr/libexec/{NAME}"
DOCS = f"usr/share/doc/{NAME}"
SERVICE = "ferry-restore.service"
DEPENDS = ("python3-jinja2", "python3-matplotlib", "python3-numpy", "python3-rich", "python3-shtab")
_SUFFIXES = (".py", ".toml", ".j2", ".c")
"""The files of the tool."""
# -P: a directory called ferry in the current one is not taken for the tool. -B: dpkg removes all that it installed.
_LAUNCHER = f"""#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
PYTHONPATH=/{LIBRARY} exec /usr/bin/python3 -BP -m ferry "$@"
"""
# Else the link by which it was enabled would stay. systemctl removes it also where systemd does not run: in a chroot.
_PRERM = f"""#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
if [ "$1" = remove ] && command -v systemctl >/dev/null; then systemctl disable {SERVICE} || true; fi
"""
# Else systemd would keep the unit that was removed, or the one that an upgrade replaced.
_POSTRM = """#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
"""
_CONTROL = """\
Package: {name}
Version: {version}
Architecture: amd64
Maintainer: {maintainer}
Installed-Size: {kib}
Depends: python3 (>= 3.11), {depends}
Section: admin
Priority: optional
Description: control, watch and measure accelerated page migration
 The command ferry shows, sets, saves and restores the settings of a kernel
 with Folio Ferry's patches, and shows what that kernel copies and moves. The
 programs in /{programs} load and check page migration.
"""


def build_package(into: Path) -> Path:
    """Write the package to the directory `into`, and return its path. Raises InfraError, UsageError."""
    programs = guest_programs.programs(static=True)
    seconds = naming.epoch()
    with (progress.stage(f"making the package {NAME}"),
          tempfile.TemporaryDirectory(prefix="ferry-package-", dir=paths.cache_dir()) as scratch):
        root, built = Path(scratch) / "root", Path(scratch) / "built"
        built.mkdir()
        selftests = series_selftests.programs(built, "x86_64", series_selftests.LIVE, static=True)
        _add_files(root, programs, selftests)
        _add_generated(root, seconds)
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
        _write(root / "DEBIAN/control", _CONTROL.format(
            name=NAME, version=__version__, maintainer="{} <{}>".format(*naming.MAINTAINER), programs=PROGRAMS,
            depends=", ".join(DEPENDS), kib=-(-size // 1024)))
        for name, script in {"prerm": _PRERM, "postrm": _POSTRM}.items():
            _write(root / "DEBIAN" / name, script)
            (root / "DEBIAN" / name).chmod(0o755)
        _set_modes(root)
        made = into / f"{NAME}_{__version__}_amd64.deb"
        archive.write(root, made, seconds)
        return made


def _add_files(root: Path, programs: dict[str, Path], selftests: Sequence[Path]) -> None:
    """The files of the clone, and the programs that were built."""
    clone = paths.repo_root()
    copies = {path: f"{LIBRARY}/{path.relative_to(clone / 'src')}" for path in _listed(clone, "src/ferry")
              if path.suffix in _SUFFIXES}
    copies |= {path: f"{PROGRAMS}/{name}" for name, path in programs.items()}
    copies |= {path: f"{PROGRAMS}/{series_selftests.INSTALLED}/{path.name}" for path in selftests}
    reader = kunit_tool.directory()
    copies |= {reader / name: f"{PROGRAMS}/{kunit_tool.INSTALLED}/{name}" for name in kunit_tool.FILES}
    copies |= {path: f"{PROGRAMS}/scripts/{path.name}" for path in _listed(clone, "guest/scripts")
               if path.suffix == ".sh"}
    copies |= {path: f"{DOCS}/{path.relative_to(clone / 'docs')}" for path in _listed(clone, "docs")
               if path.suffix == ".md"}
    units = clone / "packaging/systemd"
    copies |= {path: f"usr/lib/systemd/system/{path.relative_to(units)}"
               for path in _listed(clone, "packaging/systemd")}
    copies |= {clone / "COPYING": f"{DOCS}/copyright"}
    for path, name in copies.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / name)


def _listed(clone: Path, folder: str) -> list[Path]:
    """The files of a folder that git lists; all files if the clone is no repository. Raises InfraError if git fails."""
    if not (clone / ".git").exists():
        return [path for path in (clone / folder).rglob("*") if path.is_file()]
    names = proc.capture(["git", "ls-files", "-z", "--", folder], cwd=clone).split("\0")
    return [clone / name for name in names if name]


def _add_generated(root: Path, seconds: int) -> None:
    """The command, and what the tool as it was just copied prints about itself."""
    _write(root / "usr/bin/ferry", _LAUNCHER)
    (root / "usr/bin/ferry").chmod(0o755)
    ferry = [sys.executable, "-BP", "-m", "ferry"]
    env = {"PYTHONPATH": str(root / LIBRARY), "COLUMNS": "80"}
    man = root / "usr/share/man/man1/ferry.1.gz"
    man.parent.mkdir(parents=True)
    man.write_bytes(gzip.compress(proc.capture([*ferry, "man"], env=env).encode(), mtime=seconds))
    for shell, name in {"bash": "bash-completion/completions/ferry", "zsh": "zsh/vendor-completions/_ferry"}.items():
        _write(root / "usr/share" / name, proc.capture([*ferry, "completion", shell], env=env))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _set_modes(root: Path) -> None:
    """The clone's modes depend on the umask of the user who cloned it; only the executable bit counts."""
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
