# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_cluster_info
short_description: Tell which nodes of a cluster offer which GPUs, and who uses them
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Reads capacity, allocatable and allocated GPU resources of the nodes of a Kubernetes cluster,
    with the pods that hold them; the device plugins with their pods; GPU operators, device
    plugins and DRA drivers of somebody else.
  - GPUs that NVIDIA's DRA driver offers (Dynamic Resource Allocation) are not in a node's status.
    They are added from the driver's C(ResourceSlice) objects, with the pods whose claims hold them.
    A server without C(resource.k8s.io) has none. Without the right to list C(deviceclasses),
    C(resourceslices) and C(resourceclaims) there is a warning, and they are left out.
  - With O(expected) it waits until the nodes offer what they should, and this collection's GPU
    feature discovery runs on them where it is deployed; otherwise it says of each node why not,
    from the pod, its events and its log.
  - One call serves the whole cluster. It changes nothing.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.kube
options:
  expected:
    description: >-
      What each node should offer, by any key; the key is the node's name, unless C(name) or
      C(machine_id) say more. C(resources) are names and counts; V({}) is a node without a GPU,
      where no device plugin should be, and V(null) one of which any GPU will do. C(driver) (the
      version that is loaded, or empty), C(default_runtime) and C(gpus), from its facts, make
      explanations better.
    type: dict
    default: {}
  wait_timeout:
    description: >-
      How long the nodes of O(expected) are waited for, in seconds. What no waiting mends ends it
      earlier: a node that the cluster does not have, no device plugin, or one whose pod there has
      failed three times meanwhile.
    type: int
    default: 0
  rollout:
    description: >-
      Whether to wait, as long, until the pods of this collection's device plugin and GPU feature
      discovery are all of their newest template and available as well. Until then nodes offer what
      they offered with the pods before. Where only that is left when the time is over, it is a
      warning.
    type: bool
    default: false
  all_nodes:
    description: Whether nodes without any GPU are in the answer too.
    type: bool
    default: false
  plugin_namespace:
    description: >-
      The namespace of this collection's device plugin. With it the answer has RV(plugin_objects).
    type: str
  plugin_content:
    description:
      - What else in O(plugin_namespace) is in RV(plugin_objects).
      - V(pods) are those of the plugin, by name, node and start alone.
      - V(all) are all pods, config maps, secrets, services and claims, by name, labels and type
        alone.
    type: str
    choices: [none, pods, all]
    default: none
attributes:
  check_mode:
    description: Reads the same in check mode.
    support: full
  diff_mode:
    description: There is nothing to compare.
    support: none
  platform:
    description: Runs where the API server can be reached.
    platforms: posix
    support: full
"""

EXAMPLES = r"""
- name: Which GPUs are there, and who has them
  kubegpu.nodes.gpu_cluster_info:
    kubeconfig: ~/.kube/config
  delegate_to: localhost
  become: false
  run_once: true
  register: cluster

- name: Wait until two nodes offer their GPUs
  kubegpu.nodes.gpu_cluster_info:
    kubeconfig: ~/.kube/config
    expected:
      gpu1:
        machine_id: 3f5c0ae1e0f84bb0a0f6a3f0a4a6f9a1
        resources: {nvidia.com/gpu: 4}
      gpu2:
        resources: {nvidia.com/gpu: 8}
    wait_timeout: 300
  delegate_to: localhost
  become: false
  run_once: true
  register: cluster
  failed_when: cluster.missing | length > 0
"""

RETURN = r"""
nodes:
  description: >-
    The nodes that have GPU resources, or a device plugin's pod, or are in O(expected), by name.
    C(dra) of a node is null, or what DRA drivers published of it: C(drivers), C(capacity) and
    C(allocatable) by type of device, C(taints); C(dra) of a resource is whether a DRA driver offers
    it.
  returned: always
  type: dict
  sample:
    gpu1:
      name: gpu1
      ready: true
      cordoned: false
      machine_id: 3f5c0ae1e0f84bb0a0f6a3f0a4a6f9a1
      runtime: containerd://1.7.24
      kubelet: v1.34.1
      resources:
        nvidia.com/gpu:
          capacity: 4
          allocatable: 4
          allocated: 1
          free: 3
          dra: false
          pods:
            - {namespace: default, name: train-0, count: 1, phase: Running, owner: Job/train}
      dra: null
node_of:
  description: The node of each key of O(expected); null where the cluster does not have it.
  returned: always
  type: dict
  sample: {gpu1.example.com: gpu1}
