# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the verification asks of a node, with answers of programs that were recorded on nodes.

That containers really start, and that nothing is left of them, is shown on real nodes
(tests/integration/fleet/test_verify.py).
"""

from __future__ import annotations

import contextlib
import json
import re

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.distributions import (
    DISTRIBUTIONS,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import TIMED_OUT, Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify import collect as _verify_flow
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.collect import (
    Options,
    Verifier,
    World,
    cleaned,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.judge import NODE_LAYERS
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.rootfs import Scratch
from ansible_collections.kubegpu.nodes.plugins.modules import gpu_node_verify
from tests.unit.fixtures.crio import configured, packaged
from tests.unit.fixtures.make_tree import write
from tests.unit.fixtures.node_facts import P4, node

SMI = Result(0, "GPU 0: Tesla P4 (UUID: GPU-1)\n", "")
PLUGINS = (
    "TYPE                            ID     PLATFORMS      STATUS    \n"
    "io.containerd.grpc.v1           cri    linux/amd64    ok        \n"
)
HANDLER = {"type": "io.containerd.runc.v2", "path": "/usr/bin/nvidia-container-runtime"}
# Printed by ldd of glibc 2.36 for nvidia-smi of driver 580.
LDD = """\
\tlinux-vdso.so.1 (0x00007ffc5b5f2000)
\tlibpthread.so.0 => /lib/x86_64-linux-gnu/libpthread.so.0 (0x00007f0e4a2d0000)
\tlibnvidia-ml.so.1 => /lib/x86_64-linux-gnu/libnvidia-ml.so.1 (0x00007f0e4a2c0000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f0e49e00000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f0e4a3e8000)
"""


class Node:
    """Answers by the words of a command; what nobody knows is answered with success."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []

    def __call__(self, argv, timeout=60, environment=None):
        words = " ".join(argv)
        self.asked.append(words)
        for pattern, answer in self.answers.items():
            if re.search(pattern, words):
                return answer if isinstance(answer, Result) else Result(0, answer, "")
        return Result(0, "", "")

    def matching(self, pattern):
        return [words for words in self.asked if re.search(pattern, words)]


ANSWERS = {
    "crictl": Result(127, "", "crictl: no such program"),
    "plugins ls": PLUGINS,
    "k8s.io images ls": "docker.io/library/cuda:12\nlocalhost/own:1\n",
    "docker image inspect": "sha256:1\n",
    " run ": SMI,
    "^ldd": LDD,
}


def crictl_info(*handlers):
    """Return the answer of ``crictl info``, in the form that CRI gives it."""
    condition = {"type": "RuntimeReady", "status": True}
    named = {"runtimeHandlers": [{"name": name} for name in handlers]} if handlers else {}
    return json.dumps({"status": {"conditions": [condition]}, "config": {}, **named})


def facts(**changes):
    usual = {
        "gpus": [{**P4, "kernel_driver": "nvidia"}],
        "driver__loaded": "535.104.05",
        "nvml": {"driver_version": "535.104.05", "cuda_version": "12.2", "devices": [{}]},
        "runtimes__containerd__handlers": {"nvidia": HANDLER, "runc": {}},
        "runtimes__docker__runtimes": {"nvidia": {"path": "nvidia-container-runtime"}},
    }
    return node(**{**usual, **changes})


def verifier(tmp_path, options=None, answers=None, *, check=False, since=None, root="/"):
    # Those of the test are looked at first.
    run = Node(
        {**(answers or {}), **{k: v for k, v in ANSWERS.items() if k not in (answers or {})}}
    )
    world = World(
        run,
        NodeReader(str(root)),
        Scratch(str(tmp_path / "verify")),
        "abc",
        lambda path: ["localhost/own:1"],
        lambda path: None,
        lambda unit, path: since,
    )
    return Verifier(world, options or Options(image="cuda:12"), check), run


def engines(found, facts_=None):
    return {engine.name: engine for engine in found.seen(facts_ or facts()).engines}


def test_ctr_and_docker_are_called_as_they_have_to_be(tmp_path):
    found, run = verifier(tmp_path, Options(image="cuda:12", devices=("all", "0,1")))
    both = engines(found)
    assert [len(both[name].trials) for name in ("containerd", "docker")] == [2, 4]
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


