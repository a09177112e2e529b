# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each module fails in the same shape: cause, evidence, next step and code beside the message."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from tests.unit.module_process import run_module

PLUGINS = Path(__file__).parents[4] / "plugins"
# The function of each module that fails here, and the options that it needs.
FAILING = {
    "amd_cdi_specification": ("module_runner", {}),
    "cdi_specification": ("module_runner", {}),
    "container_toolkit_config": ("_run", {"settings": {}}),
    "containerd_runtime": ("module_runner", {}),
    "crio_runtime": ("module_runner", {}),
    "cuda_toolkit": ("_dependencies", {}),
    "docker_runtime": ("module_runner", {}),
    "gpu_cluster_info": ("read_expected", {}),
    "gpu_exporter": ("module_runner", {}),
    "gpu_host_maintenance": ("read_request", {"name": "a", "state": "cordoned", "run": "a"}),
    "gpu_node_acceptance": ("module_stream", {"step": "look"}),
    "gpu_node_facts": ("module_runner", {}),
    "gpu_node_health": ("module_stream", {}),
    "gpu_node_maintenance": ("read_request", {"nodes": {}, "state": "cordoned", "run": "a"}),
    "gpu_node_texts": ("module_stream", {}),
    "gpu_node_verify": ("module_runner", {}),
    "gpu_test_pods": ("read_expected", {}),
    "node_gpu_label": ("read_requests", {"nodes": {}}),
    "node_pause": ("read_requests", {"nodes": {}, "reason": "mig"}),
    "nvidia_driver": ("_read_context", {}),
    "nvidia_mig": ("module_runner", {}),
    "package_repository": ("_run", {"name": "nvidia", "state": "absent"}),
    "package_set": ("_run", {"name": "nvidia", "state": "absent"}),
    "prometheus_gpu_files": ("module_runner", {}),
    "runfile_download": ("_run", {"url": "https://example.com/a.run"}),
    "runtime_configuration": ("module_runner", {"name": "a", "state": "saved"}),
}
# Bundles, reports, tables, variables, reboots and modules of Ansible are actions.
NEVER_FAIL = {
    "cluster_objects",
    "fleet_bundle", "fleet_explain", "fleet_fail", "fleet_plan", "fleet_report", "fleet_table",
    "fleet_variables", "node_builtin", "node_reboot",
}  # fmt: skip


def load(name):
    return importlib.import_module(f"ansible_collections.kubegpu.nodes.plugins.modules.{name}")


def test_each_module_is_looked_at():
    assert {path.stem for path in (PLUGINS / "modules").glob("*.py")} == {*FAILING, *NEVER_FAIL}


@pytest.mark.parametrize("name", FAILING)
def test_an_error_comes_out_with_its_parts_and_without_secrets(monkeypatch, tmp_path, name):
    module = load(name)
    where, options = FAILING[name]
    if "state_path:" in module.DOCUMENTATION or "nodes.record\n" in module.DOCUMENTATION:
        options = {**options, "state_path": str(tmp_path / "state.json")}

    def fails(*_given, **_options):
        raise KubegpuError(
            "It is broken.",
            evidence="cannot use http://svc:hunter2@p:1",
            next_step="Fix it.",
            code="broken",
        )

    monkeypatch.setattr(module, where, fails)
    answer = run_module(module.main, options)
    assert answer["failed"]
    parts = {key: answer[key] for key in ("cause", "evidence", "next_step", "code")}
    assert parts == {
        "cause": "It is broken.",
        "evidence": "cannot use http://***@p:1",
        "next_step": "Fix it.",
        "code": "broken",
    }
    assert answer["msg"] == ("It is broken.\nSeen: cannot use http://***@p:1\nNext step: Fix it.")


def test_each_module_documents_the_parts_in_the_same_words():
    documented = {}
    for name in FAILING:
        values = yaml.safe_load(load(name).RETURN)
        text = {part: values[part] for part in ("cause", "evidence", "next_step")}
        documented.setdefault(str(text), []).append(name)
    assert len(documented) == 1, documented
