# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.device_users import (
    find_holders,
    find_users,
    loaded_modules,
    unit_of,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.evidence_types import (
    DeviceUser,
)
from tests.unit.fixtures.make_tree import write

CHECKOUT = Path(__file__).parents[5]
CONTAINER = "0123456789abcdef" * 4


def process(root, pid, name, files, *, maps="", cgroup="0::/user.slice\n"):
    folder = root / f"proc/{pid}/fd"
    folder.mkdir(parents=True)
    for number, target in enumerate(files):
        (folder / str(number)).symlink_to(target)
    write(root, f"proc/{pid}/comm", f"{name}\n")
    write(root, f"proc/{pid}/cmdline", f"{name}\0--password=secret\0")
    write(root, f"proc/{pid}/cgroup", cgroup)
    write(root, f"proc/{pid}/maps", maps)


def test_users(tmp_path):
    process(tmp_path, 9, "bash", ["/dev/pts/0", "/dev/null"])
    process(
        tmp_path, 4711, "python3", ["/dev/pts/0", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia0"],
        cgroup=f"0::/kubepods.slice/cri-containerd-{CONTAINER}.scope\n",
    )  # fmt: skip
    process(
        tmp_path, 812, "nvidia-persiste", ["socket:[1]", "/dev/nvidia-caps/nvidia-cap2"],
        cgroup="0::/system.slice/nvidia-persistenced.service\n",
    )  # fmt: skip
    process(
        tmp_path, 900, "mapped", [],
        maps="7f00-7f01 rw-s 00000000 00:05 812 /dev/nvidia-uvm\n"
        "7f02-7f03 r-xp 00000000 08:01 5 /usr/lib/x86_64-linux-gnu/libcuda.so.1\n",
    )  # fmt: skip
    # It ends by itself, and is stopped before a change.
    process(
        tmp_path, 950, "nvidia-smi", ["/dev/nvidia0"],
        cgroup="0::/system.slice/nvidia-cdi-refresh.service\n",
    )  # fmt: skip
    # The same last part of the name, but no device.
    process(tmp_path, 901, "vim", ["/home/me/nvidia0", "/dev/nvidia.log", "/dev/nvme0n1"])
    write(tmp_path, "proc/self/comm", "x")
    users = find_users(NodeReader(str(tmp_path)))
    assert users == (
        DeviceUser(
            812, "nvidia-persiste", ("/dev/nvidia-caps/nvidia-cap2",), "nvidia-persistenced.service"
        ),
        DeviceUser(900, "mapped", ("/dev/nvidia-uvm",)),
        DeviceUser(
            4711, "python3", ("/dev/nvidia0", "/dev/nvidiactl"), "container 0123456789ab"
        ),
    )  # fmt: skip
    assert "secret" not in repr(users)
    assert str(users[2]) == "python3 (pid 4711, container 0123456789ab)"


def test_nobody(tmp_path):
    assert find_users(NodeReader(str(tmp_path))) == ()


PROBE = """
import os, sys
sys.path.insert(0, ".")
import tests.conftest
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults import device_users
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
os.mknod("/dev/nvidia0", 0o600 | 0o020000, os.makedev(1, 3))
reader = NodeReader("/")
before = device_users.find_users(reader)
with open("/dev/nvidia0") as handle:
    during = device_users.find_users(reader)
print([user.pid for user in before], [user.pid == os.getpid() for user in during],
      during[0].devices, during[0].name)
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs a mount namespace"
)
def test_a_real_process_with_a_device_file_of_that_name():
    """The file is /dev/null's twin, in a /dev of its own, among processes of its own."""
    command = 'mount -t tmpfs none /dev && exec "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", command,
         sys.executable, PROBE],
        cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[] [True] ('/dev/nvidia0',) "), done.stdout
    assert done.stdout.split()[-1] != "?"


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (None, None),
        ("", None),
        ("0::/init.scope\n", "init.scope"),
        ("0::/user.slice/user-0.slice\n", None),
        ("12:pids:/system.slice/docker.service\n0::/\n", "docker.service"),
        (f"0::/system.slice/docker-{CONTAINER}.scope\n", "container 0123456789ab"),
        (f"11:devices:/kubepods/pod1/{CONTAINER}\n", "container 0123456789ab"),
        (f"0::/docker/{CONTAINER}/system.slice/a.service\n", "a.service"),
    ],
)
def test_unit_of(text, unit):
    assert unit_of(text) == unit


def test_modules(tmp_path):
    reader = NodeReader(str(tmp_path))
    assert (loaded_modules(reader), find_holders(reader)) == ((), ())
    for name in ("nvidia", "nvidia_uvm"):
        write(tmp_path, f"sys/module/{name}/refcnt", "1\n")
    (tmp_path / "sys/module/nvidia/holders/nvidia_uvm").mkdir(parents=True)
    (tmp_path / "sys/module/nvidia/holders/gdrdrv").mkdir()
    assert loaded_modules(reader) == ("nvidia_uvm", "nvidia")
    assert find_holders(reader) == ("gdrdrv",)


@pytest.mark.skipif(sys.platform != "linux", reason="prctl(2) is Linux's")
def test_a_name_that_a_terminal_would_obey_is_told_as_text(tmp_path):
    """Fifteen bytes that any user may choose: the kernel tells them as they are."""
    attack = "\x1bc\x1b[8mhidden"
    program = (
        "import ctypes, sys; "
        "ctypes.CDLL(None).prctl(15, sys.stdin.buffer.read(), 0, 0, 0); "
        "print(open('/proc/self/comm', 'rb').read().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=attack.encode(), capture_output=True, check=True
    )
    comm = bytes.fromhex(done.stdout.decode()).decode().rstrip("\n")
    assert comm == attack
    process(tmp_path, 4242, comm, ["/dev/nvidia0"])
    (user,) = find_users(NodeReader(str(tmp_path)))
    assert user.name == "\\x1bc\\x1b[8mhidden"
