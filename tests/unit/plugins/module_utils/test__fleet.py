# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._fleet import gpu_vendor, hosts_with


@pytest.mark.parametrize(
    ("vendors", "group"),
    [([], "none"), (["amd"], "amd"), (["intel", "nvidia"], "nvidia"), (["intel"], "intel")],
)
def test_group_of_a_node(vendors, group):
    assert gpu_vendor([{"vendor": vendor} for vendor in vendors]) == group


def test_hosts_with():
    hostvars = {
        "a": {"ansible_facts": {"gpu_node": {}}, "work": True},
        "b": {"ansible_facts": {"gpu_node": {}}, "work": False},
        "failed while it was planned": {"ansible_facts": {"gpu_node": {}}},
        "unreachable": {"ansible_facts": {}},
        "never asked": {},
    }
    assert hosts_with([*hostvars], hostvars) == ["a", "b", "failed while it was planned"]
    assert hosts_with([*hostvars], hostvars, "work") == ["a"]
    assert hosts_with(["a"], {}) == hosts_with(["a"], {}, "work") == []
