# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import types

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.nvml import (
    from_nvml,
    from_smi,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vgpu_licence import (
    licence_of_features,
    licence_state,
    read_licence,
    unlicensed,
    with_licences,
)

PRODUCT = "NVIDIA RTX Virtual Workstation"
GUEST = """<?xml version="1.0" ?><nvidia_smi_log><driver_version>550.127.05</driver_version>
<gpu id="00000002:00:00.0"><product_name>NVIDIA A10-24Q</product_name><uuid>GPU-a</uuid>
<gpu_virtualization_mode><virtualization_mode>{mode}</virtualization_mode></gpu_virtualization_mode>
<vgpu_software_licensed_product><licensed_product_name>NVIDIA RTX Virtual Workstation
</licensed_product_name><license_status>{status}</license_status></vgpu_software_licensed_product>
</gpu></nvidia_smi_log>"""


@pytest.mark.parametrize(
    ("status", "state", "expiry"),
    [
        ("Licensed (Expiry: 2026-7-7 16:1:44 GMT)", "licensed", "2026-07-07T16:01:44+00:00"),
        ("Licensed (Expiry: Permanent)", "licensed", None),
        ("Licensed (Expiry: N/A)", "licensed", None),
        ("Licensed", "licensed", None),
        ("Unlicensed (Unrestricted)", "grace", None),
        ("Unlicensed (Restricted)", "unlicensed", None),
        ("Unlicensed", "unlicensed", None),
        # Words of another release are not guessed at, and a date that is none is no date.
        ("Unknown", "unknown", None),
        ("Licensed (Expiry: 2026-13-40 99:0:0 GMT)", "licensed", None),
    ],
)
def test_states(status, state, expiry):
    found = read_licence("VGPU", PRODUCT, status)
    assert found == {"product": PRODUCT, "status": status, "state": state, "expiry": expiry}
    text = GUEST.format(mode="VGPU", status=status)
    assert from_smi(text)["devices"][0]["licence"] == found


@pytest.mark.parametrize("mode", ["None", "Pass-Through", "Host VGPU", "N/A", ""])
@pytest.mark.parametrize("status", ["Licensed (Expiry: N/A)", "Unlicensed", "N/A"])
def test_a_whole_gpu_has_none(mode, status):
    assert from_smi(GUEST.format(mode=mode, status=status))["devices"][0]["licence"] is None


def test_a_guest_that_does_not_tell_it():
    assert from_smi(GUEST.format(mode="VGPU", status="N/A"))["devices"][0]["licence"] is None
    assert read_licence("VGPU", None, None) is None


def features(*rows, supported=1, count=None):
    return types.SimpleNamespace(
        isGridLicenseSupported=supported,
        licensableFeaturesCount=len(rows) if count is None else count,
        gridLicensableFeatures=[*rows, *[feature(0)] * (3 - len(rows))],
    )


def feature(state, *, product=b"NVIDIA Virtual Compute Server", status=2):
    expiry = types.SimpleNamespace(status=status, year=2026, month=7, day=7, hour=16, min=1, sec=44)
    return types.SimpleNamespace(featureState=state, productName=product, licenseExpiry=expiry)


def test_nvml_says_the_same():
    compute = "NVIDIA Virtual Compute Server"
    assert licence_of_features(2, features(feature(1))) == {
        "product": compute,
        "status": "Licensed (Expiry: 2026-7-7 16:1:44 GMT)",
        "state": "licensed",
        "expiry": "2026-07-07T16:01:44+00:00",
    }
    assert licence_of_features(2, features(feature(0)))["status"] == "Unlicensed"
    # The one that has a licence counts.
    two = licence_of_features(2, features(feature(0), feature(1, product="RTX")))
    assert (two["product"], two["state"]) == ("RTX", "licensed")
    permanent = licence_of_features(2, features(feature(1, status=4)))
    assert permanent["status"] == "Licensed (Expiry: Permanent)"
    assert licence_of_features(2, features(feature(1, status=3)))["expiry"] is None


@pytest.mark.parametrize(
    ("mode", "given"),
    [
        (None, features(feature(0))),
        (0, features(feature(0))),
        (1, features(feature(0))),
        (3, features(feature(0))),
        (2, None),
        (2, features(feature(0), supported=0)),
        (2, features(feature(0), count=0)),
    ],
)
def test_nvml_tells_nothing(mode, given):
    assert licence_of_features(mode, given) is None


def test_pynvml_is_asked_for_it():
    class Nvml:
        NVMLError = ValueError

        def __getattr__(self, name):
            answers = {
                "nvmlInit": None,
                "nvmlShutdown": None,
                "nvmlDeviceGetCount": 1,
                "nvmlDeviceGetHandleByIndex": "gpu",
                "nvmlDeviceGetVirtualizationMode": 2,
                "nvmlDeviceGetGridLicensableFeatures": features(feature(0)),
            }
            if name not in answers:
                raise AttributeError(name)
            return lambda *_arguments: answers[name]

    assert from_nvml(Nvml())["devices"][0]["licence"]["state"] == "unlicensed"


def test_facts_have_it_in_one_place():
    licence = read_licence("VGPU", PRODUCT, "Unlicensed")
    gpus = [{"address": one, "vgpu": {"guest": True, "licence": None}} for one in ("a", "b")]
    device = {"address": "b", "uuid": "GPU-b", "licence": licence}
    found, nvml = with_licences(gpus, {"devices": [device]})
    assert [gpu["vgpu"]["licence"] for gpu in found] == [None, licence]
    assert nvml == {"devices": [{"address": "b", "uuid": "GPU-b"}]}
    assert unlicensed(found) == [found[1]] and licence_state(found[0]) is None
    assert with_licences(gpus, None) == (gpus, None)
    # Facts of an earlier release.
    assert unlicensed([{"vgpu": {"guest": True}}]) == []
