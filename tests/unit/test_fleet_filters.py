# SPDX-License-Identifier: GPL-2.0
"""What the role folio_ferry reads from GRUB's menu, from dpkg, and from `ferry ctl show --format json`."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import migration_tree
import pytest

from ferry import paths
from ferry.control import tree, verbs

OURS = "7.3.4-ferry-board"
_PATH = paths.repo_root() / "packaging/ansible/roles/folio_ferry/filter_plugins/folio_ferry.py"
_SPEC = importlib.util.spec_from_file_location("folio_ferry_filters", _PATH)
assert _SPEC and _SPEC.loader
filters = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(filters)


def menu(indent: str) -> str:
    """A menu as GRUB's 10_linux writes it; with GRUB_DISABLE_SUBMENU nothing is indented, and there is no submenu."""
    option = "--class os $menuentry_id_option"
    lines = [f"menuentry 'Debian GNU/Linux' {option} 'gnulinux-simple-aa-bb' {{", "}"] if indent else []
    lines += ["submenu 'Advanced options' $menuentry_id_option 'gnulinux-advanced-aa-bb' {"] if indent else []
    for release in ("7.3.4-ferry-board-2", OURS, "7.3.4+deb13-amd64"):
        for kind in ("advanced", "recovery"):
            name = f"gnulinux-{release}-{kind}-aa-bb"
            lines += [f"{indent}menuentry 'Linux {release}' {option} '{name}' {{", f"{indent}}}"]
    return "\n".join([*lines, "}" if indent else "", "menuentry 'UEFI' $menuentry_id_option 'uefi-firmware' {", "}"])


def test_the_entry_of_a_kernel_is_found_below_the_submenu_and_without_one() -> None:
    entry = f"gnulinux-{OURS}-advanced-aa-bb"
    assert filters.grub_entry(menu("\t"), OURS) == f"gnulinux-advanced-aa-bb>{entry}"
    assert filters.grub_entry(menu(""), OURS) == entry
    assert filters.grub_entry(menu("\t"), "7.3.4-ferry") == ""


def test_a_package_is_pending_unless_that_version_is_installed() -> None:
    files = [f"/p/linux-image-{OURS}_7.3.4-1~bpo13+1+ferry0.1.0_amd64.deb", "/p/folio-ferry_0.1.0_amd64.deb"]
    assert filters.pending(files, []) == files
    installed = [f"installed linux-image-{OURS} 7.3.4-1~bpo13+1+ferry0.1.0", "installed folio-ferry 0.0.9"]
    assert filters.pending(files, installed) == files[1:]


@pytest.mark.parametrize(("wanted", "wrong"), [
    ("# none\n\n", []),
    ("migrator=off\nruns = 0\nreasons/demotion/migrator=inherit\ndcbm/devices=all\n", []),
    ("migrator=mtcopy\nruns=1\n", ["migrator is off, not mtcopy", "runs is 0, not 1"]),
    ("runs=1\nruns=0\n", []),
    ("fpga/lanes=2\nmigrator/x=1\n", ["fpga/lanes is missing, not 2", "migrator/x is missing, not 1"]),
])
def test_settings_are_compared_with_what_ferry_shows(tmp_path: Path, wanted: str, wrong: list[str]) -> None:
    assert filters.differing(shown(migration_tree.make(tmp_path)), wanted) == wrong


@pytest.mark.parametrize(("wanted", "shows", "wrong"), [
    ("dcbm/devices=dma0,dma1, dma2", "dma0 dma1  dma2", []),
    ("dcbm/devices=dma0,dma1", "dma0", ["dcbm/devices is dma0, not dma0,dma1"]),
    ("migrc/max_bytes=100000", "98304", []), ("migrc/max_bytes=4095", "0", []),
    ("migrc/max_bytes=100000", "102400", ["migrc/max_bytes is 102400, not 100000"]),
    ("migrc/max_bytes=x", "0", ["migrc/max_bytes is 0, not x"]),
    ("batch_max_bytes=100000", "98304", ["batch_max_bytes is 98304, not 100000"]),
])
def test_a_setting_is_compared_as_the_kernel_shows_it(tmp_path: Path, wanted: str, shows: str,
                                                      wrong: list[str]) -> None:
    root = migration_tree.make(tmp_path)
    (root / wanted.partition("=")[0]).write_text(f"{shows}\n")
    assert filters.differing(shown(root), wanted) == wrong


def shown(root: Path) -> str:
    files = verbs.nested([file for file in tree.files(root) if file.text is not None])
    return json.dumps({"schema": 2, "files": files})


def test_features_that_are_not_named_must_be_off_or_missing(tmp_path: Path) -> None:
    root = migration_tree.make(tmp_path)
    for name, value in {"migrator": "mtcopy", "runs": "1", "migrc/enabled": "1"}.items():
        migration_tree.store(root, name, value)
    on = ["migrator is mtcopy, not off", "runs is 1, not 0", "migrc/enabled is 1, not 0"]
    assert filters.differing(shown(root), "# none\n") == on
    assert filters.differing(shown(root), "runs=1\nmigrator=mtcopy\n") == on[2:]
    for name in ("migrator", "runs", "migrc/enabled"):
        (root / name).unlink()
    assert filters.differing(shown(root), "# none\n") == filters.differing(shown(root), "runs=0\n") == []
    assert filters.differing(shown(root), "runs=1\n") == ["runs is missing, not 1"]
