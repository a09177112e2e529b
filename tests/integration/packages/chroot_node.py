# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node that is a Debian root file system, entered by chroot, and Ansible on it."""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.testbed.mirror import mmdebstrap_options
from tests.testbed.paths import cache

CHECKOUT = Path(__file__).parents[3]


class ChrootNode:
    """Tasks and commands in a root file system; packages() is for the one that knows them."""

    # What a run of Ansible is started by.
    prefix: tuple[str, ...] = ()

    def __init__(self, root: Path, work: Path):
        self.root, self.work = root, work
        link = work / "collections" / "ansible_collections" / "kubegpu" / "nodes"
        link.parent.mkdir(parents=True)
        link.symlink_to(CHECKOUT, target_is_directory=True)

    def packages(self):
        # Each package manager is asked in its own words.
        raise NotImplementedError

    def task(self, module, *, check=False, **options):
        """Run one task; return its answer."""
        return self.tasks((module, options), check=check)[-1]

    def tasks(self, *steps, check=False):
        """Run tasks in one play; return their answers. A module, its options, and how it is run."""
        tasks = [
            {"name": "task", f"kubegpu.nodes.{module}": options, **dict(*how)}
            for module, options, *how in steps
        ]
        play = self.work / "play.json"
        play.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
        done = subprocess.run(
            [
                *self.prefix,
                str(Path(sys.executable).parent / "ansible-playbook"),
                "--inventory", "node,",
                "--connection", "community.general.chroot",
                "--extra-vars", json.dumps({
                    "ansible_host": str(self.root),
                    "ansible_python_interpreter": "/usr/bin/python3",
                }),
                "--diff", *(["--check"] if check else []), str(play),
            ],
            env={
                **os.environ,
                "ANSIBLE_COLLECTIONS_PATH": str(self.work / "collections"),
                "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
                "ANSIBLE_NOCOLOR": "true",
            },
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        start = done.stdout.find("{\n")
        assert start >= 0, done.stdout + done.stderr
        data, _end = json.JSONDecoder().raw_decode(done.stdout[start:])
        return [task["hosts"]["node"] for task in data["plays"][0]["tasks"]]

    def run(self, module, **options):
        """Run a task, having seen that check mode says the same and changes nothing."""
        before = self.packages()
        check = self.task(module, check=True, **options)
        assert self.packages() == before
        answer = self.task(module, **options)
        assert not answer.get("failed"), answer["msg"]
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


def base_tree(name: str, suite: str, *packages: str) -> Path:
    """Return the archive of a root file system, made once."""
    base = cache() / f"{name}.tar"
    if not base.exists():
        part = base.with_suffix(".part.tar")
        subprocess.run(
            ["mmdebstrap", *mmdebstrap_options(), "--variant=minbase",
             f"--include={','.join(packages)}", suite, str(part)],
            check=True,
        )  # fmt: skip
        part.rename(base)
    return base


def difference(before, after):
    return [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
