# SPDX-License-Identifier: GPL-2.0
"""The scripts that fill a redis-server, with stand-ins for it and for redis-benchmark that count keys."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ferry.paths import repo_root

#: Makes its socket and does nothing; its output is the server's log.
SERVER = """
import socket, sys, time
socket.socket(socket.AF_UNIX).bind(sys.argv[sys.argv.index("--unixsocket") + 1])
time.sleep(60)
"""
#: Leaves in `made` how many keys there are: all of an EVAL, whose server reports them, or what random requests hit.
BENCHMARK = """
import random, re, sys
from pathlib import Path
words = sys.argv[1:]
socket, found = Path(words[words.index("-s") + 1]), set()
if "EVAL" in words:
    lua, count, *prefixes = words[words.index("EVAL") + 1:]
    numbers = range(int(re.search(r"key = 0, (\\d+) - 1", lua)[1]))
    found = {f"{prefix}{number:012}" for prefix in prefixes for number in numbers}
    with (socket.parent / "log").open("a") as log:
        log.write(f"13:M * keys made: {len(found) - LOST}\\n")
else:
    keys = int(words[words.index("-r") + 1])
    found = {random.randrange(keys) for _ in range(int(words[words.index("-n") + 1]))}
Path("made").write_text("\\n".join(map(str, sorted(found))))
"""


def filled(home: Path, script: str, *sizes: str, lost: int = 0) -> tuple[int, str]:
    """The script's exit status, and its stderr or what its command got."""
    (home / "server.py").write_text(SERVER)
    (home / "benchmark.py").write_text(BENCHMARK.replace("LOST", str(lost)))
    words = [f"{sys.executable} {home}/{name}.py" for name in ("server", "benchmark")]
    done = subprocess.run(["sh", str(repo_root() / "guest/scripts" / script), *words, *sizes, "echo"], cwd=home,
                          capture_output=True, text=True, timeout=50)
    return done.returncode, done.stderr or done.stdout


def test_every_key_is_there_before_the_first_sample(tmp_path: Path) -> None:
    status, got = filled(tmp_path, "redis.sh", "200", "4096", "7")
    assert status == 0 and got.startswith("--pid ") and got.endswith("-t set -n 7 -r 200 -d 4096 -c 1\n")
    assert (tmp_path / "made").read_text().split() == [f"key:{number:012}" for number in range(200)]


def test_every_group_has_its_keys(tmp_path: Path) -> None:
    status, got = filled(tmp_path, "redis-tier.sh", "3", "2", "4096", "7")
    assert status == 0 and got.endswith("-n 7 -r 2 -c 1 \tGET key:$((SHIFT % 3)):__rand_int__\n")
    assert (tmp_path / "made").read_text().split() == [f"key:{group}:{number:012}" for group in range(3)
                                                       for number in range(2)]


@pytest.mark.parametrize(("script", "sizes"), [("redis.sh", ("20", "64", "7")),
                                               ("redis-tier.sh", ("4", "5", "64", "7"))])
def test_a_server_that_lacks_keys_ends_the_script(tmp_path: Path, script: str, sizes: tuple[str, ...]) -> None:
    status, said = filled(tmp_path, script, *sizes, lost=1)
    assert status == 1 and "the server has not 20 keys" in said and "keys made: 19" in said
