# SPDX-License-Identifier: GPL-2.0
"""The runs that were made: a directory each, holding result.json, meta.json, console.log and perhaps report.html.

result.json is written last and in one step, so a directory without one is a run that did not finish.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from ferry.errors import UsageError
from ferry.paths import RAW, runs_dir
from ferry.results import formats
from ferry.results.document import SCHEMA, Document, failure_count, missing_keys

RESULT = "result.json"
LATEST = "latest"


def create(bench: str, board: str, out: Path | None = None) -> Path:
    """A new run's directory: `out`, or runs/<timestamp>-<bench>-<board>."""
    if out is None:
        return _create_dated(f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{bench}-{board}")
    out = out.resolve()  # a guest's share and devices are under it, and an emulator has a working directory of its own
    if (out / RESULT).exists() or (out / RAW).exists():
        raise UsageError(f"{out} already holds a run", hint="give --out a new directory")
    out.mkdir(parents=True, exist_ok=True)
    return out


@contextmanager
def created(bench: str, board: str, out: Path | None = None) -> Iterator[Path]:
    """As create; a run that ends in an error before it kept anything leaves no directory."""
    run = create(bench, board, out)
    try:
        yield run
    except BaseException:
        with suppress(OSError):
            run.rmdir()
        raise


def _create_dated(name: str) -> Path:
    """Two runs of one second get names that tell them apart."""
    attempt = 1
    while True:
        run = runs_dir() / (name if attempt == 1 else f"{name}-{attempt}")
        try:
            run.mkdir(parents=True)
            return run
        except FileExistsError:
            attempt += 1


def finish(run: Path, documents: list[Document]) -> None:
    """Publish a run: its meta and its result, then `latest` where the run is one of runs/."""
    _publish(run / "meta.json", documents[0]["meta"])
    _publish(run / RESULT, documents)
    if run.parent == runs_dir():
        _point_latest_at(run)


def _publish(path: Path, content: Any) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(content, indent=2) + "\n")
    draft.replace(path)


def _point_latest_at(run: Path) -> None:
    draft = run.parent / f".{LATEST}.{os.getpid()}"
    draft.unlink(missing_ok=True)
    draft.symlink_to(run.name)
    draft.replace(run.parent / LATEST)


def find(name: str) -> Path:
    """A run by path or by name (`latest` is one); UsageError when there is none."""
    for path in (Path(name), runs_dir() / name):
        if path.exists():
            return path
    raise UsageError(f"no run '{name}'", hint="ferry runs list")


def directory(name: str) -> Path:
    """A run's directory; UsageError where the name stands for a single file."""
    path = find(name)
    if not path.is_dir():
        raise UsageError(f"{path} is not a run's directory", hint="ferry runs list")
    return path


def load(name: str) -> list[Document]:
    """The documents of a run or of a result.json; UsageError when it is unfinished or not ours."""
    path = find(name)
    result = path / RESULT if path.is_dir() else path
    if not result.exists():
        raise UsageError(f"the run {path} did not finish: it has no {RESULT}", hint=f"ferry runs rm {path.name}")
    try:
        content = json.loads(result.read_text())
    except (ValueError, OSError) as error:
        raise UsageError(f"{result} is not a result: {error}", hint="ferry runs list") from error
    return [_checked(document, result) for document in (content if isinstance(content, list) else [content])]


def _checked(document: Any, result: Path) -> Document:
    if not isinstance(document, dict) or not {"schema", "bench", "rows", "baseline"} <= document.keys():
        raise UsageError(f"{result} is not a benchmark's result", hint="ferry runs list")
    if document["schema"] != SCHEMA:
        raise UsageError(f"{result} has schema {document['schema']}, this ferry reads {SCHEMA}",
                         hint="measure again, or use the ferry that wrote it")
    if lacking := missing_keys(document):
        raise UsageError(f"{result} is not whole: it lacks {', '.join(lacking)}", hint="measure again")
    return cast(Document, document)


def names() -> list[str]:
    """The runs' names, oldest first."""
    if not runs_dir().is_dir():
        return []
    return sorted(entry.name for entry in runs_dir().iterdir() if entry.is_dir() and not entry.is_symlink())


def state(name: str) -> dict[str, Any]:
    """One line about a run, for `ferry runs list`."""
    try:
        documents = load(name)
    except UsageError:
        return {"name": name, "finished": False, "benches": [], "failures": 0}
    return {"name": name, "finished": True, "failures": sum(map(failure_count, documents)),
            "benches": [f"{document['bench']} on {document['board']}" for document in documents]}


def remove(name: str) -> None:
    """Delete a run of runs/, never anything elsewhere; `latest` goes with the run it names."""
    run = (runs_dir() / name).resolve()
    if run.parent != runs_dir().resolve() or not run.is_dir():
        raise UsageError(f"no run '{name}' in {runs_dir()}", hint="ferry runs list")
    shutil.rmtree(run)
    latest = runs_dir() / LATEST
    if latest.is_symlink() and not latest.exists():
        latest.unlink()


def listed(states: list[dict[str, Any]]) -> formats.Output:
    """The table of `ferry runs list`."""
    rows = [[[line["name"]], [", ".join(line["benches"]) or "unfinished"], [str(line["failures"])]] for line in states]
    grid = formats.Grid(f"runs in {runs_dir()}", ["run", "measured", "failed samples"], rows)
    records = [line | {"benches": ", ".join(line["benches"])} for line in states]
    return formats.Output([grid], {"schema": SCHEMA, "runs": states}, records)
