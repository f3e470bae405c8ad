# SPDX-License-Identifier: GPL-2.0
"""Debian's apt: find the machine's mirror, fetch packages without changing the system, install packages."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ferry import paths, proc, progress
from ferry.errors import InfraError, TimedOut

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_HELPER = Path("/usr/lib/apt/apt-helper")
FETCH_TIMEOUT_S = 900
STRICT = ["-o", "APT::Update::Error-Mode=any", "-o", "Acquire::Retries=3"]
"""Without the first option, `update` succeeds if the mirror is unreachable."""


def _one_line_entries(text: str) -> Iterator[tuple[str, str]]:
    """(address, suite) of each `deb [options] ADDRESS SUITE COMPONENT...` line."""
    for line in text.splitlines():
        if match := re.match(r"deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)", line):
            yield match[1], match[2]


def _deb822_entries(text: str) -> Iterator[tuple[str, str]]:
    """(address, suite) of each pair in a deb822 file's enabled stanzas."""
    without_comments = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", without_comments):
        joined = re.sub(r"\n[ \t]+", " ", stanza)
        keys = {key.lower(): value for key, value in re.findall(r"^([\w-]+):[ \t]*(.*)$", joined, re.MULTILINE)}
        if keys.get("enabled", "yes").lower() == "no" or "deb" not in keys.get("types", "").split():
            continue
        for address in keys.get("uris", "").split():
            yield from ((address, suite) for suite in keys.get("suites", "").split())


def entries(etc: Path) -> list[tuple[str, str]]:
    """Every (address, suite) in apt's sources, in both formats.

    Not by `apt-get indextargets`, which prints nothing until `apt-get update` has run.
    """
    found: list[tuple[str, str]] = []
    lists = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]
    for path in lists:
        if path.is_file():
            found += _one_line_entries(path.read_text(errors="replace"))
    for path in sorted((etc / "sources.list.d").glob("*.sources")):
        found += _deb822_entries(path.read_text(errors="replace"))
    return found


def mirror(etc: Path | None = None) -> str:
    """The address of the machine's Debian archive, not that of the security updates.

    Raises InfraError if apt's sources have none.
    """
    for address, suite in entries(etc or Path(os.environ.get("FERRY_APT_ETC", "/etc/apt"))):
        if "security" in suite or "security" in address or "/" in suite:
            continue
        if re.search(r"/debian/?$", address) or re.match(r"(bookworm|trixie|forky|stable|testing|sid)\b", suite):
            return address
    raise InfraError("apt's sources name no Debian mirror", hint="--source PATH, or add a mirror to /etc/apt")


def release() -> str:
    """The code name of this machine's Debian release, such as "bookworm". Raises InfraError on another system."""
    try:
        return platform.freedesktop_os_release()["VERSION_CODENAME"]
    except (OSError, KeyError):
        raise InfraError("this machine runs no release of Debian", hint="a Debian machine") from None


def _options(state: Path, address: str, suites: Sequence[str]) -> list[str]:
    """apt's options for a separate configuration: lists, caches and sources under `state`."""
    listing = state / "sources.list"
    signed = f" [signed-by={KEYRING}]" if KEYRING.exists() else ""
    listing.write_text("".join(f"deb{signed} {address} {suite} main\n" for suite in suites))
    (state / "lists/partial").mkdir(parents=True, exist_ok=True)
    settings = {
        "Dir::Etc::sourcelist": listing,
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferencesparts": "-",
        "Dir::State::Lists": state / "lists",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "Acquire::Languages": "none",
    }
    return [*_as_root(), *(part for key, value in settings.items() for part in ("-o", f"{key}={value}"))]


def _as_root() -> list[str]:
    """Root fetches as itself: apt's own user may not write to the cache."""
    return ["-o", f"APT::Sandbox::User={'root' if os.geteuid() == 0 else ''}"]


