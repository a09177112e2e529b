# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of the plugin's settings. Sources are those that the table names."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.config import (
    Flags,
    read_configs,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.options import OPTIONS
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.settings import (
    SETTINGS,
    Reading,
    chart_values,
    nearest,
    read_environment,
    read_release,
)

# What ``api/config/v1/flags.go`` of the tag has, by its JSON names, beside what the tag before has.
FIELDS = {
    (0, 14): "migStrategy failOnInitError nvidiaDriverRoot gdsEnabled mofedEnabled "
    "plugin.passDeviceSpecs plugin.deviceListStrategy plugin.deviceIDStrategy "
    "plugin.cdiAnnotationPrefix plugin.nvidiaCTKPath plugin.containerDriverRoot "
    "gfd.oneshot gfd.noTimestamp gfd.sleepInterval gfd.outputFile gfd.machineTypeFile",
    (0, 15): "mpsRoot useNodeFeatureAPI",
    (0, 16): "nvidiaDevRoot deviceDiscoveryStrategy",
    (0, 17): "",
    (0, 18): "gdrcopyEnabled",
    (0, 19): "",
    (0, 20): "plugin.sharedDevicesAllocationPolicy",
}


def config(flags, release=(0, 20), **more):
    reading = Reading(release)
    found = read_configs({"default": {"flags": flags, **more}}, Flags(), reading=reading)
    return found["default"].data, reading.notes


def nested(path, value):
    *parents, last = path.split(".")
    made = {last: value}
    for parent in reversed(parents):
        made = {parent: made}
    return made


def test_the_table_has_the_fields_of_each_release():
    assert {
        release: {one.path for one in SETTINGS if one.path and one.since == release}
        for release in FIELDS
    } == {release: set(names.split()) for release, names in FIELDS.items()}


def test_options_that_rows_name_are_there():
    assert {one.option for one in SETTINGS if one.option} <= set(OPTIONS)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        # Refused before, though the real 0.20.0 takes each of them.
        ("gdrcopyEnabled", True),
        ("nvidiaDevRoot", "/dev-root"),
        ("deviceDiscoveryStrategy", "nvml"),
        ("plugin.sharedDevicesAllocationPolicy", "packed"),
        ("plugin.cdiAnnotationPrefix", "example.com/"),
        ("gfd.oneshot", True),
        ("gfd.outputFile", "/tmp/labels"),
        ("gfd.machineTypeFile", "/etc/machine"),
        ("gfd.sleepInterval", "1m30s"),
        ("gfd.sleepInterval", "infinite"),
    ],
)
def test_what_the_plugin_takes_is_in_the_file_as_it_was_given(path, value):
    data, notes = config(nested(path, value))
    found = data["flags"]
    for part in path.split("."):
        found = found[part]
    assert (found, notes) == (value, [])


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("gdrcopyEnabled", "yes", "is 'yes', and has to be a boolean"),
        ("nvidiaDevRoot", "dev", "has to be an absolute path"),
        ("deviceDiscoveryStrategy", "vfio", "has to be one of auto, nvml, tegra"),
        ("plugin.sharedDevicesAllocationPolicy", "dense", "one of distributed, packed"),
        ("plugin.deviceListStrategy", ["envvar", 1], "has to be a string or list of strings"),
        # A number would be nanoseconds.
        ("gfd.sleepInterval", 60, "is 60, and has to be a duration"),
        ("gfd.sleepInterval", "60", "has to be a duration"),
        ("gfd.sleepinterval", "60s", "Is sleepInterval meant?"),
        ("gdrCopyEnabled", True, "Is gdrcopyEnabled meant?"),
        ("plugin.cdiAnnotationsPrefix", "a/", "Is cdiAnnotationPrefix meant?"),
        ("nothingLikeIt", 1, "Leave it out."),
        ("useNodeFeatureAPI", True, "Set nvidia_device_plugin_feature_discovery_api instead"),
        ("mpsRoot", "/elsewhere", "Set nvidia_device_plugin_mps_root instead"),
    ],
)
def test_what_it_does_not_take_is_refused_with_the_place(path, value, words):
    everywhere = {"feature_discovery_api": False, "mps_root": "/run/nvidia/mps"}
    with pytest.raises(InputError) as error:
        read_configs({"default": {"flags": nested(path, value)}}, Flags(), everywhere=everywhere)
    assert words in str(error.value)
    assert str(error.value).startswith("nvidia_device_plugin_configs[default].flags")


@pytest.mark.parametrize(
    ("path", "value", "release", "words"),
    [
        ("gdrcopyEnabled", True, (0, 17), "gdrcopyEnabled came with the plugin's v0.18"),
        ("useNodeFeatureAPI", True, (0, 14), "came with the plugin's v0.15"),
        ("plugin.sharedDevicesAllocationPolicy", "packed", (0, 19), "came with the plugin's v0.20"),
        ("plugin.deviceListStrategy", "cdi-cri", (0, 14), "cdi-cri came with the plugin's v0.15"),
        ("gfd.sleepInterval", "infinite", (0, 18), "infinite came with the plugin's v0.19"),
    ],
)
def test_what_an_older_release_does_not_know_is_refused(path, value, release, words):
    with pytest.raises(InputError, match=words):
        config(nested(path, value), release)


def test_parts_of_a_config_have_their_releases_too():
    with pytest.raises(InputError, match=r"imex came with the plugin's v0\.17"):
        config({}, (0, 16), imex={"channelIDs": [0]})
    shared = {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}
    with pytest.raises(InputError, match=r"mps came with the plugin's v0\.15"):
        config({}, (0, 14), sharing=shared)


