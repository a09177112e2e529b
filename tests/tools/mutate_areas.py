# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which pure code ``make mutate`` changes, and which unit tests have to see it."""

from __future__ import annotations

# By area and source file: the unit tests that know of it. ``_x/y`` is plugins/module_utils/_x/y.py,
# and as a test tests/unit/plugins/module_utils/_x/test_y.py; a name that ends with .py is a path
# below tests/unit. The order does not matter: those that take the least time run first.
AREAS: dict[str, dict[str, str]] = {
    "editors": {
        "_formats/toml_scan": "_formats/toml_edit _formats/toml_redact _formats/toml_read "
        "_containerd/plan _containerd/config",
        "_formats/toml_edit": "_formats/toml_edit _formats/toml_redact _formats/toml_read "
        "_containerd/plan _containerd/config",
        "_formats/toml_redact": "_formats/toml_redact _core/redact",
        "_formats/toml_read": "_formats/toml_read _formats/toml_edit _containerd/config",
        "_containerd/types": "_containerd/types _containerd/plan _containerd/placement",
        "_containerd/values": "_containerd/plan _containerd/undo _containerd/record "
        "_containerd/edit",
        "_containerd/edit": "_containerd/edit _containerd/plan _containerd/undo",
        "_containerd/handler": "_containerd/plan _containerd/undo _containerd/edit",
        "_containerd/plan": "_containerd/plan _containerd/placement _containerd/distributions "
        "_containerd/undo _containerd/edit _containerd/record _containerd/apply "
        "plugins/modules/test_containerd_runtime.py",
        "_containerd/verify": "_containerd/verify _containerd/placement _containerd/apply",
        "_containerd/config": "_containerd/config _containerd/plan _containerd/placement",
        "_containerd/line_merge": "_containerd/line_merge _containerd/undo _containerd/record",
        "_containerd/record": "_containerd/record _containerd/undo _containerd/apply "
        "plugins/modules/test_containerd_runtime.py",
        "_containerd/undo": "_containerd/undo _containerd/edit _containerd/apply "
        "plugins/modules/test_containerd_runtime.py",
        "_formats/json_edit": "_formats/json_edit _docker/config",
        "_docker/config": "_docker/config _docker/daemon _runtime/editor_guards "
        "plugins/modules/test_docker_runtime.py",
        "_docker/edit": "_docker/config _runtime/editor_guards "
        "plugins/modules/test_docker_runtime.py",
        "_docker/daemon": "_docker/daemon plugins/modules/test_docker_runtime.py",
        "_docker/flags": "_docker/flags plugins/modules/test_docker_runtime.py",
        "_crio/plan": "_crio/facts plugins/modules/test_crio_runtime.py",
        "_core/redact": "_core/redact _formats/toml_edit _formats/json_edit",
        "_core/redact_lines": "_core/redact _formats/toml_redact",
    },
    "decisions": {
        "_driver/plan/plan": "_driver/plan/plan _driver/decision_table "
        "_driver/apply/package_calls _driver/apply/loading",
        "_driver/plan/plan_keep": "_driver/plan/plan _driver/decision_table _driver/plan/fabric",
        "_driver/plan/plan_change": "_driver/plan/plan _driver/decision_table "
        "_driver/apply/package_calls",
        "_driver/plan/configuration": "_driver/plan/plan _driver/plan/config_texts",
        "_driver/plan/secure_boot": "_driver/plan/plan _driver/decision_table",
        "_driver/plan/gpu_support": "_driver/plan/plan _driver/decision_table "
        "_nvidia/driver_branches plugin_utils/_report/nodes",
        "_driver/plan/select": "_driver/plan/plan _driver/decision_table _driver/plan/fabric "
        "plugin_utils/_report/nodes",
        "_driver/plan/packages": "_driver/plan/packages _driver/plan/plan _driver/decision_table "
        "_driver/plan/fabric",
        "_driver/plan/decide": "_driver/plan/plan _driver/decision_table _driver/plan/fabric "
        "_driver/record",
        "_cuda/plan": "_cuda/plan _nvidia/compatibility _distro/data",
        "plugin_utils/_report/nodes": "plugin_utils/_report/nodes plugin_utils/_hosts "
        "plugin_utils/_report/table",
    },
    "packages": {
        "_packages/plan": "_packages/plan _packages/apt _packages/rpm _packages/trust_guards "
        "plugins/modules/test_package_set.py",
        "_packages/record": "_packages/record _packages/plan _packages/trust_guards "
        "plugins/modules/test_package_set.py",
        "_packages/installed": "_packages/installed",
        "_nvidia/package_names": "_nvidia/package_names _driver/plan/packages _driver/plan/plan",
        "_packages/types": "_packages/types _packages/plan _packages/record _packages/streams "
        "_driver/plan/packages _driver/plan/plan",
        "_packages/failures": "_packages/failures _packages/dnf _packages/zypper _packages/apt "
        "plugins/modules/test_package_set.py",
        "_packages/obstacles": "_packages/obstacles",
        "_packages/apt": "_packages/apt _packages/plan _packages/installed "
        "plugins/modules/test_package_set.py",
        "_packages/dnf": "_packages/dnf _packages/streams plugins/modules/test_package_set.py",
        "_packages/rpm": "_packages/rpm _packages/plan _packages/dnf _packages/zypper "
        "plugins/modules/test_package_set.py",
        "_packages/zypper": "_packages/zypper plugins/modules/test_package_set.py",
        "_packages/streams": "_packages/streams _packages/dnf _driver/plan/plan",
        "_cuda/packages": "_nvidia/compatibility _cuda/plan",
    },
    "records": {
        "_host/acl": "_host/acl _host/files",
        "_record/file_record": "_record/file_record _record/store",
        "_record/converged": "_record/converged _containerd/undo "
        "plugins/modules/test_docker_runtime.py plugins/modules/test_containerd_runtime.py",
        "_record/store": "_record/store _record/file_record",
    },
    "labels": {
        "_labels/plan": "_labels/plan _labels/apply",
        "_labels/node": "_labels/plan _labels/apply",
        "_labels/options": "_labels/options _labels/plan _labels/apply",
        "_labels/match_hosts": "_labels/match_hosts _labels/apply",
        "_labels/apply": "_labels/apply _labels/plan",
        "_labels/names": "_labels/names _labels/options",
        "_labels/desired": "_labels/desired _labels/plan plugins/filter/test_gpu_node_labels.py",
    },
    "manifests": {
        "_cluster/dra": "_cluster/dra _test_pods/apply",
        "_cluster/workloads": "_cluster/workloads _cluster/causes _cluster/wait "
        "_cluster/allocation",
        "_device_plugin/config": "_device_plugin/config _device_plugin/plan "
        "_device_plugin/manifests plugins/filter/test_device_plugin_filters.py",
        "_device_plugin/plan": "_device_plugin/plan plugins/filter/test_device_plugin_filters.py",
        "_device_plugin/types": "_device_plugin/plan _device_plugin/manifests",
        "_device_plugin/options": "_device_plugin/plan _device_plugin/manifests "
        "_device_plugin/config",
        "_kube/quantity": "_kube/quantity",
        "_kube/gpu_requests": "_kube/gpu_requests _device_plugin/manifests _device_plugin/plan",
        "_device_plugin/installed": "_device_plugin/installed _device_plugin/plan",
        "_test_pods/plan": "_test_pods/plan _test_pods/apply",
    },
    "verification": {
        "_verify/judge": "_verify/judge _verify/judge_runtime _verify/fabric",
        "_verify/judge_runtime": "_verify/judge_runtime _verify/judge",
        "_verify/evidence": "_verify/judge _verify/judge_runtime",
        "_verify/fabric": "_verify/fabric _verify/judge",
        "_verify/collect": "_verify/collect _verify/fabric plugins/modules/test_gpu_node_verify.py",
        "_verify/containers": "_verify/containers _verify/containerd _verify/docker _verify/crio "
        "_verify/collect",
        "_verify/containerd": "_verify/containerd _verify/containers _verify/collect",
        "_verify/docker": "_verify/docker _verify/containers _verify/collect",
        "_verify/crio": "_verify/crio",
        "_verify/options": "_verify/verify plugins/modules/test_gpu_node_verify.py",
        "plugin_utils/_report/verification": "plugin_utils/_report/verification "
        "plugins/filter/test_verify_filters.py",
    },
    "keys": {
        "_formats/openpgp": "_formats/openpgp _repository/rpm_keyring _packages/trust_guards",
        "_repository/rpm_keyring": "_repository/rpm_keyring _repository/rpm",
        "_repository/plan": "_repository/apt _repository/rpm _packages/trust_guards "
        "plugins/modules/test_package_repository.py",
        "_repository/addresses": "_repository/addresses _repository/apt _repository/rpm",
        "_repository/comments": "_repository/apt _repository/rpm",
        "_repository/apt": "_repository/apt plugins/modules/test_package_repository.py",
        "_repository/rpm": "_repository/rpm plugins/modules/test_package_repository.py",
    },
}


def source(name: str) -> str:
    """Return the path of a source file in the checkout."""
    return f"plugins/{_below_plugins(name)}.py"


def unit_tests(words: str) -> list[str]:
    """Return the paths of the tests that a line of the table names."""
    return [_unit_test(word) for word in words.split()]


def _unit_test(word: str) -> str:
    if word.endswith(".py"):
        return f"tests/unit/{word}"
    folder, _slash, name = _below_plugins(word).rpartition("/")
    return f"tests/unit/plugins/{folder}/test_{name}.py"


def _below_plugins(name: str) -> str:
    return name if name.startswith("plugin_utils/") else f"module_utils/{name}"
