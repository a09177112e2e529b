# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from plugins.module_utils._core.errors import InputError
from plugins.module_utils._mig.config import Entry, profile_counts, read_config
from plugins.module_utils._mig.data import in_table, table_profiles

ENTRY = {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}


def test_built_in_configurations():
    assert read_config("all-disabled", {}) == (Entry(False),)
    assert read_config("all-enabled", {}) == (Entry(True),)
    assert read_config("all-1g.10gb+me", {}) == (Entry(True, profile="1g.10gb+me"),)
    assert read_config("all-1g.24gb-me", {}) == (Entry(True, profile="1g.24gb-me"),)


@pytest.mark.parametrize(
    ("device", "config", "counts"),
    [
        ("20b0", "all-1g.5gb", {"1g.5gb": 7}),
        ("20b0", "all-1g.10gb", {"1g.10gb": 4}),
        ("2330", "all-balanced", {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
        ("20b7", "all-balanced", {"1g.6gb": 2, "2g.12gb": 1}),
        ("2bb5", "all-balanced", {"1g.24gb": 2, "2g.48gb": 1}),
        ("2bb5", "all-1g.24gb+me.all", {"1g.24gb+me.all": 1}),
        # Names of mig-parted's default file: a label cannot have a +.
        ("20b0", "all-1g.5gb.me", {"1g.5gb+me": 1}),
        ("2bb5", "all-1g.24gb.gfx", {"1g.24gb+gfx": 4}),
        ("2bb5", "all-1g.24gb.me.all", {"1g.24gb+me.all": 1}),
        ("2bb5", "all-4g.96gb.gfx", {"4g.96gb+gfx": 1}),
        # Compute instances as large as their GPU instance.
        ("20b0", "all-7c.7g.40gb", {"7g.40gb": 1}),
        ("2bb1", "all-balanced", {"1g.24gb": 2, "2g.48gb": 1}),
        ("2bb3", "all-1g.24gb+gfx", {"1g.24gb+gfx": 2}),
        ("2c3a", "all-1g.16gb", {"1g.16gb": 2}),
        ("2909", "all-1g.23gb", {"1g.23gb": 7}),
        ("31c3", "all-7g.278gb", {"7g.278gb": 1}),
        ("232c", "all-1g.18gb", {"1g.18gb": 7}),
        ("20b3", "all-3g.32gb", {"3g.32gb": 2}),
        ("20bd", "all-1g.5gb", {"1g.5gb": 7}),
    ],
)
def test_a_built_in_configuration_follows_the_card(device, config, counts):
    (entry,) = read_config(config, {})
    assert profile_counts(entry, table_profiles(device)) == counts


def test_a_file_of_mig_parted():
    config = {
        "version": "v1",
        "mig-configs": {
            "mixed": [
                {"devices": [0], "mig-enabled": False},
                {
                    "device-filter": ["0x20B010DE", "0x20B210DE:0x147F10DE"],
                    "devices": [1, 2],
                    "mig-enabled": True,
                    "mig-devices": {"1g.5gb": 2, "3g.20gb": 1, "2g.10gb": 0},
                },
            ]
        },
    }
    assert read_config("mixed", config) == (
        Entry(False, devices=(0,)),
        Entry(True, {"1g.5gb": 2, "3g.20gb": 1}, (1, 2), (("20b0", ""), ("20b2", "147f10de"))),
    )


def test_the_card_with_72_gb_has_other_profiles():
    assert table_profiles("2bb3", "204d10de") == table_profiles("2bb3")
    assert table_profiles("2bb3", "227a10de") is None
    assert not in_table("2bb3", "227a10de") and in_table("2bb3", "204d10de")


def test_compute_instances_of_the_whole_gpu_instance_are_the_gpu_instance():
    entry = {**ENTRY, "mig-devices": {"1c.1g.5gb": 2, "1g.5gb": 1, "7c.7g.40gb": 0}}
    assert read_config("a", {"a": [entry]}) == (Entry(True, {"1g.5gb": 3}),)


def test_a_configuration_with_a_built_in_name_replaces_it():
    (entry,) = read_config("all-balanced", {"all-balanced": [ENTRY]})
    assert entry == Entry(True, {"1g.10gb": 7})


@pytest.mark.parametrize(
    ("config", "configs", "words"),
    [
        ("half", {"mixed": [ENTRY]}, "'half' is not known.*one of mixed"),
        ("a", {"version": "v2", "mig-configs": {"a": [ENTRY]}}, "version 'v2'"),
        ("a", {"a": []}, "not a list with entries"),
        ("a", {"a": ["1g.5gb"]}, "not a mapping"),
        ("a", {"a": [{**ENTRY, "gpus": "all"}]}, "gpus is not known"),
        ("a", {"a": [{**ENTRY, "mig-enabled": "yes"}]}, "mig-enabled is 'yes'"),
        ("a", {"a": [{**ENTRY, "mig-enabled": False}]}, "mig-enabled is false"),
        ("a", {"a": [{"devices": "all", "mig-enabled": True}]}, "no mig-devices"),
        ("a", {"a": [{**ENTRY, "devices": "0"}]}, "devices is '0'"),
        ("a", {"a": [{**ENTRY, "devices": [True]}]}, "devices is"),
        ("a", {"a": [{**ENTRY, "device-filter": 0x20B010DE}]}, "device-filter has"),
        ("a", {"a": [{**ENTRY, "mig-devices": {"1g": 1}}]}, "'1g' is not a MIG profile"),
        ("a", {"a": [{**ENTRY, "mig-devices": {"1g.5gb": "7"}}]}, "number of 1g.5gb is '7'"),
        ("a", {"a": [{**ENTRY, "mig-devices": {"1c.3g.20gb": 1}}]}, "part of a GPU instance"),
        ("all-1c.3g.20gb", {}, "part of a GPU instance"),
        ("a", [], "not a mapping"),
        ("a", {1: [ENTRY]}, "in quotes"),
    ],
)
def test_what_is_wrong_is_named(config, configs, words):
    with pytest.raises(InputError, match=f"(?s){words}"):
        read_config(config, configs)


def test_integers_of_ansible_are_integers():
    class Tagged(int):
        pass

    entry = {**ENTRY, "devices": [Tagged(0)], "mig-devices": {"1g.10gb": Tagged(7)}}
    assert read_config("a", {"a": [entry]}) == (Entry(True, {"1g.10gb": 7}, (0,)),)
