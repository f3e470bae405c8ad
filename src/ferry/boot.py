# SPDX-License-Identifier: GPL-2.0
"""Boots a built kernel, runs one command in it, brings back its status, its files and its console.

The guest sees the host's files read-only, and one shared directory read-write at the path in $FERRY_SHARE. The
command's exit status comes back through a file there: a guest that dies leaves none.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ferry import bare_guest, boards, build, kvm, paths, proc, progress, qemu, splat
from ferry.boards import Board, Node
from ferry.build import Kernel
from ferry.devices.attach import attached
from ferry.errors import InfraError, Splat, TimedOut

_STATUS = ".ferry-status"
_SCRIPT = ".ferry-command"


@dataclass(frozen=True)
class BootResult:
    """How a boot ended without a splat. `status` is the command's."""

    status: int
    console: Path
    share: Path


def boot(
    board: Board,
    kernel: Kernel,
    command: str,
    *,
    timeout_s: float,
    share: Path,
    on_line: Callable[[str], None] | None = None,
    append: Sequence[str] = (),
    expected: Sequence[splat.Report] = (),
    silence_s: float | None = None,
    carry: Sequence[Path] = (),
) -> BootResult:
    """Boot `kernel` on `board` and run `command` by sh in it, for at most `timeout_s` seconds in all.

    `carry` names what the command needs of this machine's files, for boards whose guest does not see them: beside the
    share, the kernel's modules, and guest/'s programs and scripts, which are always there.

    `expected` are reports that the command provokes, and which are no splats.

    A guest that says nothing for `silence_s` seconds counts as one that hangs. One whose kernel has oopsed has
    proc.DYING_S left: threads may wait for ever for the one that died, and those that do not, come to an end.

    `share` is made when missing; its console.log holds all the guest said, each line of which goes to `on_line`.
    Raises Splat when the kernel complained, TimedOut, and InfraError when the guest ended
    without the command's status; AllSkipped where this machine cannot have the board.
    """
    boards.require(board)
    share.mkdir(parents=True, exist_ok=True)
    share = share.resolve()
    _write_script(share, command)

    def look(console: Path) -> None:
        _raise_splat(console, expected)

    def once() -> BootResult:
        return _boot_once(board, kernel, timeout_s, share, on_line, append, look, silence_s, carry)

    try:
        return once()
    except Splat as error:
        if not stale_breakpoint(error.log):
            raise
        progress.note(f"{board.name}: {error.cause}: QEMU ran code that was already patched; booting again")
    return once()


def stale_breakpoint(console: Path | None) -> bool:
    """Did the guest die of QEMU's own race, before anything of ours ran?

    The kernel patches code behind a breakpoint. QEMU's multi-threaded TCG may run that breakpoint on another CPU after
    it is gone (seen with 7.2, while secondary CPUs start): the kernel does not know it any more, and stops. After init
    has started the same words are held against the kernel.
    """
    text = console.read_text(errors="replace") if console and console.is_file() else ""
    return "Oops: int3" in text and "as init process" not in text


def _boot_once(
    board: Board,
    kernel: Kernel,
    timeout_s: float,
    share: Path,
    on_line: Callable[[str], None] | None,
    append: Sequence[str],
    look: Callable[[Path], None],
    silence_s: float | None,
    carry: Sequence[Path],
) -> BootResult:
    """One attempt; raises what boot() raises."""
    (share / _STATUS).unlink(missing_ok=True)
    console = share / "console.log"
    try:
        with _prepared(board, kernel, share, append, carry) as (line, bring_back):
            env = _environment()
            proc.run(line, log=console, timeout=timeout_s, silence=silence_s, dying=splat.crippling, progress=on_line,
                     cwd=share, env=env)
            missing = bring_back()
    except TimedOut as error:
        look(console)
        cause = f"{board.name}: {error.cause}"
        raise TimedOut(cause, hint="--timeout SECONDS, or read the log", log=console) from error
    look(console)
    return BootResult(_status(board, share, console, missing), console, share)


