# SPDX-License-Identifier: GPL-2.0
"""The actions of `ferry ctl` and the verb `metrics`: their parsers and calls."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ferry.control import metrics, settings, tree
from ferry.control.publish import publish
from ferry.control.tree import Choice, File
from ferry.errors import UsageError

SCHEMA = 2


def add_actions(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """show, set, save and restore."""
    shown = sub.add_parser("show", help="print the control files and their values")
    shown.add_argument("prefixes", nargs="*", metavar="PREFIX", default=[""],
                       help="only the files whose names begin so (default: all)")
    shown.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    shown.set_defaults(call=_show)
    change = sub.add_parser("set", help="write settings, all or none",
                            description="Write settings in the given order. If the kernel rejects one, those already "
                                        "written get their former values back.")
    change.add_argument("settings", nargs="+", metavar="NAME=VALUE", help="such as reasons/demotion/migrator=dcbm")
    change.set_defaults(call=_set)
    save = sub.add_parser("save", help="print the settings as lines for restore")
    save.add_argument("file", nargs="?", type=Path, metavar="FILE", help="default: standard output")
    save.set_defaults(call=_save)
    restore = sub.add_parser("restore", help="apply the settings of a file",
                             description="Apply the settings of a file, all or none: limits first, migrators last. A "
                                         "setting that this kernel does not know, because a module is not loaded or "
                                         "was not built, is reported and skipped, so that one file serves several "
                                         "machines and boots; so is a migrator without a device (ENODEV). Any other "
                                         "value that the kernel rejects is an error, and nothing is changed. At boot, "
                                         "run it after the modules are loaded.")
    restore.add_argument("file", type=Path, metavar="FILE", help="as save writes it")
    restore.add_argument("--strict", action="store_true", help="exit with 1 if a setting was skipped")
    restore.set_defaults(call=_restore)
    for parser in (shown, change, save, restore):
        add_root(parser)


def add_metrics(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The verb `metrics`."""
    parser = sub.add_parser("metrics", help="print counters and settings in Prometheus' text format",
                            description="Print counters and settings in Prometheus' text format, for the textfile "
                                        "collector of node_exporter.")
    parser.add_argument("--output", type=Path, metavar="FILE",
                        help="replace this file as a whole, such as /var/lib/prometheus/node-exporter/ferry.prom")
    parser.set_defaults(call=_metrics)
    add_root(parser)


def add_root(parser: argparse.ArgumentParser) -> None:
    """`--root`, the same everywhere."""
    parser.add_argument("--root", type=Path, metavar="DIR", default=tree.ROOT, help=f"default: {tree.ROOT}")


def run(args: argparse.Namespace) -> int:
    """Carry out what add_actions() and add_metrics() parsed; the exit status."""
    status: int = args.call(args)
    return status


def _show(args: argparse.Namespace) -> int:
    files = [file for file in tree.files(args.root, args.prefixes) if file.text is not None]
    if not files:
        raise UsageError(f"no file of {args.root} begins with {' or '.join(args.prefixes)}", hint="ferry ctl show")
    if args.format == "json":
        print(json.dumps({"schema": SCHEMA, "root": str(args.root), "files": nested(files)}, indent=2))
        return 0
    width = max(len(file.name) for file in files)
    for file in files:
        print(f"{file.name:{width}}  {file.text}")
    return 0


def nested(files: list[File]) -> dict[str, Any]:
    """An object for each directory; a choice is an object of its value and its choices."""
    top: dict[str, Any] = {}
    for file in files:
        *directories, last = file.name.split("/")
        inner = top
        for directory in directories:
            inner = inner.setdefault(directory, {})
        value = file.value
        inner[last] = {"value": value.selected, "choices": value.words} if isinstance(value, Choice) else value
    return top


def _set(args: argparse.Namespace) -> int:
    settings.apply(args.root, [settings.parse(word) for word in args.settings])
    return 0


def _save(args: argparse.Namespace) -> int:
    publish(settings.saved(args.root), args.file)
    return 0


def _restore(args: argparse.Namespace) -> int:
    try:
        text = args.file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{args.file} cannot be read: {error}", hint="ferry ctl save FILE writes one") from error
    known, missing = settings.split(args.root, settings.loaded(text))
    for line in missing:
        print(f"skipped: {line}", file=sys.stderr)
    absent = settings.apply(args.root, known, skip_absent=True)
    for line in absent:
        print(f"skipped: {line}", file=sys.stderr)
    return int(args.strict and bool(missing + absent))


def _metrics(args: argparse.Namespace) -> int:
    publish(metrics.exposition(tree.snapshot(args.root).values), args.output)
    return 0
