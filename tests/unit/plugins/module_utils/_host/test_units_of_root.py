# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Units that this collection writes: an unprivileged user (a real one, 65534) tries to get in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import config_texts
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.config_files import (
    PERSISTENCED,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.files import setup
from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.files import (
    FileState,
    write_file,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.boot import boot_files
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.layout import Instance, Layout
from tests.unit.fixtures.node_facts import node

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="root alone becomes another user")


def written():
    """Return what the roles write for systemd, by path: units, drop-ins, scripts, counters."""
    files = {PERSISTENCED: config_texts.persistenced()}
    layout = Layout(True, (Instance(0, 4, "3g.40gb"),))
    files.update({one.path: one.text for one in boot_files({"GPU-a": layout})})
    for method in ("packages", "container", "textfile"):
        files.update(setup(method, read_options({}), node(), ["0000:15:00.0"]).files)
    return files


FILES = written()
UNITS = sorted(path for path in FILES if path.startswith("/etc/systemd/system/"))


def test_all_kinds_of_units_are_there():
    assert len(UNITS) >= 6 and any(path.endswith(".d/kubegpu.conf") for path in UNITS)


@pytest.mark.parametrize("path", UNITS)
def test_a_unit_names_its_programs_by_their_paths_and_reads_no_environment_of_others(path):
    text = FILES[path]
    for line in re.findall(r"^Exec\w+=-?(.+)$", text, re.M):
        first, *words = line.split()
        assert re.match(r"/(?:usr/)?s?bin/", first), line
        # What a program is given to read or run is root's, too.
        for word in words:
            assert not word.startswith(
                ("/tmp", "/var/tmp", "/dev/shm", "/home", "/run/user", ".")
            ), line
    keys = re.findall(r"^(\w+)=", text, re.M)
    # systemd's own PATH holds, and no file of variables, of which the unit could say more.
    assert not {"Environment", "EnvironmentFile", "PassEnvironment", "WorkingDirectory"} & {*keys}


def as_user(script, *arguments, **environment):
    command = ["/bin/sh", "-c", script, "sh", *map(str, arguments)]
    return subprocess.run(
        *(command,), user=NOBODY, group=NOBODY, extra_groups=(), capture_output=True, check=False,
        env={**os.environ, **environment}, text=True,
    )  # fmt: skip


ATTEMPTS = {
    "change it": 'echo "ExecStart=/tmp/x" >> "$1"',
    "replace it": 'mv "$1" "$1.away"',
    "remove it": 'rm -f "$1"',
    "exchange it for a link": 'ln -sfn /tmp/x "$1"',
    "change its mode": 'chmod 777 "$1"',
    "plant a drop-in": 'mkdir -p "$1.d" && echo x > "$1.d/x.conf"',
    "plant a file next to it": 'echo x > "$(dirname "$1")/x.conf"',
    "enable its own unit": 'ln -s /tmp/x "$(dirname "$1")/multi-user.target.wants/x.service"',
}


@AS_ROOT
@pytest.mark.parametrize("umask", [0o022, 0o000])
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_user_cannot(tmp_path_factory, umask, attempt):
    root = tmp_path_factory.mktemp("node")
    for step in (root, *list(root.parents)[:2]):
        step.chmod(0o755)
    earlier = os.umask(umask)
    try:
        for path, text in FILES.items():
            write_file(FileState(f"{root}{path}", text.encode()))
        os.makedirs(f"{root}/etc/systemd/system/multi-user.target.wants", mode=0o755, exist_ok=True)
    finally:
        os.umask(earlier)
    os.chmod(f"{root}/etc/systemd/system/multi-user.target.wants", 0o755)
    before = sorted(os.listdir(f"{root}/etc/systemd/system"))
    for path, text in FILES.items():
        done = as_user(ATTEMPTS[attempt], f"{root}{path}")
        assert done.returncode != 0, path
        with open(f"{root}{path}", encoding="utf-8") as handle:
            assert handle.read() == text
        assert as_user('cat "$1"', f"{root}{path}").returncode == 0, "it may be read"
    assert sorted(os.listdir(f"{root}/etc/systemd/system")) == before


@AS_ROOT
@pytest.mark.skipif(not shutil.which("systemctl"), reason="systemctl reads the folders of units")
@pytest.mark.parametrize("folder", ["home/.config/systemd/user", "run/user/65534/systemd/user"])
def test_a_unit_of_the_users_own_manager_is_none_of_the_system(tmp_path_factory, folder):
    """It has the name of ours, and systemctl of root is started with the user's variables."""
    root = tmp_path_factory.mktemp("node")
    for step in (root, *list(root.parents)[:2]):
        step.chmod(0o755)
    os.makedirs(f"{root}/etc/systemd/system")
    os.makedirs(f"{root}/{folder}")
    os.chown(f"{root}/{folder}", NOBODY, NOBODY)
    unit = "[Service]\nExecStart=/tmp/x\n[Install]\nWantedBy=default.target\n"
    planted = as_user('printf "$2" > "$1/kubegpu-mig.service"', f"{root}/{folder}", unit)
    assert planted.returncode == 0, "the attempt itself works"
    variables = {
        "HOME": f"{root}/home",
        "XDG_CONFIG_HOME": f"{root}/home/.config",
        "XDG_RUNTIME_DIR": f"{root}/run/user/65534",
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={root}/run/user/65534/bus",
    }
    done = subprocess.run(
        *(["systemctl", f"--root={root}", "is-enabled", "kubegpu-mig.service"],),
        env={**os.environ, **variables}, capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert done.returncode != 0 and "enabled" not in done.stdout
