# SPDX-License-Identifier: GPL-2.0
"""Guards: circles of C and Python files, layers, headers, columns and the words of comments."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_kernel import write

from ferry import paths
from ferry.series import layers, patches, prose
from ferry.suites import layers as modules

LOW = """\
// SPDX-License-Identifier: GPL-2.0
/* high_go() is not called here, only named: "high_go()". */
static int here;
int low_count;
DEFINE_MUTEX(low_lock);
DEFINE_SHOW_ATTRIBUTE(both);
struct low low_table[] = {
	{ .name = "x" },
};
int low_go(int a,
		int b)
{
	return here + a->high_count;
}
EXPORT_SYMBOL_GPL(low_go);
"""
HIGH = """\
int high_go(void);
int high_count = 3;
DEFINE_SHOW_ATTRIBUTE(both);
int high_go(void)
{
	guard(mutex)(&low_lock);
	return low_go(1, 2) + low_count + ARRAY_SIZE(low_table);
}
"""


def test_a_scan_finds_what_a_file_defines_for_others() -> None:
    assert layers.scan(LOW).defined == {"low_count", "low_lock", "low_table", "low_go"}
    assert layers.scan(HIGH).defined == {"high_go", "high_count"}


def test_a_ladder_has_no_circle() -> None:
    found = layers.uses({"low.c": LOW, "high.c": HIGH})
    assert found == {"low.c": {}, "high.c": {"low.c": {"low_count", "low_go", "low_lock", "low_table"}}}
    assert list(layers.circles(found)) == []


@pytest.mark.parametrize("use", ["int low_more(void)\n{\n\treturn high_go();\n}\n", "int *low_more = &high_count;\n",
                                 "int low_more(void)\n{\n\treturn via_header();\n}\n"])
def test_a_call_a_variable_and_an_inline_function_close_a_circle(use: str) -> None:
    header = "static inline int via_header(void)\n{\n\treturn high_go();\n}\n"
    (circle,) = layers.circles(layers.uses({"low.c": LOW + use, "high.c": HIGH, "all.h": header}))
    assert circle.startswith("high.c -> low.c (") and circle.endswith(("high.c (high_go)", "high.c (high_count)"))


def test_the_shortest_circle_of_three_is_shown_once() -> None:
    graph = {"a": {"b": {"x"}}, "b": {"c": {"y"}}, "c": {"a": {"z"}}, "d": {"a": {"w"}}}
    assert list(layers.circles(graph)) == ["a -> b (x) -> c (y) -> a (z)"]


def overlay(root: Path, files: dict[str, str]) -> dict[str, Path]:
    write(root, files)
    return {name: root / name for name in files}


def test_a_part_includes_no_other_parts_header(tmp_path: Path) -> None:
    files = overlay(tmp_path, {
        "include/linux/ferry.h": "", "include/linux/migrc.h": "", "mm/ferry/internal.h": "",
        "mm/migrc/unmap.c": "#include <linux/mm.h>\n#include <linux/migrc.h>\n#include <linux/ferry.h>\n",
        "mm/migrc/tests/a.c": '#include "../internal.h"\n#include "../../ferry/internal.h"\n#include "../../slab.h"\n',
        "drivers/ferry/dcbm/main.c": "#include <linux/ferry.h>\n",
    })
    assert list(layers.foreign_includes(files)) == [
        "mm/migrc/unmap.c includes linux/ferry.h, which is of another part",
        "mm/migrc/tests/a.c includes ../../ferry/internal.h, which is of another part"]


def test_a_line_ends_at_column_80(tmp_path: Path) -> None:
    files = overlay(tmp_path, {"a.c": "\t" + "x" * 72 + "\n\t" + "x" * 73 + "\n", "a.rst": "x" * 99})
    assert list(layers.wide_lines(files)) == ["a.c:2 has 81 columns"]


def test_prose_counts_in_comments_only() -> None:
    text = "/* SPDX: who */\nint who;\n" \
        "/*\n * Who calls this pays for it.  The caller waits,\n * as ever.\n */\n// Nobody.\n"
    figures = prose.measure({"a.c": prose.comments(text)})
    assert (figures.sentences, figures.openings) == (2, 1)
    assert figures.counts == {"who, whoever": 1, "what is/was/it/they/a/the": 0, "nobody, somebody": 0,
                              "owe, debt, pay, price, dear": 1, "as ever, anew, mend, meanwhile": 1}


def test_words_are_limited_by_their_share() -> None:
    plain = "The caller holds the lock. " * 3000
    assert list(prose.exceeded(prose.measure({"a.rst": plain}))) == []
    bad = list(prose.exceeded(prose.measure({"a.rst": plain + "What it owes is paid. " * 20})))
    assert bad[0] == "20 of 3020 sentences start with who, what or nobody"
    assert bad[1].startswith("20 times what is/was/it/they/a/the in ") and bad[2].startswith("40 times owe, debt")
    assert bad[-1] == "a.rst: What it owes is paid."


def test_static_functions_called_once_are_counted() -> None:
    text = "static int a(void)\n{\n}\nstatic int b(void)\n{\n\treturn a();\n}\n" \
        "int c(void)\n{\n\treturn b() + b();\n}\nstatic int callback(void)\n{\n}\nstruct ops = { callback };\n"
    assert prose.called_once([text]) == (1, 3)


@pytest.mark.parametrize(("files", "wrong"), [
    ({"vm/boot.py": "from ferry import proc\nfrom ferry.kernel import build\n"}, []),
    ({"series/tree.py": "from ferry.kernel import build\n"}, ["ferry.series.tree imports ferry.kernel.build, "]),
    ({"proc.py": "import ferry.kernel.build\n"}, ["ferry.proc imports ferry.kernel.build, "]),
    ({"suites/dma.py": "from ferry.bench.plan import Plan\n"}, []),
    ({"bench/plan.py": "from ferry.suites.dma import run\n", "suites/dma.py": ""},
     ["ferry.bench.plan imports ferry.suites.dma, "]),
    ({"vm/boot.py": "def go():\n    import json\n"}, ["ferry.vm.boot: go() imports in line 2"]),
    ({"vm/a.py": "from ferry.vm import b\n", "vm/b.py": "from ferry.vm.a import go\n"},
     ["ferry.vm.a -> ferry.vm.b (module) -> ferry.vm.a (go)"]),
])
def test_python_layers(tmp_path: Path, files: dict[str, str], wrong: list[str]) -> None:
    there = {"proc.py": "", "kernel/build.py": "", "bench/plan.py": "",
             "__main__.py": "from ferry.kernel import build\n"}
    packages = {f"{name}/__init__.py": "" for name in ("vm", "series", "suites", "kernel", "bench")}
    write(tmp_path / "ferry", {"__init__.py": "", **packages, **there, **files})
    found = list(modules.python(tmp_path))
    assert len(found) == len(wrong) and all(map(str.startswith, found, wrong))


def test_guest_programs_include_lib_and_themselves(tmp_path: Path) -> None:
    write(tmp_path, {
        "lib/util.h": "", "lib/bad.c": '#include "../movebench/pattern.h"\n',
        "movebench/pattern.h": "", "movebench/main.c": '#include "util.h"\n#include "pattern.h"\n',
        "tlbbench/main.c": '#include "../movebench/pattern.h"\n',
        "tests/main.c": '#include "../movebench/pattern.h"\n',
        "integrity/stressors/stressors.h": "", "integrity/stressors/fork.c": '#include "stressors.h"\n',
        "integrity/main.c": '#include "stressors/stressors.h"\n',
        "integrity/audit.c": '#include "stressors/stressors.h"\n',
    })
    assert list(modules.guest(tmp_path)) == [
        "integrity/audit.c includes integrity/stressors/stressors.h",
        "lib/bad.c includes movebench/pattern.h", "tlbbench/main.c includes movebench/pattern.h"]


def test_the_clone_keeps_its_own_rules() -> None:
    """The C side is checked by `ferry series check`, which names each circle."""
    assert list(modules.python(paths.repo_root() / "src")) == []
    scans = [layers.scan(path.read_text()) for path in patches.overlay_files().values() if path.suffix == ".c"]
    assert sum(len(scan.defined) for scan in scans) > 100
