# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The examples of playbooks/examples, each run with its own inventory's variables on a real node.

What a site has besides (mirror, proxy, k3s, RKE2, kubespray) is a stand-in; see docs/examples.md.
The example kubeadm is run on the cluster (tests/integration/cluster/test_example_kubeadm.py). The
nodes go side by side, each through some of the examples; the tests look at what was seen then.
"""

from __future__ import annotations

import re
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.fleet.playbooks import ETC, REPOSITORY, on_nodes, play
from tests.integration.fleet.standin_rancher import K3S, RKE2
from tests.integration.fleet.standin_site import Mirror, OpeningProxy
from tests.testbed import elf, network, repository, ssh
from tests.testbed.cluster_pki import Authority
from tests.testbed.nodes import copy_in, execute
from tests.testbed.payload import tar
from tests.testbed.proof import HOOK_MARK, IMAGE, RUNTIME_MARK, prove

pytestmark = pytest.mark.full(why="other sources and inventories of test_site.py's playbooks")
INVENTORIES = REPOSITORY / "playbooks" / "examples" / "inventories"
KUBESPRAY = Path(__file__).parent / "standin_kubespray" / "cluster.yml"
NVIDIA = "nvidia.github.io"
CONFIG = "/etc/containerd/config.toml"
NODES = ("gpu1", "gpu2", "gpu3")
LIBRARIES = ("libnvidia-ml", "libcuda")


def containerd(node):
    """containerd's process, another one after each restart, and its file."""
    process = execute(node, "systemctl", "show", "containerd", "--property=MainPID")
    return process.strip(), execute(node, "cat", CONFIG)


@dataclass
class Lane:
    """A node's way through some examples, and what was seen on it."""

    node: Any
    folder: Path
    seen: dict[str, Any] = field(default_factory=dict)

    def play(self, name, *arguments, **variables):
        begin = time.monotonic()
        run = play(name, *arguments, "--limit", self.node.name, variables=variables)
        print(f"{self.node.name}: {Path(name).stem}: {time.monotonic() - begin:.0f} s")
        return run

    def example(self, name, group, *arguments, playbook="", **variables):
        """Run an example with its inventory, in which this node is one of the group's hosts."""
        made = self.folder / f"{name}.yml"
        made.write_text(yaml.safe_dump({group: {"hosts": {self.node.name: None}}}))
        inventories = ["-i", str(INVENTORIES / name), "-i", str(made)]
        # There is no cluster here.
        variables = {"kubegpu_kube": {}, **variables}
        return self.play(playbook or f"examples.{name}", *inventories, *arguments, **variables)

    def keep(self, name, **seen):
        self.seen[name] = seen

    def good(self, run):
        assert run.status == 0, run.output
        return run


def on_gpu1(lane, served):
    """Toolkit by proxy and own authority, then Docker, then kubespray without its variable."""
    gateway = network.look().gateway
    authority = Authority.make(lane.folder / "authority", "the site's own")
    web = lane.folder / "web"
    web.mkdir()
    (web / "libnvidia-container").symlink_to(served.tree, target_is_directory=True)
    before = containerd(lane.node)
    with OpeningProxy(web, gateway, NVIDIA, authority) as proxy:
        run = lane.example(
            "proxy_and_ca", "proxied", "--tags", "toolkit",
            site_ca=str(authority.certificate),
            site_proxy=proxy.url,
            # Not the test bed's address, but NVIDIA's own, which only the proxy knows.
            nvidia_container_toolkit_repository={"key_fingerprints": [served.fingerprint]},
        )  # fmt: skip
        lane.keep(
            "proxy_and_ca", run=run, asked=list(proxy.asked), opened=list(proxy.behind.asked),
            sources=execute(lane.node, "sh", "-c", "cat /etc/apt/sources.list.d/kubegpu-*"),
            settings=execute(lane.node, "sh", "-c", "cat /etc/apt/apt.conf.d/*kubegpu-*"),
        )  # fmt: skip
    run = lane.example("docker_hosts", "docker_hosts")
    proofs = {proof.way: proof.mark for proof in prove(lane.node)}
    lane.keep("docker_hosts", run=run, proofs=proofs, kept=containerd(lane.node) == before)
    kubespray_without_its_variable(lane)
    execute(lane.node, "rm", "-f", "/etc/ssl/site-ca.pem")


