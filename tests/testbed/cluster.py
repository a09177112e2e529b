# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real Kubernetes: a control plane on this machine, and kubelets in node containers.

The control plane listens on the bridge of the fleet, which has no way off the machine.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

from tests.testbed import (
    cluster_binaries,
    cluster_images,
    cluster_nodes,
    engine,
    images,
    inventory,
    network,
    nodes,
    playbook,
    repository,
)
from tests.testbed.cluster_control import ControlPlane
from tests.testbed.fleet import APART, CLUSTER, FLEET, chosen
from tests.testbed.paths import BUILD, INVENTORY
from tests.testbed.shell import TestbedError, say

API = BUILD / "api"
CONTROL = BUILD / "control"
KUBECONFIG = BUILD / "kubeconfig"
_PORT = 6443


def api_up() -> ControlPlane:
    """An API server with its controllers alone, on loopback: for Node objects that are made."""
    plane = ControlPlane(API).up()
    print(plane.kubeconfig)
    return plane


def api_down() -> None:
    """Stop it; nothing stays."""
    ControlPlane(API).remove()


def up(*, fresh: bool = False) -> ControlPlane:
    """The whole cluster: what runs already stays, unless all is to be fresh."""
    _need_own_fleet()
    fleet, plane = chosen(), ControlPlane(CONTROL)
    cluster_binaries.programs()
    cluster_binaries.standins()
    engine.up()
    if fresh or not plane.runs():
        # Nodes know the control plane by its authority, so they go with it.
        _remove()
    gateway = network.up().gateway
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(nodes.up, fleet)
        served = repository.up()
        if not plane.runs():
            plane.up(gateway, _PORT, nodes=True)
        coming.result()
    cluster_nodes.join(plane, fleet)
    KUBECONFIG.unlink(missing_ok=True)
    KUBECONFIG.touch(mode=0o600)
    KUBECONFIG.write_bytes(plane.kubeconfig.read_bytes())
    playbook.collections()
    inventory.write(fleet, served, variables())
    print(plane.kubectl("get", "nodes", "--output=wide"), end="")
    say(f"KUBECONFIG={KUBECONFIG}, kubectl is in {cluster_binaries.programs()}")
    say(f"ansible-playbook -i {INVENTORY} kubegpu.nodes.site")
    return plane


def variables() -> dict[str, object]:
    """What the collection has to know here: the API server, and images that are on the nodes."""
    return {
        "kubegpu_kube": {"kubeconfig": str(KUBECONFIG)},
        "nvidia_device_plugin_image": cluster_images.DEVICE_PLUGIN_NAME,
        "gpu_monitoring_image": cluster_images.DCGM_EXPORTER_NAME,
        "gpu_verify_image": cluster_images.SAMPLE,
        # The stand-in for nvidia-smi is a script, and needs more than a bare container has.
        "gpu_verify_container_image": cluster_images.SAMPLE,
        "gpu_verify_container_expect": "Test PASSED",
        "testbed_sample_new_image": cluster_images.SAMPLE_NEW,
        "testbed_sample_too_new_image": cluster_images.SAMPLE_TOO_NEW,
        "testbed_busybox_image": cluster_images.BUSYBOX,
    }


def down() -> None:
    """Remove control plane, nodes and network; images, packages and the engine stay."""
    _need_own_fleet()
    _remove()
    if engine.answers():
        repository.down()
        network.remove()
    INVENTORY.unlink(missing_ok=True)


def clean() -> None:
    """The same, and the testbed's own engine goes too if no other fleet uses it."""
    down()
    if engine.answers() and not nodes.others():
        images.remove()
    engine.remove()


def _remove() -> None:
    # All of them, for the run before may have chosen others.
    fleet = (*FLEET, *APART)
    ControlPlane(CONTROL).remove()
    KUBECONFIG.unlink(missing_ok=True)
    if engine.answers():
        nodes.down(fleet)
        cluster_nodes.remove_cgroups(fleet)
    shutil.rmtree(CONTROL, ignore_errors=True)


def _need_own_fleet() -> None:
    if not CLUSTER:
        raise TestbedError("the cluster is its own fleet: set KUBEGPU_FLEET=cluster")
