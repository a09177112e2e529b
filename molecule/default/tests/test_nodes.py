# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is on each node after ``site``, seen by testinfra over ssh as any machine would be."""

from __future__ import annotations

import json

import pytest

PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)


@pytest.fixture
def gpu_node(host):
    """Whether the node has an NVIDIA GPU, from the vendor ids of its PCI devices."""
    vendors = host.check_output("cat /sys/bus/pci/devices/*/vendor")
    return "0x10de" in vendors


def test_toolkit_is_installed_in_one_version_and_held_on_gpu_nodes_only(host, gpu_node):
    versions = {host.package(name).version for name in PACKAGES if host.package(name).is_installed}
    assert len(versions) == (1 if gpu_node else 0)
    held = set(host.check_output("apt-mark showhold").split())
    assert held == (set(PACKAGES) if gpu_node else set())


def test_containerd_runs_with_the_handler(host, gpu_node):
    assert host.service("containerd").is_running
    dump = host.check_output("containerd config dump")
    assert ("/usr/bin/nvidia-container-runtime" in dump) is gpu_node


def test_docker_runs_with_the_runtime_and_keeps_the_admins_keys(host, gpu_node):
    assert host.service("docker").is_running
    runtimes = json.loads(host.check_output("docker info --format '{{json .Runtimes}}'"))
    assert ("nvidia" in runtimes) is gpu_node


def test_record_is_there_for_root_only(host, gpu_node):
    record = host.file("/var/lib/kubegpu/state.json")
    assert record.exists is gpu_node
    if gpu_node:
        assert record.mode == 0o600 and record.user == "root"
