# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.plan import plan
from tests.unit.fixtures.node_facts import P4, node


def host(loaded: list[str] | None, config: str = "", gpus: Any = (P4,)) -> dict[str, Any]:
    facts = node(gpus=list(gpus))
    facts["gpudirect_modules"] = loaded
    return {"gpu_node": facts, "config": config, "planned": True}


@pytest.mark.parametrize(
    ("options", "flag", "module"),
    [
        ({"gds_enabled": True}, "gdsEnabled", "nvidia_fs"),
        ({"mofed_enabled": True}, "mofedEnabled", "ib_uverbs"),
        ({"environment": {"GDRCOPY_ENABLED": "T"}}, "gdrcopyEnabled", "gdrdrv"),
        ({"configs": {"default": {"flags": {"gdrcopyEnabled": True}}}}, "gdrcopyEnabled", "gdrdrv"),
    ],
)
def test_nodes_whose_module_is_not_loaded_are_named(
    options: dict[str, Any], flag: str, module: str
) -> None:
    hosts = {
        "with": host([module]),
        "without": host([]),
        "web": host([], gpus=()),
        "older-facts": host(None),
    }
    made = plan(options, hosts)
    (warning,) = made["warnings"]
    assert made["action"] == "apply"
    assert warning.startswith(f"without: {flag} is on and the kernel module {module} is not loaded")
    assert plan({}, hosts)["warnings"] == []


def test_each_host_is_compared_with_the_config_that_it_chooses() -> None:
    configs = {"default": {}, "storage": {"flags": {"gdsEnabled": True}}}
    hosts = {"a": host([]), "b": host([], "storage"), "c": host(["nvidia_fs"], "storage")}
    (warning,) = plan({"configs": configs}, hosts)["warnings"]
    assert warning.startswith("b: gdsEnabled")


def test_many_nodes_are_one_warning() -> None:
    hosts = {f"n{number}": host([]) for number in range(7)}
    (warning,) = plan({"gds_enabled": True}, hosts)["warnings"]
    assert warning.startswith("n0, n1, n2, n3, n4 and 2 more: gdsEnabled")
