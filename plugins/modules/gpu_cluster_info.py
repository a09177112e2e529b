# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_cluster_info
short_description: Gather GPU resources of a Kubernetes cluster and the pods that use them
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Reads the capacity, allocatable and allocated GPU resources of the nodes of a Kubernetes
    cluster, the pods that use them, the device plugins with their pods, and GPU operators, device
    plugins and DRA drivers that this collection does not manage.
  - The status of a node does not contain GPUs that NVIDIA's DRA driver offers (Dynamic Resource
    Allocation). They are added from the driver's C(ResourceSlice) objects, with the pods whose
    claims use them. Without permission to list C(deviceclasses), C(resourceslices) and
    C(resourceclaims), the module warns and omits them.
  - With O(expected), the module waits until the nodes offer the expected resources and this
    collection's GPU feature discovery, if deployed, runs on them. Otherwise it explains for each
    node why not, from the pod, its events and its log.
  - One call serves the whole cluster. The module changes nothing.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.kube
options:
  expected:
    description: The resources that each node should offer, by the node's name or any other key.
    type: dict
    default: {}
    suboptions:
      NODE:
        description: The name of a node, or any other key, such as the name of the host.
        type: dict
        suboptions:
          name:
            description: Name of the node, if it is not the key.
            type: str
          machine_id:
            description: >-
              Machine ID of the host, as in C(gpu_node.os.machine_id) of
              M(kubegpu.nodes.gpu_node_facts). It finds the node if its name differs.
            type: str
          resources:
            description: >-
              Counts by name, such as C(nvidia.com/gpu). V({}) is a node without a GPU, on which no
              device plugin should run, and V(null) a node that has to offer any GPU (of the vendor
              of its C(gpus), NVIDIA first).
            type: raw
            default: {}
          some_of:
            description: >-
              Vendors of which the node has to offer at least one GPU each, whatever the number.
            type: list
            elements: str
            choices: [nvidia, amd, intel]
          driver:
            description: The loaded driver, or empty, from the facts. It improves the explanations.
            type: str
          default_runtime:
            description: The default runtime, from the facts. It improves the explanations.
            type: str
          gpus:
            description: The GPUs, from the facts. They improve the explanations.
            type: list
            elements: dict
          facts:
            description: >-
              Other parts of the fact C(gpu_node) of the host, such as C(driver) and
              C(container_toolkit). They decide between causes that print the same message.
            type: dict
  wait_timeout:
    description: >-
      Maximum time to wait for the nodes of O(expected), in seconds. The module stops earlier if
      waiting cannot help, for example because the node or the device plugin does not exist, or
      because the plugin's pod fails repeatedly.
    type: int
    default: 0
  rollout:
    description: >-
      Whether to also wait until all pods of this collection's device plugin, GPU feature
      discovery and exporter of metrics are available and of the newest template. Until then, nodes
      offer the resources of the previous pods. If only the rollout is incomplete at the end of
      O(wait_timeout), the module warns.
    type: bool
    default: false
  all_nodes:
    description: Whether to return nodes without GPUs as well.
    type: bool
    default: false
  plugin_namespace:
    description: >-
      Namespace of this collection's device plugin. If set, the module returns RV(plugin_objects).
    type: str
  plugin_vendor:
    description: The vendor of the device plugin in O(plugin_namespace).
    type: str
    choices: [nvidia, amd, intel]
    default: nvidia
  plugin_content:
    description:
      - Further objects of O(plugin_namespace) to return in RV(plugin_objects).
      - V(pods) returns the plugin's pods with name, node and start time only.
      - V(all) returns all pods, config maps, secrets, services, claims and daemon sets with name,
        labels and type only.
    type: str
    choices: [none, pods, all]
    default: none
  monitoring_namespace:
    description: >-
      Namespace of this collection's monitoring. If set, the module returns RV(monitoring).
    type: str
  metrics:
    description: >-
      Whether to verify that the exporter on each node of O(expected) with NVIDIA's GPUs has samples
      of all of them, by one scrape through the API server. See RV(metric_layers).
    type: bool
    default: false
  pods:
    description:
      - Pods to explain in RV(pods), as V(NAMESPACE/NAME). The name can also be that of the
        Deployment, StatefulSet or Job that makes the pods, also if it could make none.
      - Reads the pods, their events and logs, also in namespaces of others. Without permission to
        read a log, the module warns.
    type: list
    elements: str
    default: []
  dra_namespace:
    description: >-
      Namespace of this collection's DRA driver. If set, the module returns RV(kubernetes) and
      RV(dra_objects).
    type: str
