# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role gpu_verify takes from the requests of the roles before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_hosts import gpu_hosts
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.options import (
    OPTIONS,
    read_request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.resources import COUNTED

ROLE = Path(__file__).parents[3] / "roles" / "gpu_verify"


def value(name, **variables):
    """Return a variable of the role, where these are set."""
    loader = DataLoader()
    known = {}
    for folder in ("defaults", "vars"):
        path = str(ROLE / folder / "main.yml")
        known.update(loader.load_from_file(path, trusted_as_template=True))
    known.update(variables)
    templar = Templar(loader, variables=known)
    templar._engine.environment.filters["kubegpu.nodes.gpu_hosts"] = gpu_hosts
    return templar.template(trust_as_template("{{ " + name + " }}"))


@pytest.mark.parametrize(
    ("requests", "engines"),
    [
        ({}, []),
        ({"containerd": True}, ["containerd"]),
        ({"docker": "yes"}, ["docker"]),
        ({"containerd": True, "docker": True}, ["containerd", "docker"]),
        ({"crio": True}, ["crio"]),
    ],
)
def test_s11_a_default_is_looked_for_where_it_was_wished(requests, engines):
    variables = {
        f"nvidia_container_toolkit_{engine}_set_default": asked
        for engine, asked in requests.items()
    }
    assert value("__gpu_verify_require_default", **variables) == engines


@pytest.mark.parametrize("off", [False, "false"])
def test_a_runtime_that_is_left_alone_is_not_judged(off):
    every = ["containerd", "docker", "crio"]
    assert value("__gpu_verify_engines") == every
    for engine in every:
        rest = [name for name in every if name != engine]
        asked = {f"nvidia_container_toolkit_{engine}": off}
        assert value("__gpu_verify_engines", **asked) == rest


@pytest.mark.parametrize(
    ("asked", "taken"), [({}, "auto"), (False, "false"), ("false", "false"), (True, "true")]
)
def test_a_fabric_manager_that_is_left_alone_is_not_judged(asked, taken):
    variables = {} if asked == {} else {"nvidia_driver_fabric": asked}
    assert value("__gpu_verify_fabric", **variables) == taken


def test_the_pods_take_the_device_plugins_pull_secret_where_they_have_none():
    assert value("__gpu_verify_pull_secrets") == []
    plugin = {"nvidia_device_plugin_pods": {"pull_secret": "registry"}}
    assert value("__gpu_verify_pull_secrets", **plugin) == ["registry"]
    assert value("__gpu_verify_pull_secrets", gpu_verify_pull_secrets=["own"], **plugin) == ["own"]
    # A secret is its namespace's.
    elsewhere = {**plugin, "nvidia_device_plugin_namespace": "gpus"}
    assert value("__gpu_verify_pull_secrets", **elsewhere) == []


def test_what_the_plugin_was_told_is_what_its_configs_are_judged_by():
    """A config that repeats the driver's root was refused: the option was not known."""
    prefix = "nvidia_device_plugin_"
    told = {
        "nvidia_device_plugin_version": "v0.19.0",
        "nvidia_device_plugin_driver_root": "/run/nvidia/driver",
        "nvidia_device_plugin_mps_root": "/run/mps",
        "nvidia_device_plugin_feature_discovery": True,
        "nvidia_device_plugin_feature_discovery_api": True,
        "nvidia_device_plugin_configs": {
            "default": {"flags": {"nvidiaDriverRoot": "/run/nvidia/driver", "mpsRoot": "/run/mps",
                                  "useNodeFeatureAPI": True}},
        },
    }  # fmt: skip
    given = value("__gpu_verify_plugins", **told)
    own = {name.removeprefix(prefix): one for name, one in given.items() if prefix in name}
    assert {*own} - {"config"} == {*COUNTED["nvidia"]} <= {*OPTIONS}
    del own["config"]
    asked = read_request({**own, "runtime_class": ""})
    assert asked.release == (0, 19)
    assert asked.flags.driver_root == "/run/nvidia/driver"


@pytest.mark.parametrize(
    ("methods", "found"),
    [
        (["auto"], True),
        (["kubernetes"], True),
        (["packages"], False),
        (["textfile", "packages"], False),
        # Whatever the first host has.
        (["textfile", None], True),
        (["packages", "kubernetes"], True),
    ],
)
def test_an_exporter_of_the_cluster_is_looked_for_where_the_cluster_has_it(methods, found):
    hostvars = {
        f"h{number}": {"gpu_monitoring_method": method} if method else {}
        for number, method in enumerate(methods)
    }
    known = {
        "hostvars": hostvars, "ansible_play_batch": [*hostvars], "inventory_hostname": "h0",
    }  # fmt: skip
    assert value("__gpu_verify_metrics", gpu_monitoring_enabled=True, **known) is found
    assert value("__gpu_verify_metrics", **known) is False


@pytest.mark.parametrize("of_gpus", [True, False])
def test_hosts_with_gpus_decide_whether_an_exporter_is_looked_for(of_gpus):
    node = {"gpus": [{"vendor": "nvidia"}]}
    known = {
        "hostvars": {
            "cpu": {"ansible_facts": {"gpu_node": {"gpus": []}}},
            "gpu": {"ansible_facts": {"gpu_node": node}, "gpu_monitoring_enabled": of_gpus},
        },
        "ansible_play_batch": ["cpu", "gpu"],
    }
    for host, own in (("cpu", not of_gpus), ("gpu", of_gpus)):
        given = {**known, "inventory_hostname": host, "gpu_monitoring_enabled": own}
        assert value("__gpu_verify_metrics", **given) is of_gpus


@pytest.mark.parametrize(
    ("labels", "node", "stays"),
    [
        ({"kubegpu.nodes/gpu": "nvidia"}, "a", True),
        ({"nvidia.com/gpu.count": "2"}, "a", False),
        ({"kubegpu.nodes/gpu": "nvidia"}, None, False),
    ],
)
def test_a_label_of_somebody_else_keeps_the_device_plugin(labels, node, stays):
    cluster = {"nodes": {"a": {"name": "a", "labels": labels}}, "node_of": {"gpu1": node}}
    known = {"__gpu_verify_cluster": cluster, "inventory_hostname": "gpu1"}
    assert value("__gpu_verify_stays", **known) is stays
    assert value("__gpu_verify_own_node", **known) == (node or "")


@pytest.mark.parametrize(
    ("layers", "due", "marks", "open_"),
    [
        ([{"layer": "nvml", "ok": True}], True, True, False),
        ([{"layer": "nvml", "ok": True}], False, False, False),
        ([{"layer": "nvml", "ok": False}], False, True, True),
        # The API server did not answer: nobody knows what this node offers.
        ([{"layer": "allocatable", "ok": None, "code": "waits"}], True, False, True),
        ([], True, False, False),
    ],
)
def test_a_node_that_has_not_passed_keeps_its_mark(layers, due, marks, open_):
    rows = {"rows": [{"node": "gpu1", "layers": layers}]}
    variables = {
        "inventory_hostname": "gpu1",
        "gpu_verify_result": rows,
        "__gpu_verify_has_gpu": True,
        "__gpu_verify_due": due,
        "ansible_check_mode": False,
        "ansible_play_hosts_all": ["gpu1"],
    }
    assert value("__gpu_verify_not_passed", **variables) is open_
    assert value("__gpu_verify_marks", **variables) is marks
