# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How containerd is probed, in all its distributions."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.distributions import (
    DISTRIBUTIONS,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.containerd import spellings
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.options import ProbeOptions
from tests.unit.fixtures.make_tree import write
from tests.unit.fixtures.probed_node import collector, crictl_info, facts, runtimes


def test_a_handler_is_asked_of_crictl_where_there_is_one(tmp_path):
    info = (
        '{"status": {"conditions": [{"type": "RuntimeReady", "status": true}]},'
        ' "config": {"containerd": {"runtimes": {"runc": {}}}}}'
    )
    probe, _run = collector(tmp_path, answers={"crictl": info}, since=True)
    runtime = runtimes(probe)["containerd"]
    assert (runtime.listed, runtime.source, runtime.containers) == (False, "crictl info", ())


def test_a_file_that_is_newer_than_the_daemon_says_nothing(tmp_path):
    probe, _run = collector(tmp_path, since=False)
    assert runtimes(probe)["containerd"].fault.code == "restart_required"
    for since in (True, None):
        probe, _run = collector(tmp_path, since=since)
        assert runtimes(probe)["containerd"].fault is None


def test_a_handler_that_is_in_the_file_only_waits_for_a_restart(tmp_path):
    answers = {"crictl": crictl_info("runc")}
    probe, _run = collector(tmp_path, answers=answers, since=False)
    fault = runtimes(probe)["containerd"].fault
    assert (fault.code, fault.evidence) == ("restart_required", "nvidia is in the file")
    # What is in no file, or in a file that containerd has read, needs more than a restart.
    gone = facts(runtimes__containerd__handlers={"runc": {}})
    assert runtimes(probe, gone)["containerd"].fault is None
    probe, _run = collector(tmp_path, answers=answers, since=True)
    assert runtimes(probe)["containerd"].fault is None


@pytest.mark.parametrize("path", ["/usr/bin/runc", None])
def test_a_handler_of_another_program_is_no_nvidia_handler(tmp_path, path):
    wrong = {"nvidia": {"type": "io.containerd.runc.v2", "path": path}}
    probe, run = collector(tmp_path)
    both = runtimes(probe, facts(runtimes__containerd__handlers=wrong))
    assert both["containerd"].fault.code == "wrong_program"
    assert not run.matching("runc-binary")


def test_a_program_of_ones_own_is_good(tmp_path):
    own = {"nvidia": {"type": "io.containerd.runc.v2", "path": "/opt/gpu/runtime"}}
    options = ProbeOptions(image="cuda:12", runtime_path="/opt/gpu/runtime")
    probe, run = collector(tmp_path, options)
    runtimes(probe, facts(runtimes__containerd__handlers=own))
    assert run.matching("--runc-binary /opt/gpu/runtime")


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda distribution: distribution.name)
def test_the_containerd_of_a_distribution_is_asked_where_it_is(tmp_path, distribution):
    root = tmp_path / "root"
    write(
        root,
        f"{distribution.markers[0]}"
        if distribution.name == "k0s"
        else f"{distribution.markers[0]}/x",
    )
    for program in distribution.programs[:1]:
        write(root, program)
    # What it writes when it starts is newer than that start.
    probe, run = collector(tmp_path, root=root, since=distribution.generated is None)
    only = facts(runtimes__containerd__distribution=distribution.name, runtimes__docker=None)
    runtime = runtimes(probe, only)["containerd"]
    assert (runtime.listed, runtime.fault) == (True, None)
    assert runtime.containers[0].result.ok
    (started,) = run.matching(" run --rm ")
    program = (
        distribution.programs[0]
        if distribution.ctr[0] == distribution.name
        else distribution.ctr[0]
    )
    ctr = " ".join((program, *distribution.ctr[1:]))
    assert started.startswith(f"{ctr} --address {distribution.socket} ")
    assert run.matching(f"^{distribution.crictl} --runtime-endpoint=unix://{distribution.socket} ")


def test_a_container_that_failed_has_its_commands_to_try(tmp_path):
    probe, _run = collector(tmp_path)
    (started,) = runtimes(probe, facts())["containerd"].containers
    ctr = "ctr --address /run/containerd/containerd.sock --namespace default"
    assert started.manual == (
        f"{ctr} image pull docker.io/library/ubuntu:24.04 && {ctr} run --rm --runc-binary "
        "/usr/bin/nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=all --env "
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility docker.io/library/ubuntu:24.04 gpu-test "
        "nvidia-smi -L"
    )


def test_a_socket_that_is_given_wins_over_the_distributions(tmp_path):
    root = tmp_path / "root"
    write(root, f"{DISTRIBUTIONS[1].markers[0]}/x")
    probe, run = collector(tmp_path, ProbeOptions(containerd_socket="/run/x.sock"), root=root)
    runtimes(probe, facts(runtimes__containerd__distribution="k3s"))
    assert run.matching("unix:///run/x.sock") and not run.matching("/run/k3s")


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("cuda", "docker.io/library/cuda:latest"),
        ("cuda:12", "docker.io/library/cuda:12"),
        ("nvidia/cuda:12", "docker.io/nvidia/cuda:12"),
        ("nvcr.io/nvidia/cuda", "nvcr.io/nvidia/cuda:latest"),
        ("localhost/own:1", "localhost/own:1"),
        ("registry:5000/own", "registry:5000/own:latest"),
        ("cuda@sha256:12", "docker.io/library/cuda@sha256:12"),
    ],
)
def test_names_of_images_in_full(image, full):
    assert spellings(image)[-1] == full
    assert spellings(image)[0] == image