attributes:
  check_mode:
    description: Reads the same objects in check mode.
    support: full
  diff_mode:
    description: Changes nothing.
    support: none
  platform:
    description: Runs on a host that reaches the API server.
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
    The nodes that have GPU resources or a device plugin's pod, or are in O(expected), by name.
    C(held) is the run that holds a node in maintenance; null if none does.
    C(dra) of a node is null, or the devices that DRA drivers published for it, with C(drivers),
    C(capacity) and C(allocatable) by device type, and C(taints). C(dra) of a resource is whether
    a DRA driver offers it.
  returned: always
  type: dict
  sample:
    gpu1:
      name: gpu1
      ready: true
      cordoned: false
      held: null
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
  description: The node of each key of O(expected); null if the cluster has none.
  returned: always
  type: dict
  sample: {gpu1.example.com: gpu1}
plugin_pods:
  description: >-
    Pods of device plugins and DRA drivers, with C(node), C(phase), C(ready), C(restarts) and the
    reason why they wait or terminated. For failures, also the last lines of the log and the
    findings in them.
  returned: always
  type: list
  elements: dict
discovery_pods:
  description: The same for the pods of this collection's GPU feature discovery.
  returned: always
  type: list
  elements: dict
exporter_pods:
  description: The same for the pods of exporters of GPU metrics, of any owner, without logs.
  returned: always
  type: list
  elements: dict
parts:
  description: >-
    Operators, device plugins, DRA drivers, feature discovery and exporters of the cluster, with
    C(kind), C(vendor), C(title), C(text) (a description with the location), C(workload),
    C(namespace), C(name), C(image), C(managed) (whether this collection manages it) and
    C(managed_by). If no workload of a DRA driver is recognized, its C(DeviceClass) is listed
    instead. A DRA driver that serves compute domains alone has the kind C(compute_domains).
  returned: always
  type: list
  elements: dict
foreign:
  description: The operators, device plugins and DRA drivers that this collection does not manage.
  returned: always
  type: list
  elements: dict
dra:
  description: >-
    The version of C(resource.k8s.io) that was read (null if the server has no supported one), all
    versions that are C(served), the device classes of NVIDIA's GPUs, and the number of resource
    C(slices) of each node.
  returned: always
  type: dict
  sample:
    version: v1
    served: [v1, v1beta2, v1beta1]
    slices: {gpu1: 1}
    classes:
      - {name: gpu.nvidia.com, driver: gpu.nvidia.com, type: gpu, resource: nvidia.com/gpu}
