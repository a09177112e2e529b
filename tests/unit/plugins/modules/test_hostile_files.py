# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configuration files that are none: each module says so at once, and holds no lock meanwhile."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.modules import (
    container_toolkit_config,
    containerd_runtime,
    crio_runtime,
    docker_runtime,
)
from tests.unit.module_process import run_module

MODULES = {
    "docker": (docker_runtime, {"runtime_path": "/bin/true", "docker_version": "28.5.2"}),
    "containerd": (
        containerd_runtime,
        {
            "containerd_version": "1.7.24",
            "distribution": "containerd",
            "validate": False,
            "unit": "kubegpu-test-no-such-unit",
            "containerd_path": "/no/such/containerd",
        },
    ),
    "crio": (crio_runtime, {"runtime_path": "/bin/true", "unit": "kubegpu-test-no-such-unit"}),
    "toolkit": (container_toolkit_config, {"settings": {"debug": "/x"}}),
}


@pytest.fixture(params=MODULES)
def module(request, tmp_path, monkeypatch):
    """Return the path of its file, and what runs it."""
    module, options = MODULES[request.param]
    if request.param == "docker":
        monkeypatch.setattr(
            module, "module_runner", lambda _module: lambda *_given, **_more: Result(0, "", "")
        )
        monkeypatch.setattr(module, "read_info", lambda _path: None)
    path = tmp_path / "etc" / "config"
    path.parent.mkdir()
    given = {"config_path": str(path), "state_path": str(tmp_path / "state.json"), **options}
    if request.param in ("containerd", "crio"):
        given["drop_in_path"] = str(tmp_path / "drop-in" / "99-nvidia.toml")

    def run(check):
        return run_module(module.main, given, check=check)

    return path, run


def refused(module, *words):
    path, run = module
    for check in (True, False):
        answer = run(check)
        assert answer["failed"], answer
        assert str(path) in answer["msg"] and "Next step: " in answer["msg"]
        for word in words:
            assert word in answer["msg"]
        assert "Traceback" not in json.dumps(answer) and len(answer["msg"]) < 1000
    assert os.listdir(path.parent) == ["config"]
    assert os.listdir(path.parent.parent) == ["etc"]


def test_a_pipe_is_not_waited_for(module):
    os.mkfifo(module[0])
    refused(module, "not a file")


def test_a_device_is_not_read_without_end(module):
    module[0].symlink_to("/dev/zero")
    refused(module, "not a file")


def test_a_file_without_measure_is_not_read(module):
    module[0].touch()
    os.truncate(module[0], (16 << 20) + 1)
    refused(module, "16 MiB")


@pytest.mark.parametrize("module", ["containerd", "crio", "toolkit"], indirect=True)
@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000 + "]" * 100_000,
        "a = " + "{a=" * 50_000 + "1" + "}" * 50_000,
        # These are read without recursion, and compared with it.
        "a." * 400 + "a = 1",
        "[" + "a." * 400 + "a]\nb = 1",
        "a = " + "[" * 250 + "]" * 250,
    ],
    ids=["arrays", "inline", "dotted", "header", "250"],
)
def test_toml_that_is_nested_without_end(module, text):
    module[0].write_text(text)
    refused(module)


@pytest.mark.parametrize("module", ["docker"], indirect=True)
@pytest.mark.parametrize(
    "text", ['{"a":' * 100_000 + "1" + "}" * 100_000, "[" * 100_000], ids=["objects", "lists"]
)
def test_json_that_is_nested_without_end(module, text):
    module[0].write_text(text)
    refused(module)