def test_an_old_docker_is_not_asked_for_gpus(tmp_path):
    found, run = verifier(tmp_path)
    engines(found, facts(runtimes__docker__version="18.09.9"))
    assert run.matching("docker run") and not run.matching("--gpus")


def test_check_mode_asks_and_starts_nothing(tmp_path):
    for options in (Options(), Options(image="cuda:12"), Options(archive="/x.tar"),
                    Options(image="other:1", pull=True)):  # fmt: skip
        answers = {"docker image inspect.*other": Result(1, "", "No such image: other:1")}
        found, run = verifier(tmp_path, options, answers, check=True)
        with cleaned(found, contextlib.nullcontext, lambda: None):
            both = engines(found)
        skipped = {one.skipped.code for engine in both.values() for one in engine.trials}
        assert skipped == {"check_mode"}
        assert not run.matching(r" (run|import|pull|load|rm|rmi|kill) ")
        assert not (tmp_path / "verify").exists()


def test_an_image_is_never_pulled_silently(tmp_path):
    answers = {"docker image inspect.*other": Result(1, "", "No such image: other:1")}
    found, run = verifier(tmp_path, Options(image="other:1"), answers)
    both = engines(found)
    codes = {one.skipped.code for engine in both.values() for one in engine.trials}
    assert codes == {"image_missing"}
    assert not run.matching(" run ") and not run.matching("pull")
    found, run = verifier(tmp_path, Options(image="other:1", pull=True), answers)
    engines(found)
    (pulled,) = run.matching("images pull")
    # A namespace of its own, so that it can be removed again.
    assert "--namespace kubegpu-verify" in pulled and "docker.io/library/other:1" in pulled
    assert "other:1" in found.world.scratch.notes()


def test_a_handler_is_asked_of_crictl_where_there_is_one(tmp_path):
    info = (
        '{"status": {"conditions": [{"type": "RuntimeReady", "status": true}]},'
        ' "config": {"containerd": {"runtimes": {"runc": {}}}}}'
    )
    found, _run = verifier(tmp_path, answers={"crictl": info}, since=False)
    engine = engines(found)["containerd"]
    assert (engine.listed, engine.how, engine.trials) == (False, "crictl info", ())


def test_a_file_that_is_newer_than_the_daemon_says_nothing(tmp_path):
    found, _run = verifier(tmp_path, since=False)
    assert engines(found)["containerd"].fault.code == "restart_required"
    for since in (True, None):
        found, _run = verifier(tmp_path, since=since)
        assert engines(found)["containerd"].fault is None


@pytest.mark.parametrize("path", ["/usr/bin/runc", None])
def test_a_handler_of_another_program_is_no_nvidia_handler(tmp_path, path):
    wrong = {"nvidia": {"type": "io.containerd.runc.v2", "path": path}}
    found, run = verifier(tmp_path)
    both = engines(found, facts(runtimes__containerd__handlers=wrong))
    assert both["containerd"].fault.code == "wrong_program"
    assert not run.matching("runc-binary")


def test_a_program_of_ones_own_is_good(tmp_path):
    own = {"nvidia": {"type": "io.containerd.runc.v2", "path": "/opt/gpu/runtime"}}
    options = Options(image="cuda:12", runtime_path="/opt/gpu/runtime")
    found, run = verifier(tmp_path, options)
    engines(found, facts(runtimes__containerd__handlers=own))
    assert run.matching("--runc-binary /opt/gpu/runtime")


@pytest.mark.parametrize(
    ("crio", "answers", "listed", "code"),
    [
        (configured(), {}, True, None),
        (packaged(), {}, False, None),
        (configured(active=False), {}, None, "crio_not_running"),
        (configured(restart_required=True), {}, True, "restart_required"),
        (configured({"path": "/usr/bin/crun"}), {}, True, "wrong_program"),
        (configured(runtimes=None), {}, False, None),
        # crictl knows what the running one has: that counts, not the files.
        (configured(restart_required=True), {"crictl.*crio.sock": crictl_info("nvidia")}, True,
         None),
        (configured(), {"crictl.*crio.sock": crictl_info("crun")}, False, None),
        # One that names no handlers, as before CRI-O 1.31.
        (configured(), {"crictl.*crio.sock": crictl_info()}, True, None),
        (configured(), {"crictl.*crio.sock": Result(1, "", "connection refused")}, True,
         "cri_not_ready"),
    ],
)  # fmt: skip
def test_crio_is_looked_up_and_starts_nothing(tmp_path, crio, answers, listed, code):
    found, run = verifier(tmp_path, answers=answers)
    only = facts(runtimes__containerd=None, runtimes__docker=None, runtimes__crio=crio)
    engine = engines(found, only)["crio"]
    assert engine.listed is listed
    assert (engine.fault.code if engine.fault else None) == code
    assert engine.trials == ()
    assert not run.matching(" run ")


