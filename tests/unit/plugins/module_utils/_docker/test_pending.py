# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a verification says of a dockerd that waits, after the module has configured it.

The stand-in for dockerd is that of the module's own tests.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.pending import pending
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.types import Dependencies
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from tests.unit.plugins.modules.test_docker_runtime import DockerStandin, use


@pytest.fixture
def node(tmp_path, monkeypatch):
    made = DockerStandin(tmp_path)
    use(made, monkeypatch)
    made.admins(b"{}")
    made.active = True
    made.take_over(True)
    return made


def install_hook(node):
    """Install the hook now: this process, which stands for dockerd, is older."""
    node.hook = str(node.folder / "hook")
    (node.folder / "hook").write_text("")


def found(node, name="nvidia", **facts):
    known = {
        "config_path": str(node.config), "unit": "docker", "version": node.version,
        "live_restore": False, "containers_running": 3, **facts,
    }  # fmt: skip
    access = Dependencies(
        node.run, StateStore(str(node.state)), "", node.read_info, node.find_program
    )
    return pending(known, name, access)


def test_a_restart_that_running_containers_delay(node):
    install_hook(node)
    node.info.update(ContainersRunning=3)
    answer = node.once(reload=True, restart="if_idle")
    assert (answer["reloaded"], answer["restarted"], answer["restart_required"]) == (
        True, False, True,
    )  # fmt: skip
    waits = found(node)
    # It is the reason of the module, which site and plan show.
    assert waits.code == "docker_restart_required" and waits.evidence == answer["restart_reason"]
    assert waits.next_step == (
        "systemctl restart docker, which stops the running containers (3), as live-restore is off."
    )
    for facts, text in (
        ({"live_restore": True}, "live-restore is on: running containers continue"),
        ({"containers_running": 0}, "no container runs"),
        ({"live_restore": None, "containers_running": None}, "which stops its running containers"),
    ):
        assert text in found(node, **facts).next_step
    assert node.once(reload=True, restart="always")["restarted"]
    # That dockerd has found the hook, so that an upgrade of the toolkit is no reason.
    install_hook(node)
    assert found(node) is None


def test_a_file_that_dockerd_has_not_read(node):
    answer = node.once()
    assert answer["reload_required"]
    waits = found(node)
    assert waits.code == "docker_reload_required" and "systemctl reload docker" in waits.next_step
    assert waits.evidence == "nvidia is in the file, and docker info does not name it"
    node.once(reload=True)
    assert found(node) is None


def test_a_runtime_that_somebody_else_configured_has_no_record_to_compare(node):
    node.admins(b'{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}')
    node.take_over(True)
    install_hook(node)
    assert found(node) is None
    # The record of one runtime says nothing of another.
    node.once(name="other", reload=True)
    assert found(node) is None and found(node, "other") is not None


def test_what_is_not_known_is_not_pending(node):
    install_hook(node)
    node.once(reload=True)
    node.answers = False
    assert found(node).code == "docker_restart_required"
    node.active = False
    assert found(node) is None
    node.active = node.answers = True
    node.admins(b"{")
    assert found(node) is None
