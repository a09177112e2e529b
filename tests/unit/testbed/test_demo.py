# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The last lines of the demo, which a person pastes."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.testbed import demo, engine, mirror, playbook
from tests.testbed.fleet import FLEET
from tests.testbed.shell import TestbedError


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        ((["docker"], {"DOCKER_HOST": "unix:///x/docker.sock"}), "-H unix:///x/docker.sock exec"),
        ((["docker"], {}), "exec"),
    ],
    ids=["the testbed's own dockerd", "the machine's dockerd"],
)
def test_the_commands_work_without_docker_or_ansible_of_the_machine(monkeypatch, access, expected):
    monkeypatch.setattr(engine, "_access", lambda: access)
    monkeypatch.setattr(engine, "which", lambda word: f"/opt/bin/{word}")
    ansible, docker = demo._hints(FLEET)
    assert Path(shlex.split(ansible)[0]).is_file()
    assert docker == f"/opt/bin/docker {expected} -it {FLEET[0].container} bash"


def test_the_demo_shows_tables_progress_and_failures():
    output = """
PLAY [Plan the nodes] *********

TASK [kubegpu.nodes.nvidia_driver : Plan the driver] ****
ok: [gpu1]
skipping: [gpu2]

PLAY [Plan AMD] *****
skipping: no hosts matched

TASK [Show what would be done, and why] *****

What site would do, and why

Node  Change
----  ------
gpu1  -
changed: [gpu1] => (item=x)
fatal: [gpu2]: FAILED! => {"msg": "no"}
gpu1: packages, 10 s

PLAY RECAP ****
gpu1 : ok=2    changed=0    unreachable=0    failed=0
"""
    quiet = playbook.Quiet()
    assert [line for line in output.splitlines() if quiet(line)] == [
        "What site would do, and why", "", "Node  Change", "----  ------", "gpu1  -",
        'fatal: [gpu2]: FAILED! => {"msg": "no"}', "gpu1: packages, 10 s", "",
        "gpu1 : ok=2    changed=0    unreachable=0    failed=0",
    ]  # fmt: skip


def test_without_an_archive_in_its_sources_the_machine_is_told(monkeypatch):
    """No host name of an archive is a fallback."""
    monkeypatch.setattr(mirror, "debian_mirror", lambda: None)
    with pytest.raises(TestbedError, match="KUBEGPU_DEBIAN_MIRROR"):
        mirror.suites("bookworm")


def test_each_run_of_site_has_a_log_of_its_own(monkeypatch, tmp_path):
    """The second one was written over the first, and the demo named the file for both."""
    logs = []
    monkeypatch.setattr(playbook, "BUILD", tmp_path)
    monkeypatch.setattr(playbook, "stream", lambda *_a, log, **_k: (logs.append(log), (0, ""))[1])
    monkeypatch.setattr(engine, "up", lambda: None)
    monkeypatch.setattr(demo.repository, "up", lambda: "http://x")
    monkeypatch.setattr(demo.nodes, "up", lambda _fleet: None)
    monkeypatch.setattr(demo.nodes, "down", lambda _name: None)
    monkeypatch.setattr(demo.inventory, "write", lambda _fleet, _served: None)
    monkeypatch.setattr(demo, "prove", lambda _node: [])
    monkeypatch.setattr(demo, "execute", lambda *_a, **_k: "")
    monkeypatch.setattr(demo.calls, "reset", lambda _fleet: None)
    monkeypatch.setattr(demo.calls, "count", lambda fleet: {node.name: 1 for node in fleet})
    monkeypatch.setattr(demo, "_hints", lambda _fleet: [])
    demo.demo()
    assert [log.name for log in logs] == ["plan.log", "site.log", "site-again.log"]