def test_crio_can_be_left_out(tmp_path):
    found, _run = verifier(tmp_path, Options(engines=("containerd",)))
    assert engines(found, facts(runtimes__crio=configured()))["crio"].idle


@pytest.mark.parametrize("flavour", DISTRIBUTIONS, ids=lambda flavour: flavour.name)
def test_the_containerd_of_a_distribution_is_asked_where_it_is(tmp_path, flavour):
    root = tmp_path / "root"
    write(root, f"{flavour.markers[0]}" if flavour.name == "k0s" else f"{flavour.markers[0]}/x")
    for program in flavour.programs[:1]:
        write(root, program)
    # What it writes when it starts is newer than that start.
    found, run = verifier(tmp_path, root=root, since=flavour.generated is None)
    only = facts(runtimes__containerd__flavour=flavour.name, runtimes__docker=None)
    engine = engines(found, only)["containerd"]
    assert (engine.listed, engine.fault) == (True, None)
    assert engine.trials[0].result.ok
    (started,) = run.matching(" run --rm ")
    program = flavour.programs[0] if flavour.ctr[0] == flavour.name else flavour.ctr[0]
    ctr = " ".join((program, *flavour.ctr[1:]))
    assert started.startswith(f"{ctr} --address {flavour.socket} ")
    assert run.matching(f"^{flavour.crictl} --runtime-endpoint=unix://{flavour.socket} ")


def test_a_socket_that_is_given_wins_over_the_distributions(tmp_path):
    root = tmp_path / "root"
    write(root, f"{DISTRIBUTIONS[1].markers[0]}/x")
    found, run = verifier(tmp_path, Options(containerd_socket="/run/x.sock"), root=root)
    engines(found, facts(runtimes__containerd__flavour="k3s"))
    assert run.matching("unix:///run/x.sock") and not run.matching("/run/k3s")


def test_who_takes_no_part(tmp_path):
    found, _run = verifier(tmp_path)
    both = engines(found, facts(runtimes__containerd__cri_enabled=False))
    assert "serves Docker alone" in both["containerd"].idle and both["docker"].trials
    both = engines(found, facts(runtimes__docker__active=False))
    assert "does not run" in both["docker"].idle and both["containerd"].trials
    found, _run = verifier(tmp_path, Options(image="cuda:12", engines=("docker",)))
    both = engines(found)
    assert "left out" in both["containerd"].idle and both["docker"].trials


def test_a_bare_root_has_the_loader_and_nothing_of_nvidias(tmp_path, monkeypatch):
    copied = []
    found, run = verifier(tmp_path, Options())
    monkeypatch.setattr(found.world.scratch, "copy", copied.extend)
    monkeypatch.setattr(found.world.reader, "exists", lambda path: True)
    engines(found, facts(runtimes__docker=None))
    assert "/lib64/ld-linux-x86-64.so.2" in copied
    assert "/lib/x86_64-linux-gnu/libc.so.6" in copied
    assert not [path for path in copied if "nvidia" in path]
    (words,) = run.matching("--rootfs")
    assert words.endswith(f"--rootfs {tmp_path}/verify/rootfs kubegpu-verify-abc-1 nvidia-smi -L")
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in words


def test_what_was_made_goes_whatever_happens(tmp_path):
    found, run = verifier(
        tmp_path,
        answers={
            "namespaces ls": "k8s.io\nkubegpu-verify\n",
            "k8s.io containers ls": "0af3\nkubegpu-verify-abc-1\n",
            "kubegpu-verify images ls": "docker.io/library/other:1\n",
        },
    )
    heard = []
    with (
        pytest.raises(ZeroDivisionError),
        cleaned(found, contextlib.nullcontext, lambda: heard.append(1)),
    ):
        assert found.world.scratch.there()
        run.asked.clear()
        raise ZeroDivisionError
    assert heard == [1]
    assert run.matching("k8s.io tasks kill --signal SIGKILL kubegpu-verify-abc-1")
    assert run.matching("k8s.io containers rm kubegpu-verify-abc-1")
    # What is Kubernetes' is not touched.
    assert not run.matching("0af3") and not run.matching("k8s.io images rm")
    assert run.matching("kubegpu-verify images rm --sync docker.io/library/other:1")
    assert run.matching("namespaces rm kubegpu-verify")
    assert not found.world.scratch.there()


