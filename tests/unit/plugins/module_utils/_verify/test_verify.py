# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verification as the module runs it."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vgpu_licence import (
    read_licence,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import Hang
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify import collect, verify
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import NODE_LAYERS
from tests.unit.fixtures.node_facts import P4
from tests.unit.fixtures.probed_node import collector, facts


@pytest.mark.parametrize(("check", "started"), [(True, 0), (False, 1)])
def test_check_mode_starts_no_container(tmp_path, monkeypatch, check, started):
    probe, run = collector(tmp_path)
    monkeypatch.setattr(verify, "gather", lambda *_a, **_k: facts(runtimes__docker=None))
    params = {
        "containerd_config_path": "/c", "docker_config_path": "/d", "gpus": None,
        "driver_version": "", "cdi": False, "require_default": [], "layers": list(NODE_LAYERS),
        **{name: getattr(probe.options, name) for name in (
            "container", "engines", "runtime_path", "image", "pull", "command", "expect",
            "devices", "timeout", "image_timeout", "fabric", "fabric_timeout",
            "licence_timeout", "containerd_socket",
        )},
        "name": "nvidia", "image_archive": None, "metrics": False, "driver_timeout": 60,
        "driver_hang": None,
    }  # fmt: skip
    result = verify.verify_node(params, probe.dependencies, check)
    assert [one["layer"] for one in result["layers"]][-1] == "runtime"
    assert len(run.matching("^ctr .* run ")) == started
    assert not (tmp_path / "verify").exists()


HANG = {"program": "nvidia-smi", "pid": 4242, "seconds": 7.0, "state": "D", "wchan": "rm_ioctl",
        "left": True}  # fmt: skip


def test_a_driver_that_hangs_is_asked_once_by_all_together(tmp_path, monkeypatch):
    """Its facts are read anew: with the hang of facts that were read before, it is not asked."""
    seen = {}

    def gather(*_args, **options):
        seen.update(options)
        return facts(runtimes__docker=None, nvml=None, driver_hang=HANG)

    probe, run = collector(tmp_path)
    monkeypatch.setattr(verify, "gather", gather)
    params = {
        "containerd_config_path": "/c", "docker_config_path": "/d", "gpus": None,
        "driver_version": "", "cdi": False, "require_default": [], "layers": list(NODE_LAYERS),
        **{name: getattr(probe.options, name) for name in (
            "container", "engines", "runtime_path", "image", "pull", "command", "expect",
            "devices", "timeout", "image_timeout", "fabric", "fabric_timeout",
            "licence_timeout", "containerd_socket",
        )},
        "name": "nvidia", "image_archive": None, "metrics": False, "driver_timeout": 7,
        "driver_hang": HANG,
    }  # fmt: skip
    result = verify.verify_node(params, probe.dependencies, False)
    assert seen["hang"] == Hang(**HANG) and seen["driver_seconds"] == 7
    (layer,) = (one for one in result["layers"] if one["layer"] == "nvml")
    assert (layer["ok"], layer["code"]) == (False, "driver_hangs")
    assert "pid 4242" in layer["evidence"] and "rm_ioctl" in layer["evidence"]
    assert run.matching("nvidia-smi|nvidia-container-cli|^ctr .* run ") == []


def test_a_driver_that_hangs_while_its_fabric_is_waited_for_is_reported(tmp_path, monkeypatch):
    """It has answered before, so that the facts have NVML's data and no hang."""
    device = {"fabric": {"state": "in_progress", "status": None}}
    nvml = {"driver_version": "535.104.05", "cuda_version": "12.2", "devices": [device]}
    found = facts(runtimes__docker=None, nvml=nvml, driver_hang=None)
    probe, run = collector(tmp_path)
    asked = []

    def read_nvml(_reader, _gpus, seconds):
        asked.append(seconds)
        return None, "no answer", Hang(**HANG)

    monkeypatch.setattr(collect, "read_nvml", read_nvml)
    monkeypatch.setattr(collect.time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(verify, "gather", lambda *_args, **_options: found)
    params = {
        "containerd_config_path": "/c", "docker_config_path": "/d", "gpus": None,
        "driver_version": "", "cdi": False, "require_default": [], "layers": list(NODE_LAYERS),
        **{name: getattr(probe.options, name) for name in (
            "container", "engines", "runtime_path", "image", "pull", "command", "expect",
            "devices", "timeout", "image_timeout", "fabric", "fabric_timeout",
            "licence_timeout", "containerd_socket",
        )},
        "name": "nvidia", "image_archive": None, "metrics": False, "driver_timeout": 7,
        "driver_hang": None,
    }  # fmt: skip
    result = verify.verify_node(params, probe.dependencies, False)
    (layer,) = (one for one in result["layers"] if one["layer"] == "nvml")
    assert (layer["ok"], layer["code"]) == (False, "driver_hangs") and asked == [7]
    assert result["ansible_facts"]["gpu_node"]["driver_hang"] == HANG
    assert run.matching("nvidia-smi|nvidia-container-cli|^ctr .* run ") == []


def test_licences_are_waited_for_and_the_facts_read_once_more(tmp_path, monkeypatch):
    """After a boot a guest has its licence some seconds later."""
    status = ["Unlicensed (Unrestricted)"]

    def gather(*_args, **_options):
        licence = read_licence("VGPU", None, status[0])
        gpu = {**P4, "vgpu": {**P4["vgpu"], "guest": True, "licence": licence}}
        read.append(licence["state"])
        return facts(runtimes__docker=None, gpus=[gpu])

    def read_nvml(_reader, _gpus, seconds):
        asked.append(seconds)
        if len(asked) == 3:
            status[0] = "Licensed"
        device = {"address": "a", "licence": read_licence("VGPU", None, status[0])}
        return {"devices": [device]}, "", None

    read, asked = [], []
    probe, _run = collector(tmp_path)
    monkeypatch.setattr(collect, "read_nvml", read_nvml)
    monkeypatch.setattr(collect.time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(verify, "gather", gather)
    params = {
        "containerd_config_path": "/c", "docker_config_path": "/d", "gpus": None,
        "driver_version": "", "cdi": False, "require_default": [], "layers": ["nvml"],
        **{name: getattr(probe.options, name) for name in (
            "container", "engines", "runtime_path", "image", "pull", "command", "expect",
            "devices", "timeout", "image_timeout", "fabric", "fabric_timeout",
            "licence_timeout", "containerd_socket",
        )},
        "name": "nvidia", "image_archive": None, "metrics": False, "driver_timeout": 7,
        "driver_hang": None,
    }  # fmt: skip
    result = verify.verify_node(params, probe.dependencies, False)
    assert read == ["grace", "licensed"] and asked == [7, 7, 7]
    (gpu,) = result["ansible_facts"]["gpu_node"]["gpus"]
    assert gpu["vgpu"]["licence"]["state"] == "licensed"
    # One that has it is not waited for.
    verify.verify_node(params, probe.dependencies, False)
    assert read[2:] == ["licensed"] and len(asked) == 3
    # Nor is anything where the layer is not judged.
    status[0] = "Unlicensed"
    verify.verify_node({**params, "layers": ["pci"]}, probe.dependencies, False)
    assert len(asked) == 3