def on_gpu2(lane, served):
    """RKE2, to which the toolkit comes from a mirror; then the image's driver is kept."""
    web = lane.folder / "web"
    web.mkdir()
    (web / "libnvidia-container").symlink_to(served.tree, target_is_directory=True)
    RKE2.up(lane.node)
    try:
        with Mirror(web, network.look().gateway) as mirror:
            run = lane.example(
                "air_gapped", "gpu_site", "--tags", "toolkit",
                site_mirror=mirror.url,
                site_toolkit_key=str(served.tree / "gpgkey"),
                site_fingerprints=[served.fingerprint],
            )  # fmt: skip
            lane.keep(
                "air_gapped", run=run, asked=list(mirror.asked),
                address=network.address(lane.node, network.look()),
                versions=execute(lane.node, "sh", "-c", "dpkg-query -W '*nvidia-container*'"),
            )  # fmt: skip
        rancher(lane, RKE2, "rke2_agents")
    finally:
        RKE2.down(lane.node)
    cloud_image(lane)
    lane.good(lane.play("teardown"))


def cloud_image(lane):
    """The fleet's stand-in driver has what the kernel shows; the image's has libraries too."""
    (version,) = re.findall(
        r"Module  ([0-9.]+)", execute(lane.node, "cat", "/proc/driver/nvidia/version")
    )
    kernel = execute(lane.node, "uname", "-r").strip()
    modules, library = f"usr/lib/modules/{kernel}", "usr/lib/x86_64-linux-gnu"
    files = {
        f"{modules}/modules.dep": b"kernel/drivers/video/nvidia.ko:\n",
        f"{modules}/kernel/drivers/video/nvidia.ko": elf.module(
            "nvidia", version, kernel, "NVIDIA"
        ),
        "usr/bin/nvidia-uninstall": b"#!/bin/sh\nexit 9\n",
        **{f"{library}/{name}.so.{version}": elf.library(name, version) for name in LIBRARIES},
    }
    links = {f"{library}/{name}.so.1": f"{name}.so.{version}" for name in LIBRARIES}
    copy_in(lane.node, tar({path: (text, 0o755) for path, text in files.items()}, links))
    made = [*files, *links]
    sums = ["sh", "-c", f"cd / && sha256sum {' '.join(made)}"]
    before = execute(lane.node, *sums)
    lane.keep(
        "cloud_image",
        # The example's nodes are logged in to as the cloud's user.
        run=lane.example(
            "cloud_image", "cloud_gpus", ansible_user=ssh.USER, nvidia_driver_enabled=True
        ),
        packages=execute(lane.node, "sh", "-c", "dpkg-query -W -f '${Package}\\n' '*nvidia*'"),
        kept=execute(lane.node, *sums) == before,
        version=version,
    )
    execute(lane.node, "sh", "-c", f"cd / && rm -rf {' '.join(made)} usr/lib/modules")


def on_gpu3(lane, _served):
    """k3s, which brings the toolkit here; then kubespray with its variable."""
    K3S.up(lane.node)
    try:
        rancher(lane, K3S, "server")
    finally:
        K3S.down(lane.node)
    kubespray(lane)


def rancher(lane, distribution, group):
    plain, unit = containerd(lane.node), distribution.pid(lane.node)
    files = f"find {distribution.folder} -type f"
    run = lane.example(distribution.name, group)
    after = distribution.pid(lane.node)
    again = lane.example(distribution.name, group, "--tags", "runtime")
    lane.keep(
        distribution.name, run=run, again=again,
        units=[unit, after, distribution.pid(lane.node)], plain=[plain, containerd(lane.node)],
        files=execute(lane.node, "sh", "-c", files).split(),
        environments={
            handler: distribution.environment(lane.node, handler) for handler in ("runc", "nvidia")
        },
    )  # fmt: skip