@contextmanager
def _prepared(
    board: Board, kernel: Kernel, share: Path, append: Sequence[str], carry: Sequence[Path]
) -> Iterator[tuple[list[str | Path], Callable[[], str]]]:
    """The command that runs the guest, and what to call after it: that says why the guest's files did not come."""
    if board.runner == "initramfs":
        with bare_guest.prepared(board, kernel, share, _SCRIPT, append, carry) as started:
            yield started.line, started.bring_back
    else:
        make_line = _uml_line if board.runner == "uml" else _qemu_line
        with attached(board, share) as equipped:
            yield make_line(equipped, kernel, share, append), lambda: ""


def _environment() -> dict[str, str]:
    """virtme-ng reads a configuration file of the user's, QEMU looks for a sound card: a lab depends on neither."""
    return {"VIRTME_NG_CONFIG": os.devnull, "QEMU_AUDIO_DRV": "none", "TERM": "dumb"}


def _write_script(share: Path, command: str) -> None:
    """The command runs in a shell of its own, so that `exit` in it does not lose the status."""
    (share / f"{_SCRIPT}.inner").write_text(command + "\n")
    quoted = shlex.quote(str(share))
    script = share / _SCRIPT
    script.write_text(
        f"#!/bin/sh\nexport FERRY_SHARE={quoted}\n"
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
        f"cd {quoted}\nsh ./{_SCRIPT}.inner\nstatus=$?\n"
        f"echo $status >{_STATUS}.part && mv {_STATUS}.part {_STATUS}\nsync\n"
    )
    script.chmod(0o755)


def _raise_splat(console: Path, expected: Sequence[splat.Report]) -> None:
    found = splat.scan(console.read_text(errors="replace"), expected) if console.is_file() else []
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise Splat(f"kernel splat: {found[0]}{more}, line {found[0].line}", hint="read the log", log=console)


def _status(board: Board, share: Path, console: Path, missing: str) -> int:
    try:
        return int((share / _STATUS).read_text())
    except (OSError, ValueError) as error:
        lines = [line for line in console.read_text(errors="replace").splitlines() if line.strip()]
        said = lines[-1][-200:] if lines else "nothing"
        why = f" ({missing})" if missing else ""
        raise InfraError(
            f"{board.name}: the guest ended without running its command to the end{why}; its last words: {said}",
            hint="./ferry doctor",
            log=console,
        ) from error


def _qemu_line(board: Board, kernel: Kernel, share: Path, append: Sequence[str]) -> list[str | Path]:
    newer = qemu.with_vfio_user() if board.devices else None
    # virtme-ng says a good deal less clearly that it is missing.
    if not newer and not shutil.which(qemu.PROGRAM):
        raise proc.missing_program(qemu.PROGRAM)
    use_kvm = kvm.used(board, kernel.image)
    line: list[str | Path] = ["vng", "--verbose", "--disable-microvm", "--force-9p", "--disable-monitor"]
    line += [] if use_kvm else ["--disable-kvm"]
    line += ["--qemu", newer] if newer else []
    # A socket for each node with CPUs: a last-level cache shared across nodes makes the kernel warn.
    sockets = sum(bool(node.cpus) for node in board.nodes)
    line += ["--run", kernel.image, "--cpus", f"{board.cpus},sockets={sockets}", "--memory", f"{board.memory_mib}M"]
    line += [word for node in board.nodes for word in ("--numa", _numa_node(board, node))]
    line += ["--numa-distance", "0,1=20"] if len(board.nodes) > 1 else []
    line += ["--user", "root", "--cwd", share, "--rwdir", f"{share}={share}"]
    for word in (*board.append, *append):
        line += ["--append", word]
    options = [*([] if use_kvm or not board.qemu_cpu else ["-cpu", board.qemu_cpu]), *_tier_options(board)]
    options += board.qemu_options
    line += [f"--qemu-opts={shlex.join(options)}"] if options else []
    return [*line, "--exec", f"sh {shlex.quote(str(share / _SCRIPT))}"]


