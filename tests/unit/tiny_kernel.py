# SPDX-License-Identifier: GPL-2.0
"""A made-up clone and a made-up kernel of a few files, small enough to unpack, patch and export in a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry import paths
from ferry.series.source import Source

MIGRATE = "".join(f"line {number}\n" for number in range(1, 21))

BASE_TOML = """
[kernel]
version = "7.3.4"
oldest = "7.3.0"
newest = "7.3.99"
[series]
hook = []
[debian]
package = "linux-source-7.3"
version = "7.3.4-1"
suite = "trixie-backports"
sha256 = "00"
also = []
tarball_sha256 = "0123456789abcdef"
download_bytes = 1
unpacked_bytes = 1
"""

PATCH = """From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: A Developer <dev@example.org>
Date: Fri, 20 Nov 2026 22:00:00 +0000
Subject: [PATCH] mm/ferry: hook the ferry in

Say why.

Overlay: mm/ferry
---
 mm/migrate.c | 1 +
 1 file changed, 1 insertion(+)

diff --git a/mm/migrate.c b/mm/migrate.c
index 111111111111..222222222222 100644
--- a/mm/migrate.c
+++ b/mm/migrate.c
@@ -8,6 +8,7 @@ line 7
 line 8
 line 9
 line 10
+ferry_hook();
 line 11
 line 12
 line 13
"""

GET_MAINTAINER = """print "Mai N. Tainer <mai\\@example.org> (maintainer:MM)\\n";
open(my $mail, "<", $ARGV[-1]);
print "R\u00e9 Viewer <re\\@example.org> (reviewer:MM)\\n" if grep(/^diff .*migrate/, <$mail>);
print "mm\\@example.org (open list:MM)\\n";
"""
"""The mail's recipients, by what it changes."""

PATCH_NAME = "0001-mm-ferry-hook-the-ferry-in.patch"
MORE = """From: A Developer <dev@example.org>
Date: Fri, 20 Nov 2026 23:00:00 +0000
Subject: [PATCH] mm: more hooks

Say why.
---
diff --git a/mm/migrate.c b/mm/migrate.c
--- a/mm/migrate.c
+++ b/mm/migrate.c
@@ -9,6 +9,7 @@
 line 9
 line 10
 ferry_hook();
+more_hook();
 line 11
 line 12
 line 13
"""
LONE = """From: A Developer <dev@example.org>
Date: Fri, 20 Nov 2026 23:30:00 +0000
Subject: [PATCH] mm: change other

Say why.
---
diff --git a/mm/other.c b/mm/other.c
--- a/mm/other.c
+++ b/mm/other.c
@@ -1 +1,2 @@
 other
+else
"""

CORE = "int ferry_hook(void)\n{\n\treturn 0;\n}\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def make_tree(tree: Path, *, version: str = "7.3.4", migrate: str = MIGRATE) -> Path:
    """A directory that passes for a kernel tree."""
    numbers = dict(zip(("VERSION", "PATCHLEVEL", "SUBLEVEL"), version.split("."), strict=True))
    makefile = "".join(f"{key} = {value}\n" for key, value in numbers.items()) + "EXTRAVERSION =\n"
    write(tree, {"Makefile": makefile, "Kbuild": "", "mm/migrate.c": migrate, "mm/other.c": "other\n",
                 "MAINTAINERS": "", "scripts/get_maintainer.pl": GET_MAINTAINER})
    return tree


def make_clone(monkeypatch: pytest.MonkeyPatch, root: Path, *, patch: str = PATCH) -> Path:
    """A clone with one patch and one overlay file, and an empty cache, in place of the real ones."""
    write(root / "clone/kernel", {
        "base.toml": BASE_TOML,
        "series/hook/cover-letter": "mm/ferry: a hook\n\nThis is why.\n",
        f"series/hook/{PATCH_NAME}": patch,
        "overlay/mm/ferry/core.c": CORE,
    })
    monkeypatch.setattr(paths, "repo_root", lambda: root / "clone")
    monkeypatch.setenv("FERRY_CACHE", str(root / "cache"))
    monkeypatch.delenv("FERRY_SOURCE", raising=False)
    return root / "clone"


def add_series(clone: Path) -> Path:
    """Two more series, in the form in which import writes them."""
    write(clone / "kernel", {
        "base.toml": BASE_TOML.replace("hook = []", 'more = ["hook"]\nhook = []\nlone = []'),
        "series/more/0001-more.patch": MORE, "series/more/cover-letter": "mm: more hooks\n\nThis is why.\n",
        "series/lone/0001-lone.patch": LONE,
    })
    return clone


def make_source(tree: Path, version: str = "7.3.4") -> Source:
    return Source(tree, version, "0123456789abcdef")
