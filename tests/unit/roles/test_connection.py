# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The roles give the connection to the cluster as defaults of modules.

Ansible takes a default for a module before one for a group, and an inner one instead of an outer
one (ansible/executor/module_common.py, _get_action_arg_defaults). Given by the names of the
modules, no default of a play sends a module to another cluster or switches off TLS verification.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

ROLES = Path(__file__).parents[3] / "roles"
SPEAKERS = {
    "gpu_acceptance": {"kubegpu.nodes.gpu_node_maintenance"},
    "gpu_diagnose": {"kubegpu.nodes.gpu_cluster_info"},
    "gpu_monitoring": {"kubegpu.nodes.gpu_cluster_info"},
    "gpu_node_labels": {"kubegpu.nodes.node_gpu_label"},
    "gpu_upgrade": {"kubegpu.nodes.gpu_cluster_info", "kubegpu.nodes.gpu_node_maintenance"},
    "gpu_verify": {"kubegpu.nodes.gpu_cluster_info", "kubegpu.nodes.gpu_test_pods"},
    "nvidia_mig": {"kubegpu.nodes.gpu_cluster_info", "kubegpu.nodes.node_pause"},
    "gpu_device_plugin": {"kubegpu.nodes.gpu_cluster_info"},
    "gpu_kubernetes_objects": {"kubegpu.nodes.cluster_objects"},
    "nvidia_device_plugin": {"kubegpu.nodes.gpu_cluster_info", "kubernetes.core.helm"},
    "nvidia_dra_driver": {"kubegpu.nodes.gpu_cluster_info"},
}  # fmt: skip


def defaults_and_modules(tree):
    """Return all keys of module_defaults, and all modules that tasks name, however deep."""
    keys, modules = set(), set()
    for task in tree:
        keys |= set(task.get("module_defaults", {}))
        modules |= {key for key in task if key.count(".") == 2}
        for part in ("block", "rescue", "always"):
            inner = defaults_and_modules(task.get(part, []))
            keys, modules = keys | inner[0], modules | inner[1]
    return keys, modules


@pytest.mark.parametrize("role", SPEAKERS)
def test_the_connection_is_a_default_of_each_module_by_its_name(role):
    keys, modules = set(), set()
    for path in sorted((ROLES / role / "tasks").glob("*.yml")):
        found = defaults_and_modules(yaml.safe_load(path.read_text(encoding="utf-8")))
        keys, modules = keys | found[0], modules | found[1]
    others = {name for name in modules if name.startswith("kubernetes.")} - SPEAKERS[role]
    assert keys == SPEAKERS[role] and keys <= modules and not others


@pytest.mark.parametrize("role", SPEAKERS)
def test_the_connection_is_that_of_the_fleet(role):
    path = ROLES / role / "vars" / "main.yml"
    variables = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert variables[f"__{role}_kube"].startswith("{{ kubegpu_kube | default({}, true) | ")


@pytest.mark.parametrize(
    ("role", "module", "key"),
    [
        ("gpu_kubernetes_objects", "kubegpu.nodes.cluster_objects", "core"),
        ("nvidia_device_plugin", "kubernetes.core.helm", "helm"),
    ],
)
def test_modules_of_kubernetes_core_have_options_that_verify_tls(role, module, key):
    tasks = "".join(path.read_text() for path in (ROLES / role / "tasks").glob("*.yml"))
    given = [line.strip() for line in tasks.splitlines() if line.strip().startswith(f"{module}: ")]
    assert set(given) == {f'{module}: "{{{{ __{role}_kube.{key} }}}}"'}