def test_a_container_that_does_not_end_is_not_left_behind(tmp_path):
    """Removed by the trial itself: what comes after it must not find it running."""
    found, run = verifier(
        tmp_path,
        Options(image="cuda:12"),
        answers={
            " run ": Result(TIMED_OUT, "", ""),
            "k8s.io containers ls": "0af3\nkubegpu-verify-abc-1\n",
        },
    )
    engines(found)
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


def test_what_docker_was_given_goes_too(tmp_path):
    """By its label and its name, and by the notes of what was pulled or loaded."""
    (tmp_path / "root/run").mkdir(parents=True)
    (tmp_path / "root/run/docker.pid").write_text("1\n")
    answers = {"docker ps": "0123\n", "docker images": "4567\n4567\n"}
    found, run = verifier(tmp_path, answers=answers, root=tmp_path / "root")
    with cleaned(found, contextlib.nullcontext, lambda: None):
        found.world.scratch.note("other:1")
        run.asked.clear()
    (asked,) = run.matching("docker ps")
    assert "--all" in asked and "label=kubegpu.nodes=verify" in asked
    assert run.matching("^docker rm") == [
        "docker rm --force --volumes 0123",
        "docker rmi --force 4567",
        "docker rmi other:1",
    ]
    assert not found.world.scratch.there()


@pytest.mark.parametrize(("check", "started"), [(True, 0), (False, 1)])
def test_the_module_hands_check_mode_on(tmp_path, monkeypatch, check, started):
    run = Node(ANSWERS)
    made = []
    monkeypatch.setattr(gpu_node_verify, "gather", lambda *_a, **_k: facts(runtimes__docker=None))
    monkeypatch.setattr(gpu_node_verify, "Scratch", lambda: Scratch(str(tmp_path / "verify")))
    monkeypatch.setattr(gpu_node_verify, "_alone", contextlib.nullcontext)
    monkeypatch.setattr(gpu_node_verify, "_deaf", lambda: None)
    monkeypatch.setattr(gpu_node_verify, "_restarted_since", lambda _run: lambda *_a: None)
    monkeypatch.setattr(
        gpu_node_verify, "_options", lambda _params: made.append(1) or Options(image="cuda:12")
    )
    monkeypatch.setattr(gpu_node_verify, "_check", lambda _params: None)
    params = {
        "containerd_config_path": "/c", "docker_config_path": "/d", "gpus": None,
        "driver_version": "", "cdi": False, "require_default": [], "layers": list(NODE_LAYERS),
    }  # fmt: skip
    gpu_node_verify.judge(params, run, check)
    assert made and len(run.matching("^ctr .* run ")) == started
    assert not (tmp_path / "verify").exists()


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
    assert _verify_flow._spellings(image)[-1] == full
    assert _verify_flow._spellings(image)[0] == image


@pytest.mark.parametrize(
    ("options", "check", "started"),
    [
        (Options(), False, True),
        (Options(container=False), False, False),
        (Options(layers=("driver",)), False, False),
        (Options(), True, False),
    ],
)
def test_containers_are_started_where_somebody_wants_that(tmp_path, options, check, started):
    found, _run = verifier(tmp_path, options, check=check)
    assert found.starts_containers() is started


def test_a_root_that_docker_does_not_take_is_told(tmp_path, monkeypatch):
    found, run = verifier(tmp_path, Options(), {"docker import": Result(1, "", "no space left")})
    monkeypatch.setattr(found.world.scratch, "copy", lambda paths: None)
    monkeypatch.setattr(found.world.scratch, "pack", lambda name: f"/x/{name}")
    monkeypatch.setattr(found.world.reader, "exists", lambda path: True)
    with pytest.raises(KubegpuError, match="did not take the root file system"):
        engines(found, facts(runtimes__containerd=None))
    assert not run.matching("docker run")
