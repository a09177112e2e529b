# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``gpu_node_verify`` on nodes with real containerd 1.6, 1.7 and 2.1 and real dockerd, over ssh.

What the chip would do is stood in for on gpu2 and gpu3 (module, NVML, nvidia-smi); gpu1 has no
driver. The toolkit is a stand-in that puts nvidia-smi into a container, and refuses an image that
is too new in the real one's words. Each test breaks one thing and fixes it.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time

import pytest

from tests.integration.fleet.playbooks import BIN, environment, on_nodes, run_module
from tests.testbed.fleet import chosen
from tests.testbed.paths import INVENTORY, REPOSITORY
from tests.tools.tiers import is_full

full = pytest.mark.full(
    why="faults and options of the module, whose judgements are unit tests, on the nodes of "
    "test_site.py::test_verify_proves_each_layer_..."
)
NODES = ":".join(node.name for node in chosen() if node.gpus)
DRIVEN = "gpu2" if is_full() else "gpu3"
IMAGE = "localhost/testbed/busybox:1"
MARK = "KUBEGPU_STANDIN_RUNTIME=nvidia"
RUNTIME = "/usr/bin/nvidia-container-runtime"
CONTAINERD = "/etc/containerd/config.toml"
# All that a container could leave behind.
STATE = (
    "for name in $(ctr namespaces ls -q | sort); do echo $name; for what in containers images; do "
    "ctr -n $name $what ls -q | sort; done; ctr -n $name snapshots ls | sort; done; "
    "docker ps --all --quiet; docker images | awk '{print $1, $2, $3}' | sort; "
    "ls -A /var/lib/kubegpu-verify; ls /run/kubegpu-verify.lock; true"
)
# An image that demands a CUDA which driver 550 does not have, as NVIDIA's images demand it.
TOO_NEW = (
    f"docker run --name mould {IMAGE} /bin/true && docker export mould | docker import "
    "--change 'ENV NVIDIA_REQUIRE_CUDA=cuda>=12.6' --change 'ENV NVIDIA_VISIBLE_DEVICES=all' "
    "--change 'CMD [\"/bin/env\"]' - localhost/testbed/too-new:1 && docker rm mould && "
    "docker save localhost/testbed/too-new:1 -o /root/too-new.tar && "
    "docker rmi localhost/testbed/too-new:1"
)


def verify(pattern=NODES, *options, **arguments):
    """Run the module and return, by host, its answer with the layers by name and runtime."""
    answers = run_module(
        pattern, "kubegpu.nodes.gpu_node_verify", {"timeout": 60, **arguments}, *options
    )
    for host, answer in answers.items():
        assert "layers" in answer or answer.get("failed"), (host, answer)
        answer["by_name"] = {
            one["subject"] or one["layer"]: one for one in answer.get("layers", ())
        }
    return answers


def codes(answer):
    """Return the codes of the layers that failed, by layer or runtime."""
    return {name: one["code"] for name, one in answer["by_name"].items() if one["ok"] is False}


@pytest.fixture(scope="module")
def ready(story):
    """The GPU nodes as site leaves them."""
    assert story.first
    # dockerd's first container leaves its namespace in containerd.
    on_nodes(f"docker run --rm {IMAGE} /bin/true; {TOO_NEW}", NODES)
    yield
    on_nodes("rm -f /root/too-new.tar", NODES)


@pytest.fixture
def clean(ready):
    """Whatever a test does: afterwards nothing of it is left on the nodes."""
    before = on_nodes(STATE, NODES)
    yield
    assert on_nodes(STATE, NODES) == before


@contextlib.contextmanager
def broken(command, fix, pattern=NODES):
    """Break something on the nodes for a while."""
    try:
        on_nodes(command, pattern)
        yield
    finally:
        on_nodes(fix, pattern)


@full
def test_s4_s10_each_layer_is_proven_and_a_container_sees_what_it_was_given(clean):
    answer = verify(DRIVEN, devices=["all", "0", "1,3"])[DRIVEN]
    assert answer["ok"] and not answer["changed"], answer
    proofs = {name: one["proof"] for name, one in answer["by_name"].items()}
    assert proofs["pci"] == "4 GPUs bound to the driver nvidia"
    assert proofs["module"].startswith("550.163.01 is loaded")
    assert proofs["nvml"] == "nvidia-smi lists 4 GPUs, driver 550.163.01, CUDA 12.4"
    assert "CDI specification /var/run/cdi/nvidia.yaml for driver 550.163.01" in proofs["toolkit"]
    for name, ways in (("containerd", 1), ("docker", 2)):
        assert proofs[name].count(": 4 GPUs") == ways
        assert proofs[name].count(": 1 GPU of 0") == ways
        assert proofs[name].count(": 2 GPUs of 1,3") == ways
    assert answer["ansible_facts"]["gpu_node"]["nvml"]["driver_version"] == "550.163.01"