def download(wanted: dict[str, Any], supports: Callable[[str], bool] | None = None) -> Path:
    """The package or tarball that a table of base.toml names, checked by its SHA-256 and kept in the cache.

    A `package` comes from the machine's mirror. If that lacks this version, and for a tarball, the addresses in `also`
    are tried in their order. Raises InfraError that says of each why it failed, and of a kernel's source which version
    the mirror has instead that the series `supports`.
    """
    if package := wanted.get("package"):
        name, copy = f"{package} {wanted['version']}", f"{package}_{wanted['version']}_all.deb"
    else:
        name = copy = str(wanted["also"][0]).rpartition("/")[2]
    kept = paths.cache_dir() / "downloads" / copy.replace("_all.deb", ".deb")
    if paths.use(kept) and wanted.get("sha256") in (None, _sha256(kept)):
        return kept
    hints = [f"./ferry source --source {copy} (once; a copy of it from anywhere)"] if supports else []
    if not shutil.which("apt-get"):
        raise InfraError(f"this machine has no apt to fetch {name} with", hint="".join(hints))
    state = paths.cache_dir() / "apt"
    state.mkdir(exist_ok=True)
    paths.use(state)
    kept.parent.mkdir(exist_ok=True)
    failures = []
    for address in [*([""] if package else []), *wanted["also"]]:
        try:
            fetched = _from_address(address, wanted, state) if address else _from_mirror(wanted, state, supports)
            if (found := _sha256(fetched)) != wanted.get("sha256", found):
                raise InfraError(f"{fetched.name} has the SHA-256 {found}, not {wanted['sha256']}")
            fetched.replace(kept)
            return kept
        except (InfraError, TimedOut) as error:
            failures.append(error.cause)
            hints[:0] = [error.hint] if error.hint else []
            progress.note(error.cause)
    raise InfraError(f"{name} cannot be fetched: {'; '.join(failures)}", hint=", or ".join(hints),
                     log=state / "apt.log")


def _from_mirror(wanted: dict[str, Any], state: Path, supports: Callable[[str], bool] | None) -> Path:
    """By apt, from the machine's mirror, which keeps a version until the next one replaces it."""
    address, suite = mirror(), str(wanted["suite"])
    package = f"{wanted['package']}={wanted['version']}"
    options = _options(state, address, [suite])
    try:
        return _fetch(package, state, options, f"fetching {package}{_size(wanted)}", "")
    except InfraError as error:
        if not re.search(r"Version '.*' for '.*' was not found|Unable to locate package", error.cause):
            raise
        listed = proc.run(["apt-cache", *options, "madison", wanted["package"]]).tail
        versions = [match[1] for line in listed if (match := re.match(r"\S+ \| +(\S+) \|", line))]
        newest = next((version for version in versions if supports and supports(version)), "")
        raise InfraError(f"{suite} of {address} has this version no longer" + (f", but {newest}" if newest else ""),
                         hint=f"./ferry --source {newest} series rebase" if newest else "") from error


def _from_address(address: str, wanted: dict[str, Any], state: Path) -> Path:
    """The file at an address, or at a path of the mirror, by apt's own program for that: it knows the proxies."""
    target = state / "fetched"
    target.unlink(missing_ok=True)
    where = address if "://" in address else f"{mirror().rstrip('/')}/{address}"
    command = [str(_HELPER), *STRICT, *_as_root(), "download-file", where, str(target), f"SHA256:{wanted['sha256']}"]
    with progress.stage(f"fetching {where}{_size(wanted)}"):
        done = proc.run(command, cwd=state, log=state / "apt.log", timeout=FETCH_TIMEOUT_S, append=True)
        if done.status or not target.is_file():
            raise InfraError(_why(done.tail, where).replace(f"Failed to fetch {where}  ", ""))
    return target


