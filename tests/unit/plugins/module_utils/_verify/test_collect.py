# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read of a node, from which runtimes, and that nothing is left."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.collect import (
    cleaned,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.judge import judge_node
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.options import ProbeOptions
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import State
from tests.unit.fixtures.make_tree import write
from tests.unit.fixtures.probed_node import collector, facts, runtimes


def test_check_mode_asks_and_starts_nothing(tmp_path):
    for options in (ProbeOptions(), ProbeOptions(image="cuda:12"), ProbeOptions(archive="/x.tar"),
                    ProbeOptions(image="other:1", pull=True)):  # fmt: skip
        answers = {"docker image inspect.*other": Result(1, "", "No such image: other:1")}
        probe, run = collector(tmp_path, options, answers, check=True)
        with cleaned(probe):
            both = runtimes(probe)
        skipped = {one.skipped.code for runtime in both.values() for one in runtime.containers}
        assert skipped == {"check_mode"}
        assert not run.matching(r" (run|import|pull|load|rm|rmi|kill) ")
        assert not (tmp_path / "verify").exists()


def test_who_takes_no_part(tmp_path):
    probe, _run = collector(tmp_path)
    both = runtimes(probe, facts(runtimes__containerd__cri_enabled=False))
    assert "serves Docker alone" in both["containerd"].idle and both["docker"].containers
    both = runtimes(probe, facts(runtimes__docker__active=False))
    assert "does not run" in both["docker"].idle and both["containerd"].containers
    probe, _run = collector(tmp_path, ProbeOptions(image="cuda:12", engines=("docker",)))
    both = runtimes(probe)
    assert "left out" in both["containerd"].idle and both["docker"].containers


def test_what_was_made_goes_whatever_happens(tmp_path):
    cleanups = []
    probe, run = collector(
        tmp_path,
        before_cleanup=lambda: cleanups.append(1),
        answers={
            "namespaces ls": "k8s.io\nkubegpu-verify\n",
            "k8s.io containers ls": "0af3\nkubegpu-verify-abc-1\n",
            "kubegpu-verify images ls": "docker.io/library/other:1\n",
        },
    )
    with pytest.raises(ZeroDivisionError), cleaned(probe):
        assert probe.dependencies.root.exists()
        run.asked.clear()
        raise ZeroDivisionError
    assert cleanups == [1]
    assert run.matching("k8s.io tasks kill --signal SIGKILL kubegpu-verify-abc-1")
    assert run.matching("k8s.io containers rm kubegpu-verify-abc-1")
    # What is Kubernetes' is not touched.
    assert not run.matching("0af3") and not run.matching("k8s.io images rm")
    assert run.matching("kubegpu-verify images rm --sync docker.io/library/other:1")
    assert run.matching("namespaces rm kubegpu-verify")
    assert not probe.dependencies.root.exists()


@pytest.mark.parametrize(
    ("options", "check", "started"),
    [
        (ProbeOptions(), False, True),
        (ProbeOptions(container=False), False, False),
        (ProbeOptions(layers=("driver",)), False, False),
        (ProbeOptions(), True, False),
    ],
)
def test_containers_are_started_where_somebody_wants_that(tmp_path, options, check, started):
    probe, _run = collector(tmp_path, options, check=check)
    assert probe.starts_containers() is started


RECORDED = {
    "files": {
        "containerd_runtime:nvidia:/etc/containerd/config.toml": {},
        "containerd_runtime:other:/etc/containerd/other.toml": {},
        "docker_runtime:/etc/docker/daemon.json": {"details": {"names": {"nvidia": []}}},
        "docker_runtime:hook:docker.service": {"details": None},
    },
    "values": {},
}


@pytest.mark.parametrize("there", [False, True])
def test_a_handler_that_this_collection_has_configured_and_that_is_gone(tmp_path, there):
    write(tmp_path, "/var/lib/kubegpu/state.json", json.dumps(RECORDED))
    probe, _run = collector(tmp_path, root=tmp_path)
    gone = {} if there else {
        "runtimes__containerd__handlers": {"runc": {}}, "runtimes__docker__runtimes": {"runc": {}},
    }  # fmt: skip
    found = {name: one.recorded for name, one in runtimes(probe, facts(**gone)).items()}
    assert found == {
        "containerd": () if there else ("/etc/containerd/config.toml",),
        "docker": () if there else ("/etc/docker/daemon.json",),
    }
    seen = State(runtimes=tuple(runtimes(probe, facts(**gone)).values()))
    results = judge_node(facts(**gone), seen)
    lost = {
        one.subject.part: one.code for one in results if one.layer == "runtime" and one.ok is False
    }
    assert lost == ({} if there else dict.fromkeys(("containerd", "docker"), "runtime_lost"))


@pytest.mark.parametrize("text", ["", "no json", '{"files": []}'])
def test_a_record_that_cannot_be_read_proves_nothing(tmp_path, text):
    write(tmp_path, "/var/lib/kubegpu/state.json", text)
    probe, _run = collector(tmp_path, root=tmp_path)
    found = runtimes(probe, facts(runtimes__containerd__handlers={"runc": {}}))
    assert found["containerd"].recorded == ()