@full
def test_a_node_without_a_driver_fails_in_its_own_layers(clean):
    for host, answer in verify("gpu1").items():
        assert codes(answer) == {"pci": "gpu_not_bound", "module": "driver_not_loaded"}, host
        assert answer["by_name"]["nvml"]["ok"] is None
        assert answer["failed_layers"] == ["pci", "module"]


def test_check_mode_says_which_container_it_would_start(clean):
    answer = verify(DRIVEN, "--check")[DRIVEN]
    assert answer["ok"]
    for name in ("containerd", "docker"):
        layer = answer["by_name"][name]
        assert (layer["ok"], layer["code"]) == (None, "check_mode")
        assert "would run nvidia-smi -L" in layer["cause"]


def test_an_image_that_kubernetes_has_is_used_where_it_lies(clean):
    answers = verify(image=IMAGE, command=["/bin/env"], expect=f"^{MARK}$", engines=["containerd"])
    for host, answer in answers.items():
        layer = answer["by_name"]["containerd"]
        assert layer["ok"], (host, layer)
        assert f"the image {IMAGE}" in layer["proof"] and MARK in layer["proof"]


@full
def test_an_image_that_docker_has(clean):
    expect = "^NVIDIA_VISIBLE_DEVICES=all$"
    answers = verify(image=IMAGE, command=["/bin/env"], expect=expect, engines=["docker"])
    assert all(answer["by_name"]["docker"]["ok"] for answer in answers.values()), answers


@full
def test_an_image_that_is_not_there_is_not_pulled(clean):
    for answer in verify(image="localhost/testbed/nothing:1").values():
        layer = answer["by_name"]
        assert layer["containerd"]["code"] == layer["docker"]["code"] == "image_missing"
        assert "pull: true" in layer["docker"]["next_step"]


@full
def test_a_registry_that_cannot_be_reached_is_told(clean):
    name = "registry.testbed.invalid/cuda:12"
    for answer in verify(image=name, pull=True, image_timeout=30).values():
        for engine in ("containerd", "docker"):
            layer = answer["by_name"][engine]
            assert layer["ok"] is False and name in f"{layer['cause']} {layer['evidence']}", layer


@full
def test_s9_an_image_that_is_too_new_names_driver_and_cuda(clean):
    answer = verify(DRIVEN, image_archive="/root/too-new.tar", command=["/bin/env"])[DRIVEN]
    assert codes(answer) == dict.fromkeys(("containerd", "docker"), "unmet_requirement")
    for engine in ("containerd", "docker"):
        layer = answer["by_name"][engine]
        assert "unsatisfied condition: cuda>=12.6" in layer["evidence"]
        assert "CUDA 12.6" in layer["cause"] and "550.163.01" in layer["cause"]
        assert "driver 560.28.03 or newer" in layer["next_step"]
        assert "CUDA 12.4 or older" in layer["next_step"]


@full
def test_an_image_out_of_an_archive_runs_and_is_gone_afterwards(clean):
    # Without a driver nobody checks what it demands, and gpu3's driver has what it demands.
    answers = verify("gpu1:gpu3", image_archive="/root/too-new.tar", expect="^HOME=")
    for host, answer in answers.items():
        for engine in ("containerd", "docker"):
            assert answer["by_name"][engine]["ok"], (host, answer["by_name"][engine])


@full
def test_options_that_make_no_sense_are_refused(ready):
    for arguments, word in (
        ({"image_archive": "/nowhere.tar"}, "no file /nowhere.tar"),
        ({"expect": "("}, "no regular expression"),
        ({"devices": ["all; reboot"]}, "devices is"),
        ({"timeout": 0}, "timeout is 0"),
    ):
        answer = verify("gpu1", **arguments)["gpu1"]
        assert answer["failed"] and word in answer["msg"], answer


@full
def test_a_file_that_is_no_image(clean):
    answer = verify(DRIVEN, image_archive="/etc/hostname")[DRIVEN]
    assert answer["failed"] and "/etc/hostname" in answer["msg"]
    assert "docker save" in answer["msg"]


# -- broken on purpose -----------------------------------------------------------------------


def test_toolkit_missing(clean):
    with broken(f"mv {RUNTIME} {RUNTIME}.away", f"mv {RUNTIME}.away {RUNTIME}"):
        answers = verify()
    assert codes(answers[DRIVEN]) == {"toolkit": "toolkit_missing"}
    for engine in ("containerd", "docker"):
        layer = answers[DRIVEN]["by_name"][engine]
        # What rests on it is no second failure, but it was tried and says what it saw.
        assert (layer["ok"], layer["code"]) == (None, "needs_toolkit")
        assert RUNTIME in layer["evidence"]
    for answer in answers.values():
        layer = answer["by_name"]["toolkit"]
        assert "1.20.1-1 is installed, but its program" in layer["cause"]


