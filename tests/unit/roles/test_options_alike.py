# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that have to be equal on all hosts are compared by what they mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLES = Path(__file__).parents[3] / "roles"


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("gpu_monitoring", "__gpu_monitoring_seen"),
        ("gpu_device_plugin", "__gpu_device_plugin_this.options"),
        ("nvidia_device_plugin", "__nvidia_device_plugin_this.options"),
        ("nvidia_dra_driver", "__nvidia_dra_driver_this.options"),
    ],
)
@pytest.mark.parametrize("option", ["beside_others", "force_conflicts"])
def test_booleans_are_equal_however_they_are_written(role, name, option):
    loader = DataLoader()
    known = {
        "ansible_play_hosts": [], "hostvars": {}, "inventory_hostname": "gpu1",
        "gpu_device_plugin_vendor": "amd", "gpu_device_plugin_node_name": "gpu1",
        "gpu_device_plugin_options": {},
        "gpu_device_plugin_kube": dict.fromkeys(("kubeconfig", "context", "host", "delegate"), ""),
    }  # fmt: skip
    for folder in ("defaults", "vars"):
        path = str(ROLES / role / folder / "main.yml")
        known = {**loader.load_from_file(path, trusted_as_template=True), **known}
    for given, expected in ((True, True), ("yes", True), ("true", True), ("no", False)):
        variables = {**known, f"{role}_{option}": given}
        text = trust_as_template("{{ " + name + " }}")
        assert Templar(loader, variables=variables).template(text)[option] is expected