missing:
  description: >-
    The nodes that do not offer the expected resources, with C(key), C(node), C(expected),
    C(allocatable), C(pod), C(code), C(cause), C(evidence) and C(next_step). C(part) is
    V(device_plugin), or V(feature_discovery) if the node offers its GPUs but this collection's GPU
    feature discovery does not run there.
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
    The same as entries for P(kubegpu.nodes.gpu_report#filter), layer C(allocatable). If the
    cluster is unreachable, the task fails and the first entry has the cause.
  returned: success, and on failure if the task has C(failed_when)
  type: list
  elements: dict
metric_layers:
  description: >-
    Entries for P(kubegpu.nodes.gpu_report#filter), layer C(metrics), for the nodes of O(expected)
    with NVIDIA's GPUs.
  returned: with O(metrics)
  type: list
  elements: dict
pods:
  description: >-
    The pods of O(pods), with C(namespace), C(name), C(phase) (V(null) if there is no such pod),
    C(node), C(asks) (the GPUs that it asks for), and C(findings) with C(code), C(cause),
    C(evidence) and C(next_step). C(nodes) has, for a pod without a node, the nodes with such GPUs:
    C(name), C(fits), and C(because), what keeps the pod off.
  returned: always
  type: list
  elements: dict
  sample:
    - namespace: default
      name: train-0
      phase: Pending
      node: null
      asks: {nvidia.com/gpu: 2}
      findings:
        - code: no_node_matches
          cause: No node with 2 nvidia.com/gpu takes the pod default/train-0.
          evidence: "gpu1: the pod does not tolerate its taint team=a:NoSchedule"
          next_step: Add a toleration of the taint to the pod, or take the taint off the node.
      nodes:
        - name: gpu1
          fits: false
          because: ["the pod does not tolerate its taint team=a:NoSchedule"]
plugin_objects:
  description: >-
    The existing objects of this collection's device plugin, which are the namespace, the
    RuntimeClass C(nvidia), the DaemonSet and the objects selected by O(plugin_content). They are
    read last, after any waiting.
  returned: with O(plugin_namespace)
  type: list
  elements: dict
  sample:
    - {apiVersion: v1, kind: Namespace, metadata: {name: kubegpu}}
monitoring:
  description: >-
    The C(kinds) of the Prometheus operator that the cluster has, and the existing C(objects) of
    this collection's monitoring, with name, namespace and labels only. Those that an earlier run
    made in another namespace are among them.
  returned: with O(monitoring_namespace)
  type: dict
  sample:
    kinds: [ServiceMonitor, PodMonitor, PrometheusRule]
    objects:
      - {apiVersion: v1, kind: Namespace, metadata: {name: kubegpu}}
kubernetes:
  description: The version of the API server.
  returned: with O(dra_namespace)
  type: str
  sample: v1.34.2
dra_objects:
  description: >-
    The namespace and the objects of this collection's DRA driver, objects of others that have a
    name of these, the definitions of compute domains, and all compute domains, with name, namespace
    and labels only; policies have their C(spec) too.
  returned: with O(dra_namespace)
  type: list
  elements: dict
  sample:
    - {apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu.nvidia.com}}
waited:
  description: The time waited, in seconds.
  returned: always
  type: float
  sample: 4.2
requests:
  description: Number of requests to the API server, by verb.
  returned: always
  type: dict
  sample: {list: 4}
cause:
  description: What is wrong, with the name of the file, option or package.
  returned: failure
  type: str
evidence:
  description: What shows it, such as a line of a log; may be empty.
  returned: failure
  type: str
next_step:
  description: What you can do; may be empty.
  returned: failure
  type: str
"""


from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.asked_pods import (
    explain_pods,
    read_names,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import (
    build_result,
    build_unreachable,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.wait import wait
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    InternalOptionsModule,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    KUBE_ARGUMENTS,
    Cluster,
    read_connection,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.review import lacking
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.installed import (
    CONTENT,
    plugin_objects,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.names import PLUGINS
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.installed import (
    read_monitoring,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.verify import metric_layers
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.installed import dra_objects

# Of the actions of this collection, when a task lacks a right: which others are missing.
_INTERNAL = {"_rights": {"type": "list", "elements": "dict", "default": []}}


def main() -> None:
    module = InternalOptionsModule(
        internal=_INTERNAL,
        argument_spec={
            "expected": {"type": "dict", "default": {}},
            "wait_timeout": {"type": "int", "default": 0},
            "rollout": {"type": "bool", "default": False},
            "all_nodes": {"type": "bool", "default": False},
            "plugin_namespace": {"type": "str"},
            "plugin_vendor": {"type": "str", "choices": list(PLUGINS), "default": "nvidia"},
            "plugin_content": {"type": "str", "choices": list(CONTENT), "default": CONTENT[0]},
            "monitoring_namespace": {"type": "str"},
            "metrics": {"type": "bool", "default": False},
            "pods": {"type": "list", "elements": "str", "default": []},
            "dra_namespace": {"type": "str"},
            **KUBE_ARGUMENTS,
        },
        supports_check_mode=True,
    )
    namespace = module.params["plugin_namespace"]
    try:
        expected = read_expected(module.params["expected"])
        names = read_names(module.params["pods"], "pods")
    except KubegpuError as error:
        fail(module, error)
    try:
        cluster = Cluster.connect(read_connection(module.params))
        if module.params["_rights"]:
            found = lacking(cluster, module.params["_rights"])
            module.exit_json(changed=False, lacking=found, server=cluster.server.host)
        reader = Reader(cluster)
        snapshot, waited = wait(
            reader, expected, module.params["wait_timeout"], rollout=module.params["rollout"]
        )
        result = build_result(snapshot, expected, only_gpu=not module.params["all_nodes"])
        by_node = {state.name: item for item in expected if (state := snapshot.matches[item.key])}
        result["pods"] = explain_pods(reader, names, snapshot.states, by_node)
        if namespace:
            content = module.params["plugin_content"]
            vendor = module.params["plugin_vendor"]
            result["plugin_objects"] = plugin_objects(cluster, namespace, content, vendor)
        if module.params["monitoring_namespace"]:
            result["monitoring"] = read_monitoring(
                cluster, module.params["monitoring_namespace"], snapshot.view.parts
            )
        if module.params["metrics"]:
            result["metric_layers"] = metric_layers(cluster, snapshot, expected)
        if module.params["dra_namespace"]:
            result["kubernetes"] = str(cluster.version().get("gitVersion") or "")
            result["dra_objects"] = dra_objects(
                cluster, module.params["dra_namespace"], snapshot.view.dra.version
            )
    except KubegpuError as error:
        fail(module, error, layers=build_unreachable(expected, "allocatable", error))
    for note in [*snapshot.notes, *reader.notes]:
        module.warn(printable(note))
    module.exit_json(
        changed=False, waited=round(waited, 1), requests=dict(cluster.requests), **result
    )


if __name__ == "__main__":
    main()
