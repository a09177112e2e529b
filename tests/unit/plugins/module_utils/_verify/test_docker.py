# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How Docker is probed."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.collect import (
    cleaned,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.options import ProbeOptions
from tests.unit.fixtures.probed_node import collector, facts, runtimes


def test_an_old_docker_is_not_asked_for_gpus(tmp_path):
    probe, run = collector(tmp_path)
    runtimes(probe, facts(runtimes__docker__version="18.09.9"))
    assert run.matching("docker run") and not run.matching("--gpus")


def test_a_container_that_failed_has_its_command_to_try(tmp_path):
    probe, _run = collector(tmp_path)
    by_runtime, by_flag = runtimes(probe, facts())["docker"].containers
    assert by_runtime.manual == (
        "docker run --rm --runtime nvidia --env NVIDIA_VISIBLE_DEVICES=all ubuntu:24.04 "
        "nvidia-smi -L"
    )
    assert by_flag.manual == "docker run --rm --gpus all ubuntu:24.04 nvidia-smi -L"


WAITS = Finding("docker_restart_required", "A restart is pending.", "--gpus needs it", "Do it.")


@pytest.mark.parametrize("container", [True, False])
def test_a_restart_that_is_pending_is_the_fault_where_no_container_shows_it(tmp_path, container):
    options = ProbeOptions(image="cuda:12", container=container)
    probe, run = collector(tmp_path, options, pending=WAITS)
    state = runtimes(probe, facts())["docker"]
    assert state.pending == WAITS
    assert (state.fault is None) is bool(run.matching("docker run")) is container
    probe, _run = collector(tmp_path, options)
    assert runtimes(probe, facts())["docker"].fault is None


def test_a_check_that_starts_no_container_has_it_too(tmp_path):
    probe, run = collector(tmp_path, pending=WAITS, check=True)
    assert runtimes(probe, facts())["docker"].fault == WAITS and not run.matching("docker run")


def test_a_program_that_is_not_nvidias_comes_first(tmp_path):
    probe, _run = collector(tmp_path, pending=WAITS)
    wrong = facts(runtimes__docker__runtimes={"nvidia": {"path": "runc"}})
    assert runtimes(probe, wrong)["docker"].fault.code == "wrong_program"


def test_what_docker_was_given_goes_too(tmp_path):
    """By its label and its name, and by the notes of what was pulled or loaded."""
    (tmp_path / "root/run").mkdir(parents=True)
    (tmp_path / "root/run/docker.pid").write_text("1\n")
    answers = {"docker ps": "0123\n", "docker images": "4567\n4567\n"}
    probe, run = collector(tmp_path, answers=answers, root=tmp_path / "root")
    with cleaned(probe):
        probe.dependencies.root.record("other:1")
        run.asked.clear()
    (asked,) = run.matching("docker ps")
    assert "--all" in asked and "label=kubegpu.nodes=verify" in asked
    assert run.matching("^docker rm") == [
        "docker rm --force --volumes 0123",
        "docker rmi --force 4567",
        "docker rmi other:1",
    ]
    assert not probe.dependencies.root.exists()


def test_a_root_that_docker_does_not_take_is_told(tmp_path, monkeypatch):
    probe, run = collector(
        tmp_path, ProbeOptions(), {"docker import": Result(1, "", "no space left")}
    )
    monkeypatch.setattr(probe.dependencies.root, "copy", lambda paths: None)
    monkeypatch.setattr(probe.dependencies.root, "pack", lambda name: f"/x/{name}")
    monkeypatch.setattr(probe.dependencies.reader, "exists", lambda path: True)
    with pytest.raises(KubegpuError, match="did not import the root file system"):
        runtimes(probe, facts(runtimes__containerd=None))
    assert not run.matching("docker run")
