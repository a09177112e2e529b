# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans refuse what a package manager could only fail with: mirrors, and systems of images."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.filter.nvidia_driver_plan import nvidia_driver_plan
from tests.unit.fixtures.driver_cases import facts, request
from tests.unit.fixtures.plans import container_toolkit_plan, cuda_toolkit_plan

TOOLKIT = "https://mirror.example/libnvidia-container/stable"
CUDA = "https://mirror.example/cuda/repos"
ROCKY, UBUNTU = facts("L4", "rocky9"), facts("L4", "u24")


@pytest.mark.parametrize(
    ("plan", "node", "url", "right"),
    [
        (container_toolkit_plan, ROCKY, f"{TOOLKIT}/deb", f"{TOOLKIT}/rpm"),
        (container_toolkit_plan, UBUNTU, f"{TOOLKIT}/rpm", f"{TOOLKIT}/deb"),
        (nvidia_driver_plan, ROCKY, f"{CUDA}/ubuntu2404/x86_64", "rhel9/x86_64"),
        (nvidia_driver_plan, UBUNTU, f"{CUDA}/rhel9/x86_64", "ubuntu2404/x86_64"),
        (cuda_toolkit_plan, ROCKY, f"{CUDA}/ubuntu2404/x86_64", "rhel9/x86_64"),
    ],
)
def test_the_plan_refuses_it(plan, node, url, right):
    given = {"versions": ["13.0"]} if plan is cuda_toolkit_plan else {}
    if plan is nvidia_driver_plan:
        given = {"source": "nvidia"}
    found = plan(node, repository_url=url, **given)
    assert found["action"] == "refuse", found
    text = "\n".join(found["reasons"])
    assert right in text and "_repository.url is a repository of " in text
    assert plan(node, repository_url=url, manage_repository=False, **given)["action"] != "refuse"


def test_nothing_is_installed_into_an_image():
    """NVIDIA/gpu-operator#696, gpu-driver-container#8: dnf on RHEL image mode fails with a lock."""
    node = facts("L4", "rocky9")
    assert nvidia_driver_plan(node)["action"] == "install"
    node["os"].update(image="/run/ostree-booted", image_system="bootc")
    runfile = request("run=580.126.09")["runfile"]
    for plan in (
        nvidia_driver_plan(node),
        nvidia_driver_plan(node, runfile=runfile),
        container_toolkit_plan(node),
        cuda_toolkit_plan(node, versions=["13.0"]),
    ):
        text = "\n".join(plan["reasons"])
        assert plan["action"] == "refuse" and "is an image" in text, plan
        assert "Seen: /run/ostree-booted" in text and "bootc image" in text
    # What the image brings is used.
    kept = facts("L4", "rocky9", "nvidia 580.126.09 open dkms")
    kept["os"]["image"] = "/run/ostree-booted"
    assert nvidia_driver_plan(kept)["action"] == "none"
