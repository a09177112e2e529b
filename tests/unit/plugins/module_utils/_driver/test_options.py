# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of filter and module: what is taken, and what is refused by name."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.versions import version_numbers
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.types import (
    Request,
    branch_of,
)


def request(**options):
    return read_options(options)[0]


def test_defaults():
    assert request() == Request()
    assert request(branch=None, runfile=None, hold=None, licence=None) == Request()
    assert request(runfile={}, lock_timeout=60) == Request()


def test_values_as_inventories_write_them():
    found = request(
        branch=580, hold="no", dkms=True, key_fingerprints="AB", module_options={"A": 1}
    )
    assert (found.branch, found.hold, found.dkms) == ("580", False, "true")
    assert found.key_fingerprints == ("AB",)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"state": "gone"}, "nvidia_driver_state.*present, absent"),
        ({"branch": "R580"}, "nvidia_driver_branch"),
        ({"branch": "latest"}, "nvidia_driver_branch"),
        ({"version": "580"}, "nvidia_driver_version"),
        ({"version": "580.126.09-1"}, "package's revision"),
        ({"version": 580.1}, None),
        ({"kernel_module": "free"}, "nvidia_driver_kernel_module"),
        ({"source": "cuda"}, "nvidia_driver_source"),
        ({"dkms": "maybe"}, "nvidia_driver_dkms"),
        ({"coherent_memory": "gpu"}, "nvidia_driver_coherent_memory.*auto, driver, numa"),
        (
            {
                "coherent_memory": "driver",
                "module_options": {"nvidia.NVreg_CoherentGPUMemoryMode": "numa"},
            },
            "(?s)coherent_memory and nvidia_driver_module_options both.*Take it out",
        ),
        ({"module_options": {"NVreg_CoherentGPUMemoryMode": "numa"}}, None),
        ({"hold": "perhaps"}, "nvidia_driver_hold.*true or false"),
        ({"today": "21.11.2026"}, "nvidia_driver_today"),
        ({"today": "2026-02-31"}, "nvidia_driver_today"),
        ({"runfile": "x.run"}, "nvidia_driver_runfile.*mapping"),
        ({"runfile": {"file": "x"}}, "url, path, checksum"),
        ({"runfile": {"checksum": "x"}}, "either url or path"),
        ({"runfile": {"url": "x", "path": "y"}}, "either url or path"),
        ({"runfile": {"url": "x", "version": "new"}}, "runfile.version"),
        ({"licence": {"colour": "green"}}, "nvidia_driver_licence.*colour is unknown"),
        ({"licence": {"feature_type": 3}}, "nvidia_driver_licence.feature_type.*1, 2, 4"),
        ({"licence": {"port": "x"}}, "nvidia_driver_licence.port.*whole number"),
        ({"licence": {"feature_type": "4", "port": None}}, None),
        ({"licence": "x"}, "nvidia_driver_licence.*mapping"),
        ({"module_options": {"a b": 1}}, "nvidia_driver_module_options"),
        ({"repository_name": "cuda"}, "begins with kubegpu-"),
        ({"repository_name": "cuda", "manage_repository": False}, None),
    ],
)
def test_refused_by_name(options, words):
    if words is None:
        assert isinstance(request(**options), Request)
        return
    with pytest.raises(InputError, match=words):
        request(**options)


def test_versions():
    assert version_numbers("580.126.09") == (580, 126, 9) < version_numbers("580.178.04")
    assert version_numbers(None) == ()
    assert branch_of("580.126.09") == "580" and branch_of("580") == "580"
    assert branch_of(None) is branch_of("unknown") is branch_of("1.2") is None
