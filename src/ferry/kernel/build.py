# SPDX-License-Identifier: GPL-2.0
"""Build kernels into a cache whose key covers all their inputs.

Object directories persist, so that a small change rebuilds little. A kernel exists once it is published, complete and
in one rename, as cache/kernels/<key>.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ferry import boards, paths, proc, progress
from ferry.boards import Board
from ferry.errors import FerryError, InfraError
from ferry.kernel import config, toolchain
from ferry.series import patches, source, tree
from ferry.series.source import Source

BUILD_BYTES = 1_500_000_000
"""Disk space for one object directory."""
BUILD_TIMEOUT_S = 3600
_NOT_BUILT = ("Documentation/", "tools/")
"""Overlay directories that no kernel image depends on."""
_STEP = re.compile(r"^\s+(CC|AS|LD|AR|HOSTCC|HOSTLD|GEN|UPD|OBJCOPY|CC \[M\]|LD \[M\]|\S+)\s+\S+")


@dataclass(frozen=True)
class Kernel:
    """A published kernel. `modules` maps a module's name ("ferry_mtcopy") to its file."""

    image: Path
    modules: dict[str, Path]
    config: Path
    key: str
    log: Path
    version: str
    tree: Path
    base: str = ""
    """The base kernel in words: source.describe()."""
    present: frozenset[str] = frozenset()
    """Modules that a running kernel has already."""

    def module(self, name: str) -> Path:
        """The file of a module. Raises InfraError if there is none."""
        if name not in self.modules:
            raise InfraError(f"the kernel {self.version} has no module {name}", hint="leave out what needs it")
        return self.modules[name]


def build(board: Board, kernel: str, debug: bool = False) -> Kernel:
    """The kernel ("ferry" or "stock") for a board, built unless the cache has it.

    Raises AllSkipped where the board cannot be, InfraError when fetching, patching, configuring or compiling fails.
    """
    boards.require(board)
    base = source.obtain()
    home = _home(base, board, kernel, debug)
    if not paths.use(home):
        with paths.lock(f"tree-{base.key}-{kernel}"):
            # The clone may have changed while another process had the lock.
            home = _home(base, board, kernel, debug)
            if not paths.use(home):
                _build_and_publish(base, board, kernel, debug, home)
    return _load(home, base, kernel)


def _home(base: Source, board: Board, kernel: str, debug: bool) -> Path:
    return paths.cache_dir() / "kernels" / kernel_key(base, board, kernel, debug)


def kernel_key(base: Source, board: Board, kernel: str, debug: bool) -> str:
    """The key of a kernel: a hash of source, overlay, patches, fragments, compiler and targets."""
    parts: list[str | bytes] = [base.key, board.build, board.arch, *board.targets, toolchain.version(board.arch)]
    for fragment in config.fragments(board, kernel, debug):
        parts += [fragment.name, fragment.read_bytes()]
    if kernel == "ferry":
        parts += series_parts()
    for directory in _external(board, kernel):
        for path in _external_files(directory):
            parts += [path.name, path.read_bytes()]
    return key_of(parts)


def series_parts() -> list[str | bytes]:
    """What the overlay and the patches contribute to a kernel's key."""
    parts: list[str | bytes] = []
    for name, path in patches.overlay_files().items():
        if not name.startswith(_NOT_BUILT):
            parts += [name, path.read_bytes()]
    return parts + [patch.text for patch in patches.load()]


def key_of(parts: Iterable[str | bytes]) -> str:
    """A hash of the parts and of their lengths."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:20]


def _load(home: Path, base: Source, kernel: str) -> Kernel:
    made = json.loads((home / "kernel.json").read_text())
    where = base.path if kernel == "stock" else tree.ferry_tree(base)
    modules = {path.stem.replace("-", "_"): path for path in sorted((home / "modules").glob("*.ko"))}
    return Kernel(home / made["image"], modules, home / "config", home.name, home / "build.log", made["version"], where,
                  source.describe(base))


def object_dir(base: Source, board: Board, kernel: str, debug: bool) -> Path:
    """make's object directory: one for each source, build, kernel and variant."""
    name = f"{board.build}-{kernel}{'-debug' if debug else ''}"
    return paths.cache_dir() / "objects" / base.key / name


def config_only(board: Board, kernel: str, debug: bool) -> Path:
    """Make and check a board's configuration without building."""
    base = source.obtain()
    with paths.lock(f"tree-{base.key}-{kernel}"):
        objects = object_dir(base, board, kernel, debug)
        files = config.fragments(board, kernel, debug)
        return config.configure(tree.prepare(base, kernel), objects, board.arch, files)


