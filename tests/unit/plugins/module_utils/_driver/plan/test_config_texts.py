# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The texts of the driver's files, read by those for whom they are where these are here."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.arguments import (
    asks_licence,
    licence_timeout,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import config_files
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import (
    config_texts as texts,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.kernel_drivers import (
    KERNEL_DRIVERS,
    kernel_drivers,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.module_blocks import (
    find_blocks,
)
from tests.unit.plugins.module_utils._driver.plan.test_packages import DRIVER, MORE, OTHERS


def test_paths():
    assert len(set(config_files.PATHS)) == len(config_files.PATHS) == 9
    assert set(config_files.IN_INITRAMFS) <= set(config_files.PATHS)


def test_nouveau_is_blocked_as_the_facts_read_it():
    # Ubuntu's packages of driver 615 and public guides for Fedora 44 keep nova away as well.
    assert {"nouveau", "nova_core", "nova_drm"} <= set(KERNEL_DRIVERS)
    for name in KERNEL_DRIVERS:
        assert find_blocks([name], {"a.conf": texts.nouveau()}, ""), name


def test_the_kernels_own_drivers_in_words():
    loaded = {"loaded": True, "blocked": False, "modules": ["nova_drm", "nova_core"]}
    assert kernel_drivers({"nouveau": loaded}) == "nova_drm and nova_core"
    # Facts of an earlier release.
    assert kernel_drivers({"nouveau": {"loaded": True, "blocked": False}}) == "nouveau"


def blacklist():
    return re.findall(r'^  "(.+)";$', texts.unattended(), re.M)


@pytest.mark.parametrize("name", [*DRIVER, *MORE])
def test_unattended_upgrades_leave_the_driver_alone(name):
    # As unattended-upgrades does it: re.match of each.
    assert any(re.match(pattern, name) for pattern in blacklist())


@pytest.mark.parametrize(
    "name", [name for name in OTHERS if "container" in name or "docker" in name]
)
def test_unattended_upgrades_may_have_the_toolkit(name):
    assert not any(re.match(pattern, name) for pattern in blacklist())


@pytest.mark.skipif(shutil.which("apt-config") is None, reason="no apt on this machine")
def test_apt_reads_the_blacklist(tmp_path):
    file = tmp_path / "apt.conf"
    file.write_text(texts.unattended())
    answer = subprocess.run(
        ["apt-config", "-c", str(file), "dump", "Unattended-Upgrade::Package-Blacklist"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r'^Unattended-Upgrade::Package-Blacklist:: "(.+)";$', answer.stdout, re.M)
    assert found[-len(blacklist()) :] == blacklist()


def test_options():
    wanted = {"NVreg_B": True, "nvidia-drm.modeset": 1, "NVreg_A": "x=1;y=2"}
    assert texts.options(wanted, debian=False).splitlines()[1:] == [
        "options nvidia NVreg_A=x=1;y=2",
        "options nvidia NVreg_B=1",
        "options nvidia-drm modeset=1",
    ]
    lines = texts.options({"NVreg_B": 0}, debian=True).splitlines()[1:]
    assert [line.split()[1] for line in lines] == [
        "nvidia",
        "nvidia-current",
        "nvidia-current-open",
    ]


@pytest.mark.parametrize(
    "wanted", [{"a b": 1}, {"A": "x y"}, {"A": ""}, {"A": 'x"'}, {"A": "x\ninstall nvidia /bin/sh"}]
)
def test_options_that_would_be_something_else(wanted):
    with pytest.raises(InputError, match="module_options"):
        texts.options(wanted, debian=False)


def test_licence():
    assert texts.gridd({}) == "# Written by kubegpu.nodes.nvidia_driver.\n"
    with pytest.raises(InputError, match="server"):
        texts.gridd({"server": "a\nEnableUI=TRUE"})
    # How long it is waited for is nothing that the daemon reads.
    assert texts.gridd({"timeout": 9}) == texts.gridd({})


@pytest.mark.parametrize(("value", "seconds"), [(None, 120), ("", 120), (0, 0), ("45", 45)])
def test_how_long_a_licence_is_waited_for(value, seconds):
    assert licence_timeout({"timeout": value}) == seconds
    assert licence_timeout({}) == 120
    assert not asks_licence({"timeout": value, "token_sha256": "ab"})
    assert asks_licence({"feature_type": 1})


@pytest.mark.parametrize("value", [-1, "soon", True, 1801, 1.5, [1]])
def test_a_time_that_is_none(value):
    with pytest.raises(InputError) as caught:
        read_options({"licence": {"timeout": value}})
    assert "nvidia_driver_licence.timeout" in str(caught.value)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
def test_systemd_reads_the_unit(tmp_path):
    unit = tmp_path / "nvidia-persistenced.service"
    # The program itself is not here.
    unit.write_text(texts.persistenced().replace("/usr/bin/nvidia-persistenced", "/bin/true"))
    answer = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert unit.name not in answer.stderr, answer.stderr