plugin_pods:
  description: >-
    Pods of device plugins and DRA drivers, with C(node), C(phase), C(ready), C(restarts), why they
    wait or ended last, and, where something is not as it should be, the last lines of their log and
    what these mean.
  returned: always
  type: list
  elements: dict
discovery_pods:
  description: The same of the pods of this collection's GPU feature discovery.
  returned: always
  type: list
  elements: dict
parts:
  description: >-
    Operators, device plugins, DRA drivers and feature discovery that were found, with C(kind),
    C(vendor), C(title), C(text) (what it is and where, in words), C(workload), C(namespace),
    C(name), C(image), C(ours) and C(managed_by). Where no workload of a DRA driver is known, its
    C(DeviceClass) is one.
  returned: always
  type: list
  elements: dict
foreign:
  description: Those operators, device plugins and DRA drivers that are not of this collection.
  returned: always
  type: list
  elements: dict
dra:
  description: >-
    The version of C(resource.k8s.io) that was read (null where the server has none that is known),
    and the device classes of NVIDIA's GPUs.
  returned: always
  type: dict
  sample:
    version: v1
    classes:
      - {name: gpu.nvidia.com, driver: gpu.nvidia.com, type: gpu, resource: nvidia.com/gpu}
missing:
  description: >-
    Each node that does not offer what it should, with C(key), C(node), C(expected),
    C(allocatable), C(pod), C(code), C(cause), C(evidence) and C(next_step). C(part) is
    V(device_plugin), or V(feature_discovery) where the node offers its GPUs and this collection's
    GPU feature discovery does not run there.
  returned: always
  type: list
  elements: dict
  sample:
    - key: gpu2
      node: gpu2
      expected: {nvidia.com/gpu: 8}
      allocatable: {nvidia.com/gpu: 0}
      pod: kubegpu/kubegpu-nvidia-device-plugin-x7k2p
      part: device_plugin
      code: default_runtime
      cause: >-
        The device plugin found no NVML on gpu2: its pod names no RuntimeClass, and the default
        runtime of the node is runc, not nvidia.
      evidence: could not load NVML library
      next_step: Give the DaemonSet runtimeClassName nvidia.
layers:
  description: >-
    The same as entries of P(kubegpu.nodes.verify_rows#filter), layer C(allocatable). Where the
    cluster could not be asked the task fails, and the first entry says why.
  returned: always, but where an option is not as it should be
  type: list
  elements: dict
plugin_objects:
  description: >-
    What is there of this collection's device plugin, as the API server has it: the namespace, the
    RuntimeClass C(nvidia) and the DaemonSet, and what O(plugin_content) says. Read last, after any
    waiting.
  returned: with O(plugin_namespace)
  type: list
  elements: dict
  sample:
    - {apiVersion: v1, kind: Namespace, metadata: {name: kubegpu}}
waited:
  description: How long was waited, in seconds.
  returned: always
  type: float
  sample: 4.2
requests:
  description: Requests that the API server was sent, by verb.
  returned: always
  type: dict
  sample: {list: 4}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import answer, unasked
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.wait import wait
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    KUBE_ARGUMENTS,
    Cluster,
    read_connection,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.installed import (
    CONTENT,
    plugin_objects,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "expected": {"type": "dict", "default": {}},
            "wait_timeout": {"type": "int", "default": 0},
            "rollout": {"type": "bool", "default": False},
            "all_nodes": {"type": "bool", "default": False},
            "plugin_namespace": {"type": "str"},
            "plugin_content": {"type": "str", "choices": list(CONTENT), "default": CONTENT[0]},
            **KUBE_ARGUMENTS,
        },
        supports_check_mode=True,
    )
    namespace = module.params["plugin_namespace"]
    try:
        expected = read_expected(module.params["expected"])
    except KubegpuError as error:
        module.fail_json(msg=str(error))
    try:
        cluster = Cluster.connect(read_connection(module.params))
        reader = Reader(cluster)
        snapshot, waited = wait(
            reader, expected, module.params["wait_timeout"], rollout=module.params["rollout"]
        )
        result = answer(snapshot, expected, only_gpu=not module.params["all_nodes"])
        if namespace:
            content = module.params["plugin_content"]
            result["plugin_objects"] = plugin_objects(cluster, namespace, content)
    except KubegpuError as error:
        module.fail_json(msg=str(error), layers=unasked(expected, "allocatable", error))
    for note in [*snapshot.notes, *reader.notes]:
        module.warn(printable(note))
    module.exit_json(
        changed=False, waited=round(waited, 1), requests=dict(cluster.requests), **result
    )


if __name__ == "__main__":
    main()
