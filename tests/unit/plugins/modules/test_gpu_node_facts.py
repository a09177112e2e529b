# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as a program: what Ansible starts on a node, with its arguments on standard input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.doc_fragments.record import ModuleDocFragment
from ansible_collections.kubegpu.nodes.plugins.modules import gpu_node_facts
from tests.unit.fixtures.machines import MACHINES
from tests.unit.fixtures.make_tree import make_machine, write
from tests.unit.module_process import run_module as run_here

CHECKOUT = Path(gpu_node_facts.__file__).resolve().parents[2]


def run_module(
    tmp_path: Path, check: bool = False, fails: bool = False, **options: Any
) -> dict[str, Any]:
    """Run main() in a process of its own and return what it printed."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import tests.conftest\n"
        "from ansible.module_utils import basic\n"
        "basic._ANSIBLE_ARGS = sys.argv[2].encode(); basic._ANSIBLE_PROFILE = 'legacy'\n"
        "from ansible_collections.kubegpu.nodes.plugins.modules import gpu_node_facts\n"
        "gpu_node_facts.main()\n"
    )
    arguments = json.dumps({"ANSIBLE_MODULE_ARGS": {**options, "_ansible_check_mode": check}})
    done = subprocess.run(
        [sys.executable, "-c", script, str(CHECKOUT), arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == (1 if fails else 0), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("check", [False, True])
def test_facts_of_a_tree(tmp_path: Path, check: bool) -> None:
    root = make_machine(tmp_path / "p4", MACHINES["p4"])
    before = sorted(root.rglob("*"))
    answer = run_module(tmp_path, check, root=str(root))
    assert answer["changed"] is False
    node = answer["ansible_facts"]["gpu_node"]
    assert [gpu["product"] for gpu in node["gpus"]] == ["Tesla P4"]
    assert node["os"]["id"] == "debian"
    assert sorted(root.rglob("*")) == before


def test_paths_are_options(tmp_path: Path) -> None:
    root = make_machine(tmp_path / "none", MACHINES["none"])
    write(root, "/usr/bin/containerd")
    write(root, "/usr/bin/dockerd")
    write(root, "/opt/c.toml", "version = 3\n")
    write(root, "/opt/d.json", '{"default-runtime": "x"}')
    answer = run_module(
        tmp_path,
        root=str(root),
        containerd_config_path="/opt/c.toml",
        docker_config_path="/opt/d.json",
    )
    runtimes = answer["ansible_facts"]["gpu_node"]["runtimes"]
    assert runtimes["containerd"]["config_version"] == 3
    assert runtimes["containerd"]["config_path"] == "/opt/c.toml"
    assert runtimes["docker"]["default_runtime"] == "x"


def test_this_machine(tmp_path: Path) -> None:
    node = run_module(tmp_path)["ansible_facts"]["gpu_node"]
    assert node["os"]["kernel"] == os.uname().release
    assert node["python"]["version"] == ".".join(str(part) for part in sys.version_info[:3])


def returned() -> dict[str, Any]:
    contains: dict[str, Any] = yaml.safe_load(gpu_node_facts.RETURN)["ansible_facts"]["contains"]
    fact: dict[str, Any] = contains["gpu_node"]["contains"]
    return fact


def test_documentation_names_every_key(tmp_path: Path) -> None:
    root = make_machine(tmp_path / "p4", MACHINES["p4"])
    node = run_module(tmp_path, root=str(root))["ansible_facts"]["gpu_node"]
    documented = returned()
    assert list(documented) == list(node)
    for name in ("os", "python", "driver", "nouveau", "cuda", "container_toolkit"):
        assert set(documented[name]["sample"]) == set(node[name])
    assert set(documented["gpus"]["sample"][0]) == set(node["gpus"][0])


def test_options_are_documented_as_they_are() -> None:
    texts = (gpu_node_facts.DOCUMENTATION, ModuleDocFragment.DOCUMENTATION)
    options = {name: one for text in texts for name, one in yaml.safe_load(text)["options"].items()}
    assert {name: (option["type"], option["default"]) for name, option in options.items()} == {
        "root": ("path", "/"),
        "containerd_config_path": ("path", "/etc/containerd/config.toml"),
        "docker_config_path": ("path", "/etc/docker/daemon.json"),
        "driver_timeout": ("int", 60),
        "state_path": ("path", "/var/lib/kubegpu/state.json"),
    }


def test_a_wrong_time_limit_is_refused_before_the_node_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_node_facts, "gather", lambda *_args, **_options: 1 / 0)
    answer = run_here(gpu_node_facts.main, {"driver_timeout": 0})
    assert answer["failed"] and "driver_timeout" in answer["cause"] and answer["next_step"]


def test_a_signal_ends_it_with_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """By this exception, what was started (nvidia-smi in a process group of its own) is ended."""
    monkeypatch.setattr(
        gpu_node_facts, "gather", lambda *_args, **_options: signal.raise_signal(signal.SIGTERM)
    )
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        answer = run_here(gpu_node_facts.main, {})
    finally:
        signal.signal(signal.SIGINT, interrupt)
    assert answer["failed"] and "SIGTERM" in answer["cause"]


def test_a_root_that_does_not_exist_is_refused(tmp_path):
    answer = run_module(tmp_path, fails=True, root=str(tmp_path / "nowhere"))
    assert answer["failed"] and f"{tmp_path}/nowhere does not exist" in answer["msg"]
    assert answer["next_step"] and "ansible_facts" not in answer