@full
def test_handler_missing(clean):
    gone = {"name": "nvidia", "state": "absent"}
    run_module(NODES, "kubegpu.nodes.containerd_runtime", {**gone, "restart": True})
    run_module(NODES, "kubegpu.nodes.docker_runtime", {**gone, "reload": True})
    try:
        answers = verify()
    finally:
        there = {"name": "nvidia"}
        run_module(NODES, "kubegpu.nodes.containerd_runtime", {**there, "restart": True})
        run_module(NODES, "kubegpu.nodes.docker_runtime", {**there, "reload": True})
    for answer in answers.values():
        assert codes(answer)["containerd"] == codes(answer)["docker"] == "handler_missing"
        assert "runc" in answer["by_name"]["containerd"]["evidence"]
    assert not codes(verify(DRIVEN)[DRIVEN])


@full
def test_s13_handler_that_is_not_the_default(clean):
    for answer in verify(require_default=["containerd", "docker"]).values():
        found = codes(answer)
        assert found["containerd"] == found["docker"] == "not_default"
        assert "runtimeClassName: nvidia" in answer["by_name"]["containerd"]["next_step"]


@full
def test_docker_default_runtime_that_is_gone_and_a_dockerd_that_knows_no_gpus(clean):
    """The hook was put there after dockerd started: --gpus says what everybody has seen.

    Without a container, as in a diagnosis, the record and the start of dockerd say the same.
    """
    hook = "/usr/bin/nvidia-container-runtime-hook"
    away = f"mv {hook} {hook}.away; systemctl restart docker; mv {hook}.away {hook}"
    with broken(away, "systemctl reset-failed docker; systemctl restart docker"):
        answers = verify(engines=["docker"])
        looked = verify(engines=["docker"], container=False)
    for host, answer in answers.items():
        layer, without = answer["by_name"]["docker"], looked[host]["by_name"]["docker"]
        assert layer["code"] == without["code"] == "docker_restart_required", (layer, without)
        assert "could not select device driver" in layer["evidence"]
        assert "--gpus needs a dockerd that was started after" in without["evidence"]
        assert layer["next_step"] == without["next_step"]
        assert "restart docker" in layer["next_step"]
    assert verify(DRIVEN, engines=["docker"], container=False)[DRIVEN]["by_name"]["docker"]["ok"]


@full
def test_handler_that_runs_another_program(clean):
    """The trap of two spellings: the handler is there, by name, and runs runc."""
    edit = (
        f"cp -a /etc/containerd /root/kept; grep -rl {RUNTIME} /etc/containerd | "
        f"xargs sed -i 's|{RUNTIME}|/usr/sbin/runc|'; systemctl restart containerd"
    )
    fix = "rm -rf /etc/containerd; mv /root/kept /etc/containerd; systemctl restart containerd"
    with broken(edit, fix):
        answers = verify(engines=["containerd"])
    for answer in answers.values():
        layer = answer["by_name"]["containerd"]
        assert layer["code"] == "wrong_program", layer
        assert "runs /usr/sbin/runc" in layer["cause"]


@full
def test_containerd_configuration_broken_by_hand(clean):
    edit = f"cp -p {CONTAINERD} {CONTAINERD}.kept; echo '[plugins' >> {CONTAINERD}"
    # systemd counts the starts that failed.
    again = "systemctl reset-failed containerd; systemctl restart containerd"
    with broken(edit, f"mv {CONTAINERD}.kept {CONTAINERD}; {again}"):
        answers = verify(engines=["containerd"])
        for answer in answers.values():
            layer = answer["by_name"]["containerd"]
            assert layer["code"] == "containerd_config_invalid", layer
            assert "will not come back from a restart" in layer["cause"]
        # And it does not come back.
        on_nodes("systemctl restart containerd; true", NODES)
        down = verify("gpu1", engines=["containerd"])["gpu1"]["by_name"]["containerd"]
        assert down["ok"] is False
    assert verify("gpu1", engines=["containerd"])["gpu1"]["by_name"]["containerd"]["ok"]


@full
def test_containerd_that_has_not_read_its_file_yet(clean):
    with broken(f"touch {CONTAINERD}", "systemctl restart containerd"):
        answers = verify(engines=["containerd"])
    for answer in answers.values():
        assert codes(answer)["containerd"] == "restart_required"


@full
def test_daemons_that_do_not_run(clean):
    with broken("systemctl stop containerd", "systemctl start containerd; sleep 1", "gpu1"):
        layer = verify("gpu1", engines=["containerd"])["gpu1"]["by_name"]["containerd"]
        assert layer["code"] == "containerd_not_running"
        assert "journalctl --unit containerd" in layer["next_step"]