def _numa_node(board: Board, node: Node) -> str:
    """A node in virtme-ng's spelling; whatever follows the size goes to QEMU as it is."""
    near = _cpu_nodes(board)[0] if _tiered(board) and not node.cpus else None
    return f"{node.memory_mib}M" + (f",cpus={node.cpus}" if node.cpus else "") + (
        f",initiator={near}" if near is not None else "")


def _tiered(board: Board) -> bool:
    return any(node.latency_ns for node in board.nodes)


def _cpu_nodes(board: Board) -> list[int]:
    return [number for number, node in enumerate(board.nodes) if node.cpus]


def _tier_options(board: Board) -> list[str]:
    """ACPI's table of how fast each node's memory is: what the kernel makes its memory tiers of."""
    if not _tiered(board):
        return []
    options = ["-machine", "hmat=on"]
    for target, node in enumerate(board.nodes):
        for initiator in _cpu_nodes(board):
            way = f"hmat-lb,initiator={initiator},target={target},hierarchy=memory"
            options += ["-numa", f"{way},data-type=access-latency,latency={node.latency_ns}"]
            options += ["-numa", f"{way},data-type=access-bandwidth,bandwidth={node.bandwidth_mibps}M"]
    return options


def _uml_line(board: Board, kernel: Kernel, share: Path, append: Sequence[str]) -> list[str | Path]:
    """UML's init is the command itself, then power off; the host's root is mounted read-only, the share over it."""
    init = share / ".ferry-init"
    quoted = shlex.quote(str(share))
    init.write_text(
        "#!/bin/sh\nmount -t proc proc /proc\nmount -t sysfs sysfs /sys\nmount -t debugfs none /sys/kernel/debug\n"
        "mount -t tmpfs tmpfs /dev/shm 2>/dev/null\n"
        f"mount -t hostfs -o {quoted} none {quoted}\nsh {quoted}/{_SCRIPT}\n"
        # reboot(2) asked by sysrq: needs no program of an init system.
        "sync\nexec poweroff -f 2>/dev/null || echo o >/proc/sysrq-trigger\nsleep 5\n"
    )
    init.chmod(0o755)
    line: list[str | Path] = [kernel.image, f"mem={board.memory_mib}M", f"ncpus={board.cpus}", "root=/dev/root"]
    line += ["rootfstype=hostfs", "ro", f"init={init}", "con=null", "con0=null,fd:1", "console=tty0", "panic=-1"]
    return [*line, *board.append, *append]


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("boot", help="boot a board's kernel and run a command in it")
    parser.add_argument("--board", default="x86-numa", choices=boards.names(), help="default: %(default)s")
    parser.add_argument("--kernel", default="ferry", choices=("ferry", "stock"), help="default: %(default)s")
    parser.add_argument("--debug", action="store_true", help="the debug variant")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds for everything (default: the board's)")
    parser.add_argument("--share", type=Path, metavar="DIR", help="directory the guest may write (default: a new one)")
    parser.add_argument("--append", action="append", default=[], metavar="WORD", help="add to the kernel command line")
    parser.add_argument("command", nargs="*", help="run by sh in the guest (default: uname -a)")


def run(args: argparse.Namespace) -> int:
    board = boards.load(args.board)
    boards.require(board)
    kernel = build.build(board, args.kernel, args.debug)
    scratch = paths.cache_dir() / "boots"
    scratch.mkdir(exist_ok=True)
    share = args.share or Path(tempfile.mkdtemp(prefix=f"{board.name}-", dir=scratch))
    command = " ".join(args.command) or "uname -a"
    with progress.stage(f"booting {board.name}"):
        result = boot(
            board,
            kernel,
            f"{{ {command}\n}} >output.txt 2>&1",
            timeout_s=args.timeout or board.boot_timeout_s,
            share=share,
            append=args.append,
        )
    print((share / "output.txt").read_text(errors="replace"), end="")
    progress.note(f"status {result.status}; console: {result.console}")
    return result.status