class Kubespray:
    """The stand-in on a node, whose own configuration is kept meanwhile."""

    def __init__(self, lane, version):
        self.lane, self.steps = lane, []
        self.variables = {
            "standin_version": version,
            "standin_image": IMAGE,
            "standin_runc": "/usr/local/sbin/runc",
            # The kubelets of such a site; the nodes here are containers.
            "containerd_use_systemd_cgroup": False,
        }

    def __enter__(self):
        execute(self.lane.node, "cp", "-a", CONFIG, "/root/before-kubespray")
        return self

    def __exit__(self, *_error):
        script = (
            f"mv /root/before-kubespray {CONFIG}; rm -f /etc/containerd/cri-base.json; "
            "systemctl restart containerd"
        )
        execute(self.lane.node, "sh", "-c", script)

    def step(self, name, *arguments, playbook="", **variables):
        """Run kubespray's stand-in or the example, and keep what containerd looks like then."""
        run = self.lane.example(
            "kubespray", "kube_node", *arguments,
            playbook=playbook, **self.variables, **variables,
        )  # fmt: skip
        self.steps.append((name, run, *containerd(self.lane.node)))
        return run


def kubespray(lane):
    with Kubespray(lane, 3) as site:
        site.step("kubespray", playbook=str(KUBESPRAY))
        site.step("example")
        proofs = {proof.way: proof.mark for proof in prove(lane.node)}
        site.step("kubespray", playbook=str(KUBESPRAY))
        site.step("example", "--tags", "runtime")
        lane.good(lane.play("teardown"))
        lane.keep("kubespray", steps=site.steps, proofs=proofs, left=containerd(lane.node))


def kubespray_without_its_variable(lane):
    without = {"containerd_additional_runtimes": []}
    with Kubespray(lane, 2) as site:
        site.step("kubespray", playbook=str(KUBESPRAY), **without)
        site.step("example", **without)
        ours = ("--tags", "runtime")
        site.step("site", *ours, playbook="site", **without)
        site.step("kubespray", playbook=str(KUBESPRAY), **without)
        # And the way out: its variable.
        site.step("kubespray", playbook=str(KUBESPRAY))
        site.step("example", *ours)
        lane.good(lane.play("teardown"))
        lane.keep("without", steps=site.steps)


@pytest.fixture(scope="module")
def lanes(fleet, tmp_path_factory):
    """All of it, once; what stopped a lane is what its tests show."""
    served = repository.up()
    # Packages that an earlier test fetched would not be asked for again.
    on_nodes("apt-get clean", ":".join(NODES))
    before = on_nodes(ETC, ":".join(NODES))
    ways = {"gpu1": on_gpu1, "gpu2": on_gpu2, "gpu3": on_gpu3}
    made = {
        node.name: Lane(node, tmp_path_factory.mktemp(node.name))
        for node in fleet
        if node.name in ways
    }

    def go(name):
        try:
            ways[name](made[name], served)
        except Exception:
            made[name].seen["stopped"] = traceback.format_exc()

    with ThreadPoolExecutor(max_workers=len(made)) as pool:
        list(pool.map(go, made))
    yield made, before
    # Whatever stopped on the way leaves nothing for the tests that follow.
    if any("stopped" in lane.seen for lane in made.values()):
        play("teardown")


@pytest.fixture
def seen(lanes):
    def get(name):
        made, _before = lanes
        for lane in made.values():
            if name in lane.seen:
                return lane.seen[name]
        pytest.fail("\n".join(str(lane.seen.get("stopped", "")) for lane in made.values()))

    return get


def test_proxy_and_own_authority(seen):
    """NVIDIA's own addresses, which a node without a way out reaches by the proxy only."""
    was = seen("proxy_and_ca")
    assert was["run"].status == 0, was["run"].output
    assert set(was["asked"]) == {f"CONNECT {NVIDIA}:443"}
    paths = [path for _client, path in was["opened"]]
    assert "/libnvidia-container/gpgkey" in paths
    assert any(path.endswith(".deb") for path in paths)
    assert f"https://{NVIDIA}/libnvidia-container/stable/deb" in was["sources"]
    # For this host only, and never without verification.
    assert f"::{NVIDIA}" in was["settings"] and "/etc/ssl/site-ca.pem" in was["settings"]
    assert "verify" not in was["settings"].lower()


