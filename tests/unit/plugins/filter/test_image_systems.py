# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One table (``_distro.image_data``) decides what each role and module does on each kind of image.

The nodes are stand-ins: a tree of files of one system, of which the kind is changed.
"""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace

import pytest

from ansible_collections.kubegpu.nodes.plugins.filter.nvidia_driver_plan import nvidia_driver_plan
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import Refusal
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.image_data import BY_KEY
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.images import (
    PACKAGES,
    REPOSITORIES,
    immutable,
    loses_settings,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.plan import plan_exporter
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime import module as runtimes
from tests.unit.fixtures.node_facts import installed
from tests.unit.fixtures.plans import amd_driver_plan, container_toolkit_plan, cuda_toolkit_plan
from tests.unit.plugins.filter.test_foreign_systems import IMAGES, LOADED, tree

SETTINGS = {"nvidia-container-cli.debug": "/var/log/nvidia-container-toolkit.log"}
CONFIG = {"/etc/nvidia-container-runtime/config.toml": "disable-require = false\n"}


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    kernel, files, _way = IMAGES["flatcar"]
    return tree(tmp_path_factory.mktemp("bare"), "flatcar", kernel, files)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A node whose image has a driver and the container toolkit."""
    kernel, files, _way = IMAGES["flatcar"]
    whole = {**files, **LOADED, **CONFIG}
    node = tree(tmp_path_factory.mktemp("served"), "flatcar", kernel, whole)
    node["exporter"]["systemd"] = True
    return node


def of_kind(node, key):
    changed = deepcopy(node)
    changed["os"]["image_system"] = key
    return changed


def exporter_plan(node, **options):
    return plan_exporter(node, read_options({"counters": "", **options})).to_json()


def with_packages(node):
    """Return a node with a package manager whose image has all of the toolkit."""
    system = {name: node["os"][name] for name in ("image", "image_system")}
    changed = installed()
    changed["os"].update(system)
    return changed


def refuses(plan):
    said = "\n".join([*plan["reasons"], *plan["warnings"]])
    assert plan["action"] != "refuse" or "is an image" in said, said
    return plan["action"] == "refuse"


def amd(node):
    changed = deepcopy(node)
    changed["gpus"] = [{**node["gpus"][0], "vendor": "amd", "vendor_id": "1002"}]
    return changed


def runtime(system):
    """Return whether the modules of the runtimes refuse to change a file."""
    module = SimpleNamespace(params={"state": "present"}, check_mode=True)
    found = SimpleNamespace(changed=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtimes, "read_os", lambda _reader: system)
        try:
            runtimes.apply_runtime(module, None, lambda _predicts: found)
        except Refusal:
            return True
    return False


#: What installs something in the system is refused on every image.
INSTALLS = {
    "nvidia_driver": lambda bare, _served: refuses(nvidia_driver_plan(bare)),
    "nvidia_driver, runfile": lambda bare, _served: refuses(
        nvidia_driver_plan(bare, runfile={
            "url": "https://files.example.com/NVIDIA-Linux-x86_64-580.95.05.run",
            "checksum": "sha256:" + "0" * 64,
        })
    ),
    "amd_driver": lambda bare, _served: refuses(amd_driver_plan(amd(bare))),
    "nvidia_container_toolkit": lambda bare, _served: refuses(container_toolkit_plan(bare)),
    "cuda_toolkit": lambda _bare, served: refuses(cuda_toolkit_plan(served, versions=["13.0"])),
    "package_set": lambda bare, _served: immutable(bare["os"], PACKAGES) is not None,
}  # fmt: skip
#: What changes files below /etc only.
SETS = {
    "nvidia_container_toolkit, settings": lambda _bare, served: refuses(
        container_toolkit_plan(with_packages(served), settings=SETTINGS)
    ),
    "containerd_runtime, crio_runtime, docker_runtime": lambda bare, _served: runtime(bare["os"]),
    "package_repository": lambda bare, _served: (
        loses_settings(bare["os"], REPOSITORIES) is not None
    ),
}
#: What has files below /usr/local, too.
HAS_PROGRAMS = {
    "gpu_monitoring, textfile": lambda _bare, served: refuses(
        exporter_plan(served, method="textfile", textfile_directory="/var/lib/metrics")
    ),
}
#: What changes nothing of what the image has.
KEEPS = {
    "nvidia_driver of the image": lambda _bare, served: refuses(nvidia_driver_plan(served)),
    "toolkit of the image": lambda _bare, served: refuses(container_toolkit_plan(served)),
    "no CUDA requested": lambda _bare, served: refuses(cuda_toolkit_plan(served)),
}


def expected(row, part):
    if part in KEEPS:
        return False
    if part in SETS:
        return not (row.keeps_etc or row.keeps_settings)
    return part in INSTALLS or not row.keeps_etc


@pytest.mark.parametrize("key", BY_KEY)
@pytest.mark.parametrize("part", [*INSTALLS, *SETS, *HAS_PROGRAMS, *KEEPS])
def test_the_table_decides_for_each_role_and_module(bare, served, part, key):
    check = {**INSTALLS, **SETS, **HAS_PROGRAMS, **KEEPS}[part]
    assert check(of_kind(bare, key), of_kind(served, key)) is expected(BY_KEY[key], part)


def test_there_are_thirteen_kinds():
    assert len(BY_KEY) == 13
