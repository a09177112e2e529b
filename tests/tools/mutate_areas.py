# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which pure code ``make mutate`` changes, and which unit tests have to see it."""

from __future__ import annotations

SOURCES = "plugins/module_utils"
TESTS = "tests/unit/plugins/module_utils"

# By area and source file (without .py): the unit tests that know of it. ``_x`` stands for
# TESTS/test__x.py, anything else is a path below tests/unit. The order does not matter: those that
# take the least time run first.
AREAS: dict[str, dict[str, str]] = {
    "editors": {
        "_toml": "_toml _toml_reader _containerd _containerd_config",
        "_toml_reader": "_toml_reader _toml _containerd_config",
        "_json_text": "_json_text _docker",
        "_containerd": "_containerd _containerd_way _containerd_flavours _containerd_undo "
        "_editor_guards plugins/modules/test_containerd_runtime.py",
        "_containerd_config": "_containerd_config _containerd _containerd_way",
        "_containerd_undo": "_containerd_undo _editor_guards "
        "plugins/modules/test_containerd_runtime.py",
        "_docker": "_docker _editor_guards plugins/modules/test_docker_runtime.py",
        "_crio": "_crio_facts plugins/modules/test_crio_runtime.py",
        "_redact": "_redact _repository _toml _json_text",
    },
    "decisions": {
        "_driver": "_driver _driver_table _driver_flow _driver_node",
        "_driver_branches": "_driver _driver_table _driver_data _node_plan",
        "_driver_choice": "_driver _driver_table _driver_fabric _node_plan",
        "_driver_packages": "_driver_packages _driver _driver_table _driver_fabric",
        "_driver_target": "_driver _driver_table _driver_fabric _driver_flow",
        "_cuda_plan": "_cuda_plan _cuda _cuda_flow _distributions",
        "_node_plan": "_node_plan _fleet _table",
    },
    "packages": {
        "_package_set": "_package_set _dpkg _rpm _trust_guards plugins/modules/test_package_set.py",
        "_packages": "_packages _driver_packages _driver",
        "_package_match": "_packages _package_set _driver_packages _driver",
        "_package_words": "_package_set _dnf _zypper _dpkg plugins/modules/test_package_set.py",
        "_apt": "_package_set _dpkg plugins/modules/test_package_set.py",
        "_dnf": "_dnf _dnf_modules plugins/modules/test_package_set.py",
        "_dpkg": "_dpkg _package_set _packages plugins/modules/test_package_set.py",
        "_rpm": "_rpm _package_set _dnf _zypper plugins/modules/test_package_set.py",
        "_zypper": "_zypper plugins/modules/test_package_set.py",
        "_module_streams": "_module_streams _dnf_modules _dnf _driver",
        "_cuda_packages": "_cuda _cuda_plan _cuda_flow",
    },
    "records": {
        "_acl": "_acl _files",
        "_record": "_record _state",
        "_settled": "_settled _containerd_undo plugins/modules/test_docker_runtime.py "
        "plugins/modules/test_containerd_runtime.py",
        "_state": "_state _record",
    },
    "labels": {
        "_labels": "_labels _label_flow",
        "_node_match": "_node_match _label_flow",
        "_label_flow": "_label_flow _labels",
        "_node_labels": "_node_labels _labels plugins/filter/test_gpu_node_labels.py",
    },
    "manifests": {
        "_cluster_dra": "_cluster_dra _test_pod_flow",
        "_cluster_parts": "_cluster_parts _cluster_causes _cluster_flow _cluster",
        "_device_plugin_config": "_device_plugin_config _device_plugin_plan _device_plugin "
        "plugins/filter/test_device_plugin_filters.py",
        "_device_plugin_plan": "_device_plugin_plan plugins/filter/test_device_plugin_filters.py",
        "_device_plugin_wish": "_device_plugin_plan _device_plugin _device_plugin_config",
        "_gpu_resources": "_gpu_resources _device_plugin _device_plugin_plan",
        "_plugin_objects": "_plugin_objects _device_plugin_plan",
        "_test_pod": "_test_pod _test_pod_flow",
    },
    "verification": {
        "_verify": "_verify _verify_fabric _verify_flow",
        "_verify_fabric": "_verify_fabric _verify",
        "_verify_flow": "_verify_flow _verify_fabric plugins/modules/test_gpu_node_verify.py",
        "_verify_rows": "_verify_rows plugins/filter/test_verify_filters.py",
    },
    "keys": {
        "_openpgp": "_openpgp _rpm_keyring _repository",
        "_rpm_keyring": "_rpm_keyring _repository_rpm",
        "_repository": "_repository _repository_rpm _trust_guards "
        "plugins/modules/test_nvidia_repository.py",
        "_repository_apt": "_repository plugins/modules/test_nvidia_repository.py",
        "_repository_rpm": "_repository_rpm plugins/modules/test_nvidia_repository.py",
    },
}


def source(name: str) -> str:
    """Return the path of a source file in the checkout."""
    return f"{SOURCES}/{name}.py"


def unit_tests(words: str) -> list[str]:
    """Return the paths of the tests that a line of the table names."""
    return [
        f"{TESTS}/test_{word}.py" if word.startswith("_") else f"tests/unit/{word}"
        for word in words.split()
    ]