def test_docker_hosts(seen):
    was = seen("docker_hosts")
    assert was["run"].status == 0, was["run"].output
    assert was["proofs"] == {"--gpus all": HOOK_MARK, "--runtime nvidia": RUNTIME_MARK, "CRI": None}
    assert was["kept"], "containerd is not Kubernetes' here"


def test_air_gapped(seen):
    """Packages from the mirror only, the key from the controller."""
    was = seen("air_gapped")
    assert was["run"].status == 0, was["run"].output
    assert was["versions"].split()[1::2] == ["1.20.1-1"] * 4
    assert {client for client, _path in was["asked"]} == {was["address"]}
    paths = [path for _client, path in was["asked"]]
    assert all(path.startswith("/libnvidia-container/stable/deb/") for path in paths), paths
    assert any(path.endswith(".deb") for path in paths)


@pytest.mark.parametrize("name", ["k3s", "rke2"])
def test_k3s_and_rke2(seen, name):
    """They make the handler themselves: one restart of theirs, no file of ours."""
    was = seen(name)
    for run in (was["run"], was["again"]):
        assert run.status == 0, run.output
    before, after, later = was["units"]
    assert before != after == later
    assert was["plain"][0] == was["plain"][1], "the other containerd of the node is Docker's"
    assert [Path(path).name for path in was["files"]] == ["config.toml"]
    assert not any(stats["changed"] for stats in was["again"].stats.values())
    assert RUNTIME_MARK in was["environments"]["nvidia"]
    assert RUNTIME_MARK not in was["environments"]["runc"]


def test_s24_cloud_image_keeps_its_driver(seen):
    was = seen("cloud_image")
    assert was["run"].status == 0, was["run"].output
    answers = {task: answer for (task, _host), answer in was["run"].answers.items()}
    (plans,) = answers["Plan all hosts"]["plans"].values()
    driver = plans["nvidia_driver"]
    assert (driver["action"], driver["change"]) == ("none", False)
    assert was["kept"]
    table = " ".join(answers["Show what will be done, and why"]["table"])
    assert f"driver {was['version']} proprietary" in table
    assert all("container" in name for name in was["packages"].split())


def test_kubespray_and_we_agree(seen):
    """With its variable neither changes what the other wrote, and nobody restarts anything."""
    was = seen("kubespray")
    names = [name for name, *_rest in was["steps"]]
    assert names == ["kubespray", "example", "kubespray", "example"]
    for name, run, _process, _text in was["steps"]:
        assert run.status == 0, (name, run.output)
    assert len({process for *_rest, process, _text in was["steps"]}) == 1
    assert len({text for *_rest, text in was["steps"]}) == 1
    assert was["proofs"]["CRI"] == RUNTIME_MARK
    for _name, run, *_rest in was["steps"][2:]:
        assert not any(stats["changed"] for stats in run.stats.values()), run.changed()
    # It is as we would have written it, so teardown takes it away with its program; nothing else.
    lines, left = (text.splitlines() for text in (was["steps"][0][3], was["left"][1]))
    gone = lines.index(next(line for line in lines if line.endswith("runtimes.nvidia]")))
    assert left == lines[:gone]


def test_kubespray_without_its_variable_takes_the_handler_away(seen):
    """user-pains 3: the example refuses that; what site fixes costs restarts each time."""
    was = seen("without")
    first, refused, ours, lost, named, last = was["steps"]
    assert refused[1].status != 0
    assert "its next run would take it out of config.toml" in refused[1].messages()
    assert refused[2:] == first[2:], "nothing was done on the node"
    for name, run, *_rest in (first, ours, lost, named, last):
        assert run.status == 0, (name, run.output)
    there = ["runtimes.nvidia" in step[3] for step in (first, ours, lost, named)]
    assert there == [False, True, False, True]
    assert len({step[2] for step in (first, ours, lost, named)}) == 4, "a restart each"
    # From then on they agree.
    assert named[2:] == last[2:]
    assert not any(stats["changed"] for stats in last[1].stats.values()), last[1].changed()


def test_nodes_are_as_they_were(lanes):
    made, before = lanes
    assert not [lane.seen["stopped"] for lane in made.values() if "stopped" in lane.seen]
    after = on_nodes(ETC, ":".join(NODES))
    for node, text in before.items():
        assert after[node].splitlines() == text.splitlines(), node
