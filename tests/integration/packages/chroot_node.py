# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node that is a Debian root file system, entered by chroot, and Ansible on it."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.integration import ansible_process
from tests.testbed.mirror import mmdebstrap_options
from tests.testbed.paths import cache, locked

CHECKOUT = Path(__file__).parents[3]
TIMEOUT = 1800
# Of Debian's packages, what nobody reads in a node.
_UNREAD = ("doc", "info", "locale", "man")


class ChrootNode:
    """Tasks and commands in a root file system; packages are for the one that knows them."""

    # What a run of Ansible is started by.
    prefix: tuple[str, ...] = ()
    # The command that lists the packages.
    look = ""

    def __init__(self, root: Path, work: Path):
        self.root, self.work = root, work
        link = work / "collections" / "ansible_collections" / "kubegpu" / "nodes"
        link.parent.mkdir(parents=True)
        link.symlink_to(CHECKOUT, target_is_directory=True)

    def packages(self):
        return self.shell(self.look).splitlines()

    def task(self, module, *, check=False, **options):
        """Run one task; return its answer."""
        return self.tasks((module, options), check=check)[-1]

    def tasks(self, *steps, check=False):
        """Run tasks in one play; return their answers. A module, its options, and how it is run."""
        tasks = [
            {
                "name": "task",
                module if "." in module else f"kubegpu.nodes.{module}": options,
                **dict(*how),
            }
            for module, options, *how in steps
        ]
        play = self.work / "play.json"
        plays = [{
            "hosts": "all",
            "gather_facts": False,
            # The run's temporary folder is not there in the node: dnf 5 would fail.
            "environment": {"TMPDIR": "/tmp"},
            "tasks": tasks,
        }]  # fmt: skip
        play.write_text(json.dumps(plays))
        argv = [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "--inventory", "node,",
            "--connection", "community.general.chroot",
            "--extra-vars", json.dumps({
                "ansible_host": str(self.root),
                "ansible_python_interpreter": "/usr/bin/python3",
            }),
            "--diff", *(["--check"] if check else []), str(play),
        ]  # fmt: skip
        env = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(self.work / "collections"),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            "ANSIBLE_NOCOLOR": "true",
        }
        done = ansible_process.run(
            argv, env=env, cwd=self.work, timeout=TIMEOUT, prefix=self.prefix
        )
        start = done.stdout.find("{\n")
        assert start >= 0, done.stdout + done.stderr
        data, _end = json.JSONDecoder().raw_decode(done.stdout[start:])
        return [task["hosts"]["node"] for task in data["plays"][0]["tasks"]]

    def run(self, module, **options):
        """Run a task, having seen that check mode says the same and changes nothing."""
        before = self.packages()
        check, seen, answer = self.tasks(
            (module, options, {"check_mode": True}),
            # In the same run of Ansible, between the two.
            ("ansible.builtin.raw", self.look, {"changed_when": False}),
            (module, options),
        )
        assert not answer.get("failed"), answer["msg"]
        assert seen["stdout_lines"] == before
        assert check["changed"] == answer["changed"]
        assert check["diff"] == answer["diff"]
        return answer

    def shell(self, command):
        return subprocess.run(
            ["chroot", str(self.root), "/bin/sh", "-c", command],
            capture_output=True, text=True, check=False,
            env={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": "/root",
                "DEBIAN_FRONTEND": "noninteractive",
            },
        ).stdout  # fmt: skip


def base_tree(suite: str, *packages: str) -> Path:
    """Return the archive of a root file system, made once; named by what is in it."""
    recipe = hashlib.sha256(f"{suite} {packages}".encode()).hexdigest()[:8]
    name = f"rootfs-{suite}-{packages[-1]}-{recipe}"
    base = cache() / f"{name}.tar"
    with locked(name):
        if not base.exists():
            part = base.with_suffix(".part.tar")
            subprocess.run(
                ["mmdebstrap", *mmdebstrap_options(), "--variant=minbase",
                 *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in _UNREAD),
                 f"--include={','.join(packages)}", suite, str(part)],
                check=True,
            )  # fmt: skip
            part.rename(base)
    return base


def unpacked(base: Path, name: str) -> Path:
    """Return a root file system of this process's own; those of dead processes are removed."""
    for old in cache().glob("node-*-*"):
        pid = old.name.rpartition("-")[2]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(old, ignore_errors=True)
    # Not below pytest's own folder: /tmp can be mounted without devices.
    root = cache() / f"node-{name}-{os.getpid()}"
    root.mkdir()
    subprocess.run(["tar", "-xf", str(base), "-C", str(root)], check=True)
    return root


def difference(before, after):
    return [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