@full
def test_libraries_of_another_version(clean):
    """As unattended upgrades leave them: new libraries below a loaded module."""
    smi = "/usr/bin/nvidia-smi"
    words = "Failed to initialize NVML: Driver/library version mismatch"
    script = f"printf '#!/bin/sh\\necho {words}\\nexit 18\\n'"
    edit = f"mv {smi} {smi}.away; {script} > {smi}; chmod 755 {smi}"
    with broken(edit, f"mv {smi}.away {smi}", DRIVEN):
        layer = verify(DRIVEN, container=False)[DRIVEN]["by_name"]["nvml"]
    assert layer["code"] == "driver_library_mismatch"
    assert words in layer["evidence"] and "Reboot" in layer["next_step"]


@full
def test_fewer_gpus_than_there_should_be(clean):
    answer = verify(DRIVEN, gpus=8, driver_version="580.95.05", container=False)[DRIVEN]
    assert codes(answer) == {"pci": "gpu_count", "module": "other_driver"}
    assert (
        "4 NVIDIA GPUs on the PCI bus, and 8 should be there" in answer["by_name"]["pci"]["cause"]
    )


# -- time, signals, and what a killed run leaves ----------------------------------------------

ENDLESS = {"image": IMAGE, "command": ["/bin/sleep", "600"]}


@full
def test_a_container_that_does_not_end_is_ended(clean):
    for answer in verify(timeout=3, **ENDLESS).values():
        found = codes(answer)
        assert found["containerd"] == found["docker"] == "timed_out"


@full
@pytest.mark.parametrize("engine", ["containerd", "docker"])
@pytest.mark.parametrize("name", ["TERM", "HUP", "KILL"])
def test_a_run_that_is_stopped(clean, engine, name):
    """A signal cleans up; what a killed run left is removed by the next one."""
    arguments = {**ENDLESS, "engines": [engine], "timeout": 120}
    argv = [
        str(BIN / "ansible"), "-i", str(INVENTORY), DRIVEN, "--become",
        "-m", "kubegpu.nodes.gpu_node_verify", "-a", json.dumps(arguments),
    ]  # fmt: skip
    look = "ps -eo pid,args | grep '[/]bin/sleep 600' | grep -v -e ctr -e docker -e timeout"
    with subprocess.Popen(
        argv, env=environment(), cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    ) as run:  # fmt: skip
        deadline = time.monotonic() + 120
        while not on_nodes(look, DRIVEN)[DRIVEN]:
            assert time.monotonic() < deadline and run.poll() is None, run.stdout.read()
        on_nodes(f"kill -{name} $(cat /run/kubegpu-verify.lock)", DRIVEN)
        said, _nothing = run.communicate(timeout=120)
    if name == "KILL":
        assert on_nodes(look, DRIVEN)[DRIVEN]
        verify(DRIVEN, engines=["containerd"])
    else:
        assert f"Stopped by SIG{name}" in said
    assert not on_nodes(look, DRIVEN)[DRIVEN]


# -- as a play uses it ------------------------------------------------------------------------

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Look
      kubegpu.nodes.gpu_node_verify:
        container: false
      register: seen
      when: inventory_hostname != 'gpu3'
    - name: Keep
      ansible.builtin.set_fact:
        verified: "{{ seen.layers | default([]) }}"
    - name: Show
      kubegpu.nodes.fleet_table:
        columns:
          - {key: node, title: Node}
          - {key: pci, title: PCI}
          - {key: module, title: Module}
          - {key: nvml, title: NVML}
          - {key: toolkit, title: Toolkit}
          - {key: runtime, title: Runtime}
        table: verification
        hosts: "{{ ansible_play_hosts_all }}"
        key: verified
      run_once: true
"""


@full
def test_the_table(ready, tmp_path):
    (tmp_path / "look.yml").write_text(PLAY)
    done = subprocess.run(
        [str(BIN / "ansible-playbook"), "-i", str(INVENTORY), "--limit", NODES,
         str(tmp_path / "look.yml")],
        env=environment(), cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["gpu2", "ok", "ok", "ok", "ok", "ok"] in lines
    assert ["gpu1", "failed", "failed", "not", "tried", "ok", "ok"] in lines
    assert ["gpu3", "-", "-", "-", "-", "-"] in lines
    assert "gpu3: the node could not be read" in done.stdout
    assert "gpu1: module: NVIDIA's kernel module is not loaded." in done.stdout


@full
def test_the_task_fails_where_it_is_told_to(ready):
    answer = verify("gpu1", container=False, fail=True)["gpu1"]
    assert answer["failed"] and not answer["ok"]
    assert "module: NVIDIA's kernel module is not loaded." in answer["msg"]
    assert "Next step:" in answer["msg"]
