# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Test containers in containerd and Docker: image, command, root file system, removal."""

from __future__ import annotations

import re

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import TIMED_OUT, Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.options import ProbeOptions
from tests.unit.fixtures.probed_node import collector, facts, runtimes


def test_ctr_and_docker_are_called_as_they_have_to_be(tmp_path):
    probe, run = collector(tmp_path, ProbeOptions(image="cuda:12", devices=("all", "0,1")))
    both = runtimes(probe)
    assert [len(both[name].containers) for name in ("containerd", "docker")] == [2, 4]
    first, second = run.matching(" run .*--runc-binary")
    assert first == (
        "ctr --address /run/containerd/containerd.sock --namespace k8s.io run --rm --runc-binary "
        "/usr/bin/nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=all "
        "docker.io/library/cuda:12 kubegpu-verify-abc-1 nvidia-smi -L"
    )
    assert "NVIDIA_VISIBLE_DEVICES=0,1 " in second and "kubegpu-verify-abc-2" in second
    assert [re.search(r"(--runtime|--gpus) \S+", one)[0] for one in run.matching("docker run")] == [
        "--runtime nvidia", "--gpus all", "--runtime nvidia", '--gpus "device=0,1"',
    ]  # fmt: skip
    assert all("--network none" in one for one in run.matching("docker run"))


def test_an_image_is_never_pulled_silently(tmp_path):
    answers = {"docker image inspect.*other": Result(1, "", "No such image: other:1")}
    probe, run = collector(tmp_path, ProbeOptions(image="other:1"), answers)
    both = runtimes(probe)
    codes = {one.skipped.code for runtime in both.values() for one in runtime.containers}
    assert codes == {"image_missing"}
    assert not run.matching(" run ") and not run.matching("pull")
    probe, run = collector(tmp_path, ProbeOptions(image="other:1", pull=True), answers)
    runtimes(probe)
    (pulled,) = run.matching("images pull")
    # A namespace of its own, so that it can be removed again.
    assert "--namespace kubegpu-verify" in pulled and "docker.io/library/other:1" in pulled
    assert "other:1" in probe.dependencies.root.recorded()


def test_a_bare_root_has_the_loader_and_nothing_of_nvidias(tmp_path, monkeypatch):
    copied = []
    probe, run = collector(tmp_path, ProbeOptions())
    monkeypatch.setattr(probe.dependencies.root, "copy", copied.extend)
    monkeypatch.setattr(probe.dependencies.reader, "exists", lambda path: True)
    runtimes(probe, facts(runtimes__docker=None))
    assert "/lib64/ld-linux-x86-64.so.2" in copied
    assert "/lib/x86_64-linux-gnu/libc.so.6" in copied
    assert not [path for path in copied if "nvidia" in path]
    (words,) = run.matching("--rootfs")
    assert words.endswith(f"--rootfs {tmp_path}/verify/rootfs kubegpu-verify-abc-1 nvidia-smi -L")
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in words


def test_a_container_that_does_not_end_is_not_left_behind(tmp_path):
    """Removed by the trial itself: what comes after it must not find it running."""
    probe, run = collector(
        tmp_path,
        ProbeOptions(image="cuda:12"),
        answers={
            " run ": Result(TIMED_OUT, "", ""),
            "k8s.io containers ls": "0af3\nkubegpu-verify-abc-1\n",
        },
    )
    runtimes(probe)
    begun = run.asked.index(*run.matching("^ctr .* run "))
    for words in (
        "k8s.io tasks kill --signal SIGKILL kubegpu-verify-abc-1",
        "k8s.io containers rm kubegpu-verify-abc-1",
        "k8s.io snapshots rm kubegpu-verify-abc-1",
    ):
        assert run.asked.index(*run.matching(words)) > begun
    assert not run.matching("0af3")
    names = [re.search(r"--name (\S+)", words)[1] for words in run.matching("^docker run")]
    assert len(names) == 2
    assert run.matching("^docker rm") == [f"docker rm --force --volumes {name}" for name in names]