def _build_and_publish(base: Source, board: Board, kernel: str, debug: bool, home: Path) -> None:
    paths.need_disk(paths.cache_dir(), BUILD_BYTES, "building a kernel")
    objects = object_dir(base, board, kernel, debug)
    title = f"building the {kernel}{' debug' if debug else ''} kernel for {board.build}"
    where = tree.prepare(base, kernel)
    config.configure(where, objects, board.arch, config.fragments(board, kernel, debug))
    log = objects / "build.log"
    with progress.stage(title) as stage:
        make(where, objects, board.arch, board.targets, log, stage, board.build_steps)
        external = [_make_external(where, objects, board, directory) for directory in _external(board, kernel)]
    if _home(base, board, kernel, debug) != home:
        raise InfraError("the kernel's sources in the clone were changed while they were built", hint="the same again")
    with paths.publish(home) as scratch:
        _collect(objects, board, scratch, base.version)
        for module in (path for made in external for path in made.glob("*.ko")):
            shutil.copy2(module, scratch / "modules" / module.name)


def _external(board: Board, kernel: str) -> tuple[str, ...]:
    return board.external + board.ferry_external if kernel == "ferry" else board.external


def _external_files(directory: str) -> list[Path]:
    """The sources of modules that are in no series, so that they can also be built for the unpatched kernel."""
    return sorted(path for path in (paths.repo_root() / directory).iterdir()
                  if path.name == "Kbuild" or path.suffix in (".c", ".h"))


def _make_external(where: Path, objects: Path, board: Board, directory: str) -> Path:
    """Build such modules against a kernel just built; returns their directory."""
    made = objects / "external" / Path(directory).name
    made.mkdir(parents=True, exist_ok=True)
    log = made / "build.log"
    sources = paths.repo_root() / directory
    variables = [*toolchain.make_variables(board.arch), f"O={objects}", f"M={sources}", f"MO={made}"]
    if proc.run(["make", *variables, "modules"], cwd=where, log=log, timeout=BUILD_TIMEOUT_S).status:
        raise build_error(log)
    return made


def make(
    where: Path,
    objects: Path,
    arch: str,
    targets: tuple[str, ...],
    log: Path,
    stage: progress.Stage,
    steps: int,
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float = BUILD_TIMEOUT_S,
) -> None:
    """Run the kernel's make. `steps` estimates its lines of output for the progress bar, until a build counts them.

    `env` goes over what otherwise makes an unchanged tree an unchanged image. Raises InfraError with the first
    compiler error, TimedOut.
    """
    record = objects / "ferry-steps"
    total = int(record.read_text()) if record.is_file() else steps
    done = 0

    def on_line(line: str) -> None:
        nonlocal done
        if _STEP.match(line):
            done += 1
            stage.update(done, total, line.split()[-1])

    # With a fixed name and time, an unchanged tree links to an unchanged image.
    fixed = {"KBUILD_BUILD_TIMESTAMP": "2026-01-01", "KBUILD_BUILD_USER": "ferry", "KBUILD_BUILD_HOST": "ferry"}
    command = ["make", f"-j{os.cpu_count() or 1}", *toolchain.make_variables(arch), f"O={objects}", *targets]
    result = proc.run(command, cwd=where, log=log, env={**fixed, **(env or {})}, progress=on_line, timeout=timeout_s)
    if result.status:
        raise build_error(log)
    if done > total // 2:
        record.write_text(str(done))


def build_error(log: Path) -> FerryError:
    """The first error in make's log; with -j the last lines are rarely the cause."""
    causes: list[tuple[str, Callable[[str], str]]] = [
        (r"No space left on device", lambda line: f"the disk is full: {line}"),
        (r"(?:fatal )?error: |undefined reference|undefined!|: Error: ", lambda line: line),
        (r"Killed|internal compiler error", lambda line: f"the compiler was killed (out of memory?): {line}"),
        (r"\*\*\* .*(?:Error|Stop|No rule)|not found", lambda line: line),
    ]
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    for pattern, say in causes:
        for line in lines:
            if re.search(pattern, line):
                hint = "free some space, or --cache DIR" if "No space" in pattern else "./ferry doctor, or read the log"
                return InfraError(f"the kernel does not build: {say(line.strip())}", hint=hint, log=log)
    return InfraError("the kernel does not build", hint="read the log", log=log)


def _collect(objects: Path, board: Board, scratch: Path, version: str) -> None:
    """Copy the files that a boot needs out of the object directory."""
    image = Path(board.image).name
    shutil.copy2(objects / board.image, scratch / image)
    shutil.copy2(objects / ".config", scratch / "config")
    shutil.copy2(objects / "System.map", scratch / "System.map")
    shutil.copy2(objects / "build.log", scratch / "build.log")
    (scratch / "modules").mkdir()
    order = objects / "modules.order"
    for line in order.read_text().split() if order.is_file() else ():
        module = objects / Path(line).with_suffix(".ko")
        shutil.copy2(module, scratch / "modules" / module.name)
    (scratch / "kernel.json").write_text(json.dumps({"image": image, "version": version, "board": board.name}))
