# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of the toolkit's file: names, types and values by release.

Source: NVIDIA/nvidia-container-toolkit v1.20.0, api/config/v1 (the struct tags, ``assertValid``),
internal/info/auto.go, internal/oci/runtime_low_level.go; earlier tags for what came and went.
"""

from __future__ import annotations

import tomllib

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.facts import read_config
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.settings import (
    SETTINGS,
    faults,
    release_of,
    unknown,
)

# As `nvidia-ctk config` of 1.20.0 writes it, with what it has as comments set.
ALL_1_20_0 = """
disable-require = false
swarm-resource = "DOCKER_RESOURCE_GPU"
accept-nvidia-visible-devices-envvar-when-unprivileged = true
accept-nvidia-visible-devices-as-volume-mounts = false
supported-driver-capabilities = "compat32,compute,display,graphics,ngx,utility,video"

[nvidia-container-cli]
root = "/run/nvidia/driver"
path = "/usr/bin/nvidia-container-cli"
environment = []
debug = "/var/log/nvidia-container-toolkit.log"
ldcache = "/etc/ld.so.cache"
load-kmods = true
no-pivot = false
no-cgroups = false
user = "root:video"
ldconfig = "@/sbin/ldconfig"

[nvidia-ctk]
path = "nvidia-ctk"

[nvidia-container-runtime]
debug = "/var/log/nvidia-container-runtime.log"
log-level = "info"
runtimes = ["runc", "crun"]
mode = "auto"

[nvidia-container-runtime.modes.csv]
mount-spec-path = "/etc/nvidia-container-runtime/host-files-for-container.d"
compat-container-root = "/compat"

[nvidia-container-runtime.modes.cdi]
spec-dirs = ["/etc/cdi", "/var/run/cdi"]
default-kind = "nvidia.com/gpu"
annotation-prefixes = ["cdi.k8s.io/"]

[nvidia-container-runtime.modes.jit-cdi]
nvcdi-feature-flags = ["disable-nvsandboxutils"]
nvcdi-disable-hooks = ["chmod"]

[nvidia-container-runtime.modes.legacy]
cuda-compat-mode = "ldconfig"

[nvidia-container-runtime-hook]
path = "nvidia-container-runtime-hook"
skip-mode-detection = false

[features]
allow-cuda-compat-libs-from-container = true
allow-ldconfig-from-container = true
allow-unknown-oci-spec-fields = true
disable-cuda-compat-lib-hook = true
disable-imex-channel-creation = true
ignore-imex-channel-requests = true
no-additional-gids-for-device-nodes = true
"""


def test_every_setting_of_1_20_0_is_known_and_right():
    settings = read_config(ALL_1_20_0)
    assert tomllib.loads(ALL_1_20_0)
    release = release_of("1.20.0-1")
    assert faults(settings, release) == [] and unknown(settings, release) == []
    # And no other, but for those that went with 1.17.
    gone = {"features.gds", "features.mofed", "features.nvswitch", "features.gdrcopy"}
    assert set(SETTINGS) == {*settings, *gone}


@pytest.mark.parametrize(
    ("setting", "value", "version", "words"),
    [
        # These three were seen to stop every container, with the real 1.20.0.
        ("nvidia-container-cli.no-cgroups", "true", "1.20.0", "true or false, and is the text"),
        ("nvidia-container-cli.ldconfig", "/sbin/ldconfig", "1.20.0", "begin with @"),
        ("nvidia-container-runtime.mode", "cdii", "1.20.0", "auto, legacy, csv, cdi, jit-cdi"),
        ("nvidia-container-cli.load-kmods", 1, "1.20.0", "true or false"),
        ("nvidia-container-cli.root", True, "1.20.0", "text"),
        ("nvidia-container-cli.environment", "A=b", "1.20.0", "a list of text"),
        ("nvidia-container-runtime.runtimes", [], "1.20.0", "at least one"),
        ("supported-driver-capabilities", "compute,gpu", "1.20.0", "has gpu"),
        # Not the same as the section in the file.
        ("nvidia-container-runtime.modes", "cdi", "1.20.0", "is a section"),
        ("nvidia-container-runtime.mode", "jit-cdi", "1.17.9", "auto, legacy, csv, cdi, and"),
        ("nvidia-container-runtime.mode", "CDI", "1.20.0", "one of"),
        ("nvidia-container-cli.ldconfig", "/sbin/ldconfig", "1.17.3", "begin with @"),
    ],
)
def test_what_the_toolkit_stops_at(setting, value, version, words):
    (fault,) = faults({setting: value}, release_of(version))
    assert fault.key == setting and fault.stops
    assert setting in fault.message and words in fault.message


@pytest.mark.parametrize(
    ("setting", "value", "version"),
    [
        ("nvidia-container-runtime.mode", "jit-cdi", "1.18.0"),
        ("nvidia-container-runtime.mode", "jit-cdi", None),
        ("nvidia-container-runtime.mode", "newer", "1.21.0"),
        ("nvidia-container-runtime.log-level", "Debug", "1.20.0"),
        ("nvidia-container-cli.ldconfig", "/sbin/ldconfig", "1.17.2"),
        ("supported-driver-capabilities", "all", "1.20.0"),
        ("supported-driver-capabilities", "compute, utility", "1.20.0"),
    ],
)
def test_what_a_release_takes(setting, value, version):
    assert faults({setting: value}, release_of(version)) == []


def test_container_path_of_ldconfig_where_a_feature_allows_it():
    requested = {"nvidia-container-cli.ldconfig": "/sbin/ldconfig"}
    allowed = {"features.allow-ldconfig-from-container": True}
    assert (
        faults(requested, (1, 20, 0), allowed) == [] == faults({**requested, **allowed}, (1, 20, 0))
    )
    assert faults(requested, (1, 20, 0), {"features.allow-ldconfig-from-container": False})


@pytest.mark.parametrize("setting", ["log-level", "modes.legacy.cuda-compat-mode"])
def test_value_that_the_toolkit_replaces_is_wrong_and_stops_nothing(setting):
    (fault,) = faults({f"nvidia-container-runtime.{setting}": "much"}, (1, 20, 0))
    assert not fault.stops


@pytest.mark.parametrize(
    ("setting", "version", "words"),
    [
        ("nvidia-container-cli.no-cgroup", "1.20.0", "nearest that is known is nvidia-cont"),
        ("no-cgroups", "1.20.0", "nearest that is known is nvidia-container-cli.no-cgroups"),
        ("something.else", "1.20.0", "not a setting of toolkit 1.20.0, which ignores it."),
        ("something.else", None, "not a setting of the toolkit, which ignores it."),
        ("something.else", "1.21.0", "not known here, where the settings up to toolkit 1.20"),
        ("features.gds", "1.20.0", "before 1.17; toolkit 1.20.0 ignores it"),
        (
            "nvidia-container-runtime.modes.jit-cdi.nvcdi-disable-hooks",
            "1.19.1",
            "from 1.20 on; toolkit 1.19.1 ignores it",
        ),
    ],
)
def test_names_that_are_ignored(setting, version, words):
    (said,) = unknown({setting: True}, release_of(version))
    assert said.startswith(setting) and words in said
    # What is not known is not judged.
    if setting not in SETTINGS:
        assert faults({setting: object()}, release_of(version)) == []
