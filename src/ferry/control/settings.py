# SPDX-License-Identifier: GPL-2.0
"""Settings as NAME=VALUE: checked, written all or none, saved and restored."""

from __future__ import annotations

import difflib
import errno
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferry.control import tree
from ferry.control.tree import Choice, File
from ferry.errors import FerryError, UsageError

ABI = "see values and errors in Documentation/ABI/testing/sysfs-kernel-mm-migration* of the kernel"


@dataclass(frozen=True)
class Setting:
    """A file's name and the text to write to it."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


def parse(word: str) -> Setting:
    """Raises UsageError if the word has no name or no `=`."""
    name, equals, value = word.partition("=")
    if not (name and equals):
        raise UsageError(f"{word!r} is not NAME=VALUE", hint="ferry ctl show lists the names")
    return Setting(name.strip(), value.strip())


def apply(root: Path, settings: Sequence[Setting], *, skip_absent: bool = False) -> list[str]:
    """Write all settings in their order, or none.

    Raises UsageError, before anything is written, for a name that does not exist or is read-only, and for a value that
    is not valid text. If the kernel rejects a value, the former values are written back, and a FerryError names the
    file, the value and the accepted words; it is a UsageError for EINVAL. The former values are also written back if a
    signal ends the writing.

    With `skip_absent` a word for which there is no device yet (ENODEV), such as dcbm before the driver of a DMA engine
    is loaded, is left out, and the others are kept; a line for each such setting is returned.
    """
    present = {file.name: file for file in tree.files(root)}
    for setting in settings:
        _check(root, setting, present)
    former: list[File] = []
    skipped = []
    try:
        for setting in settings:
            file = present[setting.name]
            # Before the write: a signal may arrive between the two.
            former.append(file)
            try:
                tree.write(root / setting.name, setting.value)
            except OSError as error:
                former.pop()
                if not (skip_absent and error.errno == errno.ENODEV and isinstance(file.value, Choice)):
                    raise
                skipped.append(f"{setting}: {error.strerror}; is its driver loaded?")
    except OSError as error:
        undone = _write_back(root, former) or "nothing was changed"
        kind = UsageError if error.errno == errno.EINVAL else FerryError
        raise kind(f"{setting}: {error.strerror}; {_accepted(file)}; {undone}", hint=ABI) from error
    except BaseException:
        _write_back(root, former)
        raise
    return skipped


def _check(root: Path, setting: Setting, present: Mapping[str, File]) -> None:
    file = present.get(setting.name)
    if file is None:
        near = difflib.get_close_matches(setting.name, [name for name, one in present.items() if one.writable], n=1)
        raise UsageError(f"{setting.name} does not exist in {root}",
                         hint=f"{near[0]}={setting.value}" if near else "load its module, or see: ferry ctl show")
    if not file.writable:
        raise UsageError(f"{setting.name} is read-only", hint="ferry ctl save prints the settings that can be written")
    if not os.access(root / setting.name, os.W_OK):
        raise FerryError(f"{setting.name} may not be written by this user", hint="run the same command as root")
    try:
        setting.value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{setting.name}={setting.value!r}: not valid text; {_accepted(file)}", hint=ABI) from error


def _write_back(root: Path, former: Sequence[File]) -> str:
    """Undo the writes, the last first. The settings that could not be written back, in words; "" if there is none."""
    lost = []
    for file in reversed(former):
        if file.text is None:
            continue
        try:
            tree.write(root / file.name, file.setting)
        except OSError as error:
            lost.append(f"{file.name}={file.setting} could not be written back: {error.strerror}")
    return "; ".join(lost)


def _accepted(file: File) -> str:
    if isinstance(file.value, Choice):
        return f"accepted: {' '.join(file.value.words)}"
    return "it can only be written" if file.text is None else f"its value is {file.text}"


def saved(root: Path) -> str:
    """The settings as lines that loaded() reads: all files that can be read and written."""
    system = os.uname()
    head = (f"# Settings of {root}\n# on {system.nodename}, Linux {system.release}, "
            f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}.\n# To apply them: ferry ctl restore FILE\n")
    settings = (file for file in tree.files(root) if file.writable and file.text is not None)
    return head + "".join(f"{Setting(file.name, file.setting)}\n" for file in settings)


def loaded(text: str) -> list[Setting]:
    """The settings of a file, ordered(). Raises UsageError, with the line's number, for a line without `=`."""
    settings = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            settings.append(parse(line.strip()))
        except UsageError as error:
            raise UsageError(f"line {number}: {error.cause}", hint="ferry ctl save shows how the lines look") from error
    return ordered(settings)


def ordered(settings: Iterable[Setting]) -> list[Setting]:
    """The settings in an order that is safe while memory moves.

    First come limits and knobs. What they bound follows: `enabled` and `runs`, then the migrators of reasons, last the
    migrator that the other reasons inherit.
    """
    return sorted(settings, key=_rank)


def _rank(setting: Setting) -> int:
    last = setting.name.rpartition("/")[2]
    if last == "migrator":
        return 3 if setting.name == last else 2
    return int(last in ("enabled", "runs"))


def split(root: Path, settings: Iterable[Setting]) -> tuple[list[Setting], list[str]]:
    """The settings that this kernel knows, and for each of the others a line that says what is missing."""
    present = {file.name: file for file in tree.files(root)}
    known, missing = [], []
    for setting in settings:
        file = present.get(setting.name)
        value = file.value if file else None
        if file is None:
            missing.append(f"{setting}: no such file; is its module loaded?")
        elif isinstance(value, Choice) and setting.value not in value.words:
            missing.append(f"{setting}: no such word now; accepted: {' '.join(value.words)}")
        else:
            known.append(setting)
    return known, missing
