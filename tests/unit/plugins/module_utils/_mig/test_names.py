# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each profile of each card has its name everywhere: configuration, facts, resource, pod, label."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.sharing import expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.nvml import (
    from_smi,
    with_smi_names,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.gpu_requests import check
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.names import is_discovered
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.config import Entry, read_config
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.data import table_profiles
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.types import parse_profile
from tests.unit.fixtures.device_plugin import device, flags, read, with_devices

# One card of each row of the table.
CARDS = (
    *("20b0", "20b2", "2321", "2342", "2335", "2348", "20b7"),
    *("2901", "2941", "3182", "31c2", "2bb5", "2bb3", "2c3a", "20b3"),
)
PROFILES = sorted({one.name for card in CARDS for one in table_profiles(card) or ()})
# k8s.io/apimachinery/pkg/util/validation: the part behind the domain.
QUALIFIED = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
SMI = """<nvidia_smi_log><driver_version>580.178.04</driver_version><gpu id="00000000:01:00.0">
<product_name>A card</product_name><uuid>GPU-a</uuid>
<mig_mode><current_mig>Enabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>
<mig_devices><mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id>
<compute_instance_id>0</compute_instance_id></mig_device></mig_devices></gpu></nvidia_smi_log>"""


def resource_of(profile: str) -> str:
    """Return the plugin's resource (k8s-device-plugin v0.20.0, internal/rm/rm.go)."""
    return f"nvidia.com/mig-{profile.replace('+', '.')}"


def test_the_table_has_the_names_with_attributes():
    assert {"1g.24gb-me", "2g.48gb-me", "1g.24gb+me.all", "4g.96gb+gfx", "1g.6gb+me"} <= {*PROFILES}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_has_its_name_everywhere(profile):
    assert parse_profile(profile)[0] == profile
    assert read_config(f"all-{profile}", {}) == (Entry(True, profile=profile),)
    # nvidia-smi -L, which alone has the profile where pynvml is not there.
    listed = f"GPU 0: A card (UUID: GPU-a)\n  MIG {profile}  Device  0: (UUID: MIG-a)\n"
    (found,) = with_smi_names(from_smi(SMI), listed)["devices"]
    (mig,) = found["mig_devices"]
    assert mig["name"] == f"A card MIG {profile}"

    resource = resource_of(profile)
    facts = with_devices(device("enabled", profile))
    # What the role waits for in allocatable, and what the verification expects there.
    assert expected(facts, read(flags("mixed"))) == {resource: 1}
    assert expected(facts, read(flags("single"))) == {"nvidia.com/gpu": 1}
    assert QUALIFIED.match(resource.partition("/")[2])
    container = {"name": "a", "image": "b", "resources": {"limits": {resource: 1}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
    assert check(pod) == []
    # The label of GPU feature discovery is left to it.
    assert is_discovered(f"{resource}.count")
