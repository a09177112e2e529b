# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes on which somebody was before us: an older toolkit, nvidia-docker2, doubled sources."""

from __future__ import annotations

import pytest
import yaml

from tests.integration.fleet.playbooks import ETC, INVENTORY, on_nodes, play
from tests.testbed.nodes import execute

pytestmark = pytest.mark.full(why="nodes with another past in the story of test_site.py")
OLD = "1.17.8-1"
PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
INSTALLED = (
    "dpkg-query -W -f '${Package} ${Version} ${Status}\\n' '*nvidia*' 2>/dev/null | "
    "grep 'ok installed' | sort; apt-mark showhold | sort"
)
SETTING = "nvidia-container-cli.no-cgroups"


@pytest.fixture
def node(fleet):
    """The node without a daemon.json of an admin's."""
    return next(node for node in fleet if node.name == "gpu3")


@pytest.fixture
def earlier(node):
    """NVIDIA's steps of some years ago, from the local repository: toolkit and nvidia-docker2."""
    variables = yaml.safe_load(INVENTORY.read_text(encoding="utf-8"))["all"]["vars"]
    repository = variables["nvidia_container_toolkit_repository"]
    url, key_url = repository["url"], repository["key_url"]
    entry = f"deb [signed-by=/usr/share/keyrings/{{}}.asc] {url}/$(ARCH) /"
    wanted = " ".join(f"{name}={OLD}" for name in PACKAGES)
    execute(
        node,
        "sh",
        "-c",
        f"""set -e
        python3 -c "import urllib.request as u; u.urlretrieve('{key_url}', '/tmp/key')"
        cp /tmp/key /usr/share/keyrings/first.asc
        cp /tmp/key /usr/share/keyrings/second.asc
        echo '{entry.format("first")}' > /etc/apt/sources.list.d/libnvidia-container.list
        apt-get update -q
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q {wanted} nvidia-docker2
        echo '{entry.format("second")}' > /etc/apt/sources.list.d/nvidia-docker.list
        """,
    )
    before = {host: on_nodes(what, node.name) for host, what in (("etc", ETC), ("dpkg", INSTALLED))}
    yield before
    play("teardown", "--limit", node.name)
    execute(
        node,
        "sh",
        "-c",
        # The doubled sources first: apt does nothing while they are there.
        f"""set -e
        rm -f /etc/apt/sources.list.d/libnvidia-container.list
        rm -f /etc/apt/sources.list.d/nvidia-docker.list
        rm -f /usr/share/keyrings/first.asc /usr/share/keyrings/second.asc
        apt-get purge -y -q nvidia-docker2 {" ".join(PACKAGES)}
        rm -rf /etc/docker/daemon.json /etc/nvidia-container-runtime
        systemctl restart docker
        apt-get update -q""",
    )


def test_s7_leftovers_of_nvidia_docker2_and_doubled_sources_go_and_come_back(node, earlier):
    """apt refuses two entries of one repository; the old package fights over daemon.json."""
    limit = ("--limit", node.name)
    check = play("site", "--check", "--diff", *limit)
    assert check.status == 0, check.messages()
    run = play("site", "--diff", *limit)
    assert run.status == 0, run.output
    assert check.changed() == run.changed()
    now = on_nodes(INSTALLED, node.name)[node.name]
    assert "nvidia-docker2" not in now
    # No version was asked for: what was there stays, and is held now.
    assert f"nvidia-container-toolkit {OLD} hold ok installed" in now
    execute(node, "apt-get", "update", "-q")
    again = play("site", *limit)
    assert again.stats[node.name]["changed"] == 0, again.changed()

    back = play("teardown", *limit)
    assert back.status == 0, back.messages()
    assert on_nodes(INSTALLED, node.name) == earlier["dpkg"]
    assert on_nodes(ETC, node.name) == earlier["etc"]


def test_older_toolkit_makes_its_cdi_specification_by_command_and_settings_are_set(fleet):
    node = next(node for node in fleet if node.driver)
    limit = ("--limit", node.name)
    before = on_nodes(ETC, node.name)
    request = {"nvidia_container_toolkit_version": "1.17.8"}
    run = play("site", *limit, variables=request)
    assert run.status == 0, run.output
    assert "libcuda.so.550.163.01" in execute(node, "cat", "/etc/cdi/nvidia.yaml")

    request["nvidia_container_toolkit_settings"] = {SETTING: True}
    check = play("site", "--check", "--diff", *limit, variables=request)
    run = play("site", "--diff", *limit, variables=request)
    assert run.status == 0, run.output
    assert check.changed() == run.changed()
    changed = [task.rpartition(" : ")[2] for task, _host in run.changed()]
    assert changed == ["Set up the toolkit's configuration"]
    assert "no-cgroups = true" in execute(node, "cat", "/etc/nvidia-container-runtime/config.toml")
    again = play("site", *limit, variables=request)
    assert again.stats[node.name]["changed"] == 0, again.changed()

    back = play("teardown", *limit)
    assert back.status == 0, back.messages()
    assert on_nodes(ETC, node.name) == before


# Debian's open kernel modules (dkms.conf of nvidia-open-kernel-dkms 550.163.01).
OPEN = "updates/dkms/nvidia-current-open.ko.xz:"


@pytest.fixture
def open_modules(fleet):
    """A node whose modules NVIDIA's unit does not look for."""
    (node, *_others) = (node for node in fleet if node.driver)
    modules = execute(node, "sh", "-c", "ls /lib/modules/*/modules.dep").strip()
    before = execute(node, "cat", modules)
    execute(node, "sh", "-c", f"echo {OPEN} > {modules}")
    yield node
    play("teardown", "--limit", node.name)
    execute(node, "cp", "/dev/stdin", modules, stdin=before)


def test_cdi_specification_is_made_where_nvidias_unit_declines(open_modules):
    node = open_modules
    limit = ("--limit", node.name)
    before = on_nodes(ETC, node.name)
    run = play("site", "--diff", *limit)
    assert run.status == 0, run.output
    assert "libcuda.so.550.163.01" in execute(node, "cat", "/etc/cdi/nvidia.yaml")
    assert execute(node, "sh", "-c", "ls /run/cdi 2>/dev/null || true").strip() == ""
    shown = execute(node, "systemctl", "show", "nvidia-cdi-refresh", "--property=Result")
    assert shown.strip() == "Result=exec-condition"
    (answer,) = (
        answer
        for (task, _host), answer in run.answers.items()
        if task.endswith("Refresh the CDI specification")
    )
    assert answer["method"] == "generate"
    assert "which has nvidia-current-open.ko" in answer["reasons"][1]
    again = play("site", *limit)
    assert again.stats[node.name]["changed"] == 0, again.changed()
    back = play("teardown", *limit)
    assert back.status == 0, back.messages()
    assert on_nodes(ETC, node.name) == before
