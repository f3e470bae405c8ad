# SPDX-License-Identifier: GPL-2.0
"""A connection plugin of Ansible whose machine is a directory: commands run in bubblewrap, where programs.py stands for
Debian's package manager, boot loader and init system. A reboot only changes files.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
    name: stub_machine
    short_description: a directory that stands for a machine
    description: For the tests of the role folio_ferry.
    options:
      directory:
        description: what Machine.make() made
        vars: [{name: stub_directory}]
"""
#: Directories of the machine's own, by name in its directory. All else is this machine's, and read-only.
OWN = {"etc": "/etc", "boot": "/boot", "sys": "/sys", "sbin": "/usr/sbin", "bin": "/usr/local/bin",
       "cache": "/var/cache", "tmp": "/tmp", ".": "/mnt"}
FILES = {"boot_id": "/proc/sys/kernel/random/boot_id", "tainted": "/proc/sys/kernel/tainted"}


class Connection(ConnectionBase):
    transport = "stub_machine"
    has_pipelining = True

    @property
    def machine(self) -> Path:
        return Path(self.get_option("directory"))

    def _connect(self) -> Connection:
        self._fail_while_down("no answer")
        return self

    def _fail_while_down(self, why: str) -> None:
        down = self.machine / "down"
        if down.exists() and time.time() < float(down.read_text()):
            raise AnsibleConnectionFailure(why)

    def exec_command(self, cmd, in_data=None, sudoable=True):  # type: ignore[no-untyped-def]
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        # Without /run and capabilities, no program of this machine that slips in reaches its init system.
        line = ["bwrap", "--unshare-pid", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/"]
        line += ["--dev", "/dev", "--tmpfs", "/run"]
        for name, place in {**OWN, **FILES}.items():
            line += ["--bind", str(self.machine / name), place]
        path = "/usr/local/bin:/usr/sbin:/usr/bin:/bin"
        done = subprocess.run([*line, "--setenv", "PATH", path, "sh", "-c", cmd], input=in_data or b"",
                              capture_output=True, check=False)
        self._fail_while_down("the machine went down")
        return done.returncode, done.stdout, done.stderr

    def put_file(self, in_path, out_path):  # type: ignore[no-untyped-def]
        super().put_file(in_path, out_path)
        status, _, said = self.exec_command(f"cat >'{out_path}'", Path(in_path).read_bytes())
        if status:
            raise AnsibleConnectionFailure(said.decode())

    def fetch_file(self, in_path, out_path):  # type: ignore[no-untyped-def]
        super().fetch_file(in_path, out_path)
        Path(out_path).write_bytes(self.exec_command(f"cat '{in_path}'")[1])

    def reset(self) -> None:
        self.close()

    def close(self) -> None:
        self._connected = False