def _size(wanted: dict[str, Any]) -> str:
    return f" ({int(wanted['download_bytes']) / 1e6:.0f} MB)" if "download_bytes" in wanted else ""


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def download_foreign(package: str, architecture: str, *, hint: str) -> Path:
    """Fetch a package of this machine's release for another architecture, unknown to dpkg. Raises InfraError.

    The caller holds a lock that is its own for the architecture.
    """
    if not shutil.which("apt-get"):
        raise InfraError(f"this machine has no apt to fetch {package} for {architecture} with", hint=hint)
    state = paths.cache_dir() / f"apt-{architecture}"
    state.mkdir(exist_ok=True)
    paths.use(state)
    (state / "status").touch()
    options = _options(state, mirror(), [release()])
    # The packages installed here do not count: they are of another architecture.
    for setting in (f"APT::Architecture={architecture}", f"APT::Architectures::={architecture}",
                    f"Dir::State::status={state / 'status'}"):
        options += ["-o", setting]
    return _fetch(package, state, options, f"fetching {package} for {architecture}", hint)


def _fetch(package: str, state: Path, options: list[str], title: str, hint: str) -> Path:
    """Update the lists under `state`, download there, return the file."""
    log = state / "apt.log"
    with progress.stage(title) as stage:
        for verb in (["update"], ["download", package]):
            command = ["apt-get", "-q", *STRICT, *options, *verb]
            done = proc.run(command, cwd=state, log=log, timeout=FETCH_TIMEOUT_S, append=verb != ["update"])
            stage.update(0)
            if done.status:
                raise InfraError(_why(done.tail, package), hint=hint, log=log)
    found = sorted(state.glob(f"{package.partition('=')[0]}_*.deb"))
    if not found:
        raise InfraError(f"apt fetched {package} without an error, but left no file", hint=hint, log=log)
    return found[-1]


def download_all(package: str, suites: Sequence[str], *, hint: str) -> list[Path]:
    """Fetch a package from the last of `suites` with all its dependencies, verified by apt. Raises InfraError.

    apt works with an empty dpkg status, so it fetches also packages that are installed here. Nothing is installed.
    """
    if not shutil.which("apt-get"):
        raise InfraError(f"this machine has no apt to fetch Debian's {package} with", hint=hint)
    state = paths.cache_dir() / f"apt-{package}"
    (state / "archives/partial").mkdir(parents=True, exist_ok=True)
    paths.use(state)
    (state / "status").touch()
    options = _options(state, mirror(), suites)
    options += ["-o", f"Dir::State::status={state / 'status'}", "-o", f"Dir::Cache::archives={state / 'archives'}"]
    # The lock would be that of the system's dpkg: it is not needed, and only root may take it.
    options += ["-o", "Debug::NoLocking=1"]
    install = ["install", "-y", "--download-only", "--no-install-recommends", "-t", suites[-1], package]
    log = state / "apt.log"
    with progress.stage(f"fetching {package} and its libraries") as stage:
        for verb in (["update"], install):
            command = ["apt-get", "-q", *STRICT, *options, *verb]
            done = proc.run(command, cwd=state, log=log, timeout=FETCH_TIMEOUT_S, append=verb is install,
                            progress=lambda line: stage.update(0, None, line))
            if done.status:
                raise InfraError(_why(done.tail, package), hint=hint, log=log)
    found = sorted((state / "archives").glob("*.deb"))
    if not found:
        raise InfraError(f"apt fetched {package} without an error, but left no file", hint=hint, log=log)
    return found


def _why(tail: tuple[str, ...], package: str) -> str:
    errors = [line.removeprefix("E: ") for line in tail if line.startswith("E:")]
    output = errors[0] if errors else (tail[-1] if tail else "no output")
    return f"apt could not fetch {package}: {output}"


def install(packages: list[str], log: Path) -> None:
    """Install packages by the system's apt; the caller is root. Raises InfraError."""
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    verbs = (["update"], ["install", "-y", "--no-install-recommends", *packages])
    with progress.stage(f"installing {len(packages)} packages") as stage:
        for verb in verbs:
            count = 0

            def on_line(line: str) -> None:
                nonlocal count
                count += line.startswith(("Get:", "Unpacking", "Setting up"))
                stage.update(count, None, line)

            done = proc.run(
                ["apt-get", "-q", *STRICT, *verb],
                log=log,
                env=env,
                progress=on_line,
                append=verb != ["update"],
                timeout=1800,
            )
            if done.status:
                raise InfraError(
                    _why(done.tail, " ".join(packages)), hint="check the network and apt's mirrors", log=log
                )