@pytest.mark.parametrize("release", [(0, 21), (1, 0), None])
def test_what_a_newer_release_may_know_is_handed_on_with_a_warning(release):
    data, notes = config(
        {"newThing": {"a": 1}, "plugin": {"gdrcopyEnabld": 2}, "deviceDiscoveryStrategy": "vfio"},
        release,
        newPart=[1],
    )
    assert data["newPart"] == [1]
    assert data["flags"]["newThing"] == {"a": 1}
    assert data["flags"]["plugin"]["gdrcopyEnabld"] == 2
    assert data["flags"]["deviceDiscoveryStrategy"] == "vfio"
    assert [note.partition(":")[0] for note in notes] == [
        "nvidia_device_plugin_configs[default]",
        "nvidia_device_plugin_configs[default].flags",
        "nvidia_device_plugin_configs[default].flags.deviceDiscoveryStrategy",
        "nvidia_device_plugin_configs[default].flags.plugin",
    ]
    # A type that the table knows is wrong in every release.
    with pytest.raises(InputError, match="has to be a boolean"):
        config({"gdsEnabled": "maybe"}, release)


def test_a_newer_release_keeps_what_it_may_know_of_sharing():
    row = {"name": "nvidia.com/gpu", "replicas": 2, "weight": 3}
    shared = {"timeSlicing": {"resources": [row], "fair": True}}
    data, notes = config({}, (0, 21), sharing=shared)
    assert data["sharing"]["timeSlicing"]["resources"] == [row]
    assert data["sharing"]["timeSlicing"]["fair"] is True
    assert len(notes) == 2


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("v0.20.0", (0, 20)),
        ("0.17.4", (0, 17)),
        ("v0.19.0-ubi9", (0, 19)),
        ("v0.20.0-rc.1", (0, 20)),
        ("main-abcdef", None),
        ("v0.20", None),
        ("", None),
    ],
)
def test_a_release_is_read_from_a_tag(version, release):
    assert read_release(version) == release


def test_the_nearest_name_is_one_that_is_near():
    assert nearest("migstrategy", ["migStrategy", "gfd"]) == "migStrategy"
    assert nearest("somethingElse", ["migStrategy", "gfd"]) == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"MIG_STRATEGY": "mixed"}, "would win over nvidia_device_plugin_mig_strategy"),
        ({"DRIVER_ROOT_CTR_PATH": "/x"}, "over nvidia_device_plugin_container_driver_root"),
        ({"MPS_ROOT": "/x"}, "over nvidia_device_plugin_mps_root"),
        ({"CONFIG_FILE": "/x"}, "over nvidia_device_plugin_configs"),
        ({"GDRCOPY_ENABLED": "maybe"}, "is 'maybe', and has to be a boolean"),
        # Go's strconv.ParseBool does not take it.
        ({"GDRCOPY_ENABLED": "yes"}, "is 'yes', and has to be a boolean"),
        ({"IMEX_CHANNEL_IDS": "1"}, "is '1', and has to be one of 0"),
        ({"DEVICE_DISCOVERY_STRATEGY": "guess"}, "has to be one of auto, nvml, tegra"),
        ({"KUBELET_SOCKET": "kubelet.sock"}, "has to be an absolute path"),
    ],
)
def test_variables_of_the_plugin_have_values_that_it_takes(given, words):
    with pytest.raises(InputError) as error:
        read_environment(given, (0, 20))
    assert words in str(error.value)
    assert str(error.value).startswith("nvidia_device_plugin_environment[")


def test_variables_of_others_are_nobodys_business_but_for_a_slip():
    given = {"HTTPS_PROXY": "http://x", "GODEBUG": "a=1", "NVIDIA_IMEX_CHANNELS": "0",
             "GDRCOPY_ENABLED": "TRUE"}  # fmt: skip
    assert read_environment(given, (0, 20)) == []
    (note,) = read_environment({"GDRCOPY_ENABLE": "true"}, (0, 20))
    assert "Is GDRCOPY_ENABLED meant?" in note
    with pytest.raises(InputError, match=r"GDRCOPY_ENABLED came with the plugin's v0\.18"):
        read_environment({"GDRCOPY_ENABLED": "true"}, (0, 17))


def test_the_chart_gets_variables_as_the_values_that_it_has():
    # deployments/helm/nvidia-device-plugin/templates/daemonset-device-plugin.yml of v0.20.0. No
    # release has devicePlugin.containers.main.env, by which they were lost silently.
    given = {"GDRCOPY_ENABLED": "true", "NVIDIA_CDI_HOOK_PATH": "/h", "CDI_FEATURE_FLAGS": "a,b"}
    assert chart_values(given, (0, 20)) == {
        "gdrcopyEnabled": True,
        "cdi": {"nvidiaHookPath": "/h", "featureFlags": "a,b"},
    }
    assert chart_values({}, (0, 20)) == {}


@pytest.mark.parametrize(
    ("given", "release", "words"),
    [
        ({"HTTPS_PROXY": "http://x"}, (0, 20), "has HTTPS_PROXY\nNext step: Use nvidia_device"),
        ({"GDRCOPY_ENABLED": "true"}, (0, 17), "Set flags.gdrcopyEnabled in nvidia_device_plugin_"),
        ({"SHARED_DEVICES_ALLOCATION_POLICY": "packed"}, (0, 20),
         "Set flags.plugin.sharedDevicesAllocationPolicy in nvidia_device_plugin_configs instead, "
         "or use nvidia_device_plugin_method: manifest."),
    ],
)  # fmt: skip
def test_what_the_chart_has_no_value_for_is_refused(given, release, words):
    with pytest.raises(InputError) as error:
        chart_values(given, release)
    assert words in str(error.value)
