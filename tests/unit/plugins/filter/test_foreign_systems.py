# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Image-based and derived systems, as trees of files: their facts, and what each part plans.

The os-release files are recorded ones; GPUs, kernels and mounts are made.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_node_labels import gpu_node_labels
from ansible_collections.kubegpu.nodes.plugins.filter.gpu_plan import gpu_plan
from ansible_collections.kubegpu.nodes.plugins.filter.nvidia_driver_plan import nvidia_driver_plan
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import gather
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.machines import BIOS, MACHINES, archive, kernels
from tests.unit.fixtures.make_tree import make_machine
from tests.unit.fixtures.os_release import os_release
from tests.unit.fixtures.plans import amd_driver_plan, container_toolkit_plan, cuda_toolkit_plan

RO = {"/proc/self/mounts": "/dev/sda3 / ext4 rw 0 0\n/dev/mapper/usr /usr ext4 ro 0 0\n"}
RO_ROOT = {"/proc/self/mounts": "/dev/dm-0 / btrfs ro,relatime 0 0\n"}
LOADED = {"/sys/module/nvidia/version": "580.95.05\n", "/sys/module/nvidia/initstate": "live\n"}
# Name of the recorded file: kernel, other files, and what the way of the driver has to name.
IMAGES: dict[str, tuple[str, dict[str, str], str]] = {
    "flatcar": ("6.6.95-flatcar", RO, "/etc/flatcar/enabled-sysext.conf"),
    "cos": ("6.12.55+", RO_ROOT, "cos-extensions install gpu"),
    "bottlerocket": ("6.12.40", RO_ROOT, "nvidia variant"),
    "talos": ("6.18.36-talos", RO_ROOT, "nvidia-open-gpu-kernel-modules"),
    "microos": (
        "6.11.8-1-default",
        {**RO_ROOT, "/usr/bin/zypper": "", "/usr/sbin/transactional-update": ""},
        "transactional-update pkg install",
    ),
    "silverblue": (
        "6.11.6-300.fc41.x86_64",
        {**RO, "/run/ostree-booted": "", "/usr/bin/dnf5": ""},
        "rpm-ostree install",
    ),
    "rhcos": (
        "5.14.0-284.36.1.el9_2.x86_64", {**RO, "/run/ostree-booted": ""}, "GPU operator",
    ),
    "ubuntu-core": ("6.8.0-51-generic", RO_ROOT, "pc-kernel"),
}  # fmt: skip


def tree(root: Path, name: str, kernel: str, files: dict[str, str]) -> dict[str, Any]:
    """Return the facts of a tree with eight H100 and the recorded os-release of a system."""
    whole = {"/etc/os-release": os_release(name), **kernels(kernel), **BIOS, **files}
    make_machine(root, replace(MACHINES["h100x8"], files=whole))
    return gather(NodeReader(str(root)), RuntimePaths())


def said(plan: dict[str, Any]) -> str:
    return "\n".join([*plan["reasons"], *plan["warnings"]])


@pytest.fixture(params=IMAGES)
def image(request, tmp_path):
    kernel, files, way = IMAGES[request.param]
    return tree(tmp_path, request.param, kernel, files), way


def test_an_image_is_refused_first_of_all_with_its_own_way(image):
    node, way = image
    runfile = {"url": "https://files.example.com/NVIDIA-Linux-x86_64-580.95.05.run"}
    for plan in (
        nvidia_driver_plan(node),
        nvidia_driver_plan(node, branch="580", source="nvidia"),
        nvidia_driver_plan(node, runfile={**runfile, "checksum": "sha256:" + "0" * 64}),
    ):
        assert plan["action"] == "refuse"
        assert "is an image that is not changed while it runs" in plan["reasons"][0]
        assert way in said(plan)
    for plan in (
        container_toolkit_plan(node),
        cuda_toolkit_plan(node, versions=["13.0"]),
        gpu_plan(node, {"gpu_monitoring_method": "packages"}, ["gpu_exporter"])["gpu_exporter"],
    ):
        assert plan["action"] == "refuse", plan
        assert "is an image that is not changed" in plan["reasons"][0] or "systemd" in said(plan)
    assert node["os"]["image"] and node["os"]["image_system"]


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_with_a_driver_is_served(tmp_path, name):
    kernel, files, _way = IMAGES[name]
    node = tree(tmp_path, name, kernel, {**files, **LOADED})
    plan = nvidia_driver_plan(node)
    assert plan["action"] == "none" and not plan["change"], plan
    assert "580.95.05" in said(plan)
    # What only reads, or belongs to Kubernetes, does not mind.
    assert gpu_node_labels(node)
    assert cuda_toolkit_plan(node)["action"] == "none"
    # Another version is requested: an image cannot get it.
    other = nvidia_driver_plan(node, version="595.58.03")
    assert other["action"] == "refuse" and "is an image" in other["reasons"][0]


def test_the_toolkit_of_an_image_is_kept(tmp_path):
    config = {"/etc/nvidia-container-runtime/config.toml": "disable-require = false\n"}
    kernel, files, _way = IMAGES["flatcar"]
    plan = container_toolkit_plan(tree(tmp_path, "flatcar", kernel, {**files, **config}))
    assert plan["action"] == "none" and "belongs to the image" in said(plan)
    assert "sysext" in said(plan)


