# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``site`` left on the nodes, seen by testinfra over ssh."""

from __future__ import annotations

import json

import pytest

IMAGE = "localhost/testbed/busybox:1"
PACKAGES = (
    "libnvidia-container1",
    "libnvidia-container-tools",
    "nvidia-container-toolkit-base",
    "nvidia-container-toolkit",
)


@pytest.fixture
def root(host):
    """The node, seen by root: Ansible logs in as an ordinary user."""
    with host.sudo():
        yield host


@pytest.fixture
def gpu_node(root):
    if root.backend.get_hostname().startswith("cpu"):
        pytest.skip("no GPU in this node")
    return root


@pytest.fixture
def cpu_node(root):
    if not root.backend.get_hostname().startswith("cpu"):
        pytest.skip("a GPU in this node")
    return root


def test_toolkit_is_one_version_and_held(gpu_node):
    assert len({gpu_node.package(name).version for name in PACKAGES}) == 1
    assert set(gpu_node.check_output("apt-mark showhold").split()) >= set(PACKAGES)


def test_containerd_runs_with_both_handlers(gpu_node):
    assert gpu_node.service("containerd").is_running
    dump = gpu_node.check_output("containerd config dump")
    assert '"/usr/bin/nvidia-container-runtime"' in dump.replace("'", '"')
    assert "runtimes.runc]" in dump


def test_docker_runs_the_runtime_and_gpus(gpu_node):
    info = json.loads(gpu_node.check_output("docker info --format '{{json .Runtimes}}'"))
    assert info["nvidia"]["path"] == "/usr/bin/nvidia-container-runtime"
    printed = gpu_node.check_output(f"docker run --rm --runtime nvidia {IMAGE} env")
    assert "KUBEGPU_STANDIN_RUNTIME=nvidia" in printed
    printed = gpu_node.check_output(f"docker run --rm --gpus all {IMAGE} cat /kubegpu-standin-hook")
    assert printed == "KUBEGPU_STANDIN_HOOK=nvidia"


def test_plain_containers_are_not_touched(gpu_node):
    assert "KUBEGPU_STANDIN" not in gpu_node.check_output(f"docker run --rm {IMAGE} env")


def test_node_without_gpu_is_as_it_was(cpu_node):
    assert not any(cpu_node.package(name).is_installed for name in PACKAGES)
    assert not cpu_node.file("/etc/docker/daemon.json").exists
    assert not cpu_node.file("/var/lib/kubegpu").exists