def test_amdgpu_of_an_image_is_kept(tmp_path):
    kernel, files, _way = IMAGES["silverblue"]
    node = tree(tmp_path, "silverblue", kernel, files)
    node["gpus"] = [{**node["gpus"][0], "vendor": "amd", "vendor_id": "1002"}]
    refused = amd_driver_plan(node)
    assert refused["action"] == "refuse" and "AMD's packages cannot be installed" in said(refused)
    node["kernel_drivers"]["amdgpu"] = {"version": None}
    assert amd_driver_plan(node)["action"] == "none"


UBUNTU_JAMMY = {
    "/usr/bin/apt-get": "",
    **archive("ubuntu", "http://mirror.example/ubuntu", "jammy", "main restricted multiverse"),
}


def test_mint_gets_the_packages_of_its_ubuntu(tmp_path):
    mint = {
        "/etc/apt/sources.list.d/official-package-repositories.list": (
            "deb http://mirror.example/mint vanessa main upstream import backport\n"
            "deb http://mirror.example/ubuntu jammy main restricted universe multiverse\n"
        ),
        "/usr/bin/apt-get": "",
    }
    node = tree(tmp_path, "mint", "5.15.0-130-generic", mint)
    assert node["os"]["upstream"] == {"id": "ubuntu", "version": "22.04", "codename": "jammy"}
    assert (node["os"]["id"], node["os"]["codename"]) == ("linuxmint", "vanessa")
    assert node["os"]["archive"]["uri"] == "http://mirror.example/ubuntu"
    plan = nvidia_driver_plan(node)
    assert plan["action"] == "install", said(plan)
    assert any(name.startswith("linux-modules-nvidia-") for name in plan["packages"])
    assert "packages are those of ubuntu 22.04" in said(plan)
    nvidia = nvidia_driver_plan(node, source="nvidia")
    assert "/ubuntu2204/x86_64" in nvidia["repository"]["url"]
    cuda = cuda_toolkit_plan(node, versions=["13.0"], driver_version="580.95.05")
    assert cuda["action"] == "install" and "/ubuntu2204/" in cuda["repository"]["url"], said(cuda)
    assert container_toolkit_plan(node)["action"] == "install"


def test_lmde_gets_the_packages_of_its_debian(tmp_path):
    files = {
        "/usr/bin/apt-get": "",
        **archive("debian", "http://mirror.example/debian", "bookworm", "main"),
    }
    node = tree(tmp_path, "lmde", "6.1.0-40-amd64", files)
    plan = nvidia_driver_plan(node)
    assert "/debian12/x86_64" in plan["repository"]["url"], said(plan)
    assert "linux-headers-amd64" in plan["packages"]
    assert "is not one of" not in said(plan)


def test_pop_has_its_own_driver(tmp_path):
    node = tree(tmp_path, "pop", "6.9.3-76060903-generic", UBUNTU_JAMMY)
    plan = nvidia_driver_plan(node)
    assert plan["action"] == "refuse"
    assert "apt-get install system76-driver-nvidia" in said(plan)
    assert "1001" in said(plan)
    runfile = {
        "url": "https://files.example.com/NVIDIA-Linux-x86_64-580.95.05.run",
        "checksum": "sha256:" + "0" * 64,
    }
    assert nvidia_driver_plan(node, runfile=runfile)["action"] == "install"
    toolkit = container_toolkit_plan(node)
    assert toolkit["action"] == "install" and "Pin-Priority: 1002" in said(toolkit)


def test_a_system_that_names_no_release_is_refused_by_name(tmp_path):
    node = tree(tmp_path, "kali", "6.11.2-amd64", {"/usr/bin/apt-get": ""})
    for plan in (
        nvidia_driver_plan(node),
        cuda_toolkit_plan(node, versions=["13.0"], driver_version="580.95.05"),
    ):
        assert plan["action"] == "refuse"
        assert plan["reasons"][0].startswith("kali 2024.3 is derived from Debian or Ubuntu")
    rows = {"kali2024": {"folder": "debian12"}}
    told = nvidia_driver_plan(node, repositories=rows)
    assert told["action"] == "install", said(told)
    assert "/debian12/x86_64" in told["repository"]["url"]


def test_proxmox(tmp_path):
    files = {
        "/usr/bin/apt-get": "",
        "/usr/bin/pveversion": "",
        **archive("debian", "http://mirror.example/debian", "bookworm", "main"),
    }
    node = tree(tmp_path, "proxmox", "6.8.12-4-pve", files)
    assert node["os"]["product"] == "Proxmox VE" and node["os"]["upstream"] is None
    plan = nvidia_driver_plan(node)
    assert plan["action"] == "install", said(plan)
    assert "linux-headers-amd64" not in plan["packages"]
    assert {"proxmox-default-headers", "proxmox-headers-6.8.12-4-pve"} <= set(
        plan["optional_packages"]
    )
    assert "enable a repository of Proxmox VE" in said(plan)
