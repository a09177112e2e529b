# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_node_maintenance
short_description: Cordon, drain and release nodes of a Kubernetes cluster for maintenance
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes pods off nodes whose GPUs, driver or runtime are to be changed, and releases the nodes
    afterwards. One call serves many nodes, side by side.
  - Pods are evicted, so that their budgets (PodDisruptionBudget) count. An eviction that a budget
    forbids is tried again until O(timeout). The findings name the pod, the budget and its numbers.
  - Static pods, pods of DaemonSets and finished pods are kept. Pods without a controller and with
    data on the node's disk are refused unless O(unmanaged) and O(local_data) allow them.
  - A node is refused before anything is changed if one of its pods can never leave. For this the
    module asks the API server for each eviction by a dry run.
  - The annotation C(kubegpu.nodes/maintenance) is written in the same request as the cordon. It has
    the run, and whether the node was cordoned before. O(state=released) reverts only what it
    records. A node that another run holds is refused.
  - With the cordon, the node gets the annotation
    C(cluster-autoscaler.kubernetes.io/scale-down-disabled), so that cluster-autoscaler does not
    remove it while it is empty. O(state=released) restores what the annotation was.
  - If a node cannot be drained, and this call cordoned it, the call removes the cordon. The
    other nodes are done. The task fails and returns all results.
  - An interrupted run leaves nodes cordoned, with the annotation. The same task finishes it, and
    O(state=released) releases the nodes.
  - While it waits, the task prints which pods it waits for, after 30 seconds and then once a
    minute.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.kube
options:
  nodes:
    description: The nodes, by their name, or by any other key.
    type: dict
    required: true
    suboptions:
      NODE:
        description: >-
          The name of a node, or any other key, such as the name of the host. The value may be
          empty.
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
          boot_id:
            description: >-
              The boot of the host, as in C(gpu_node.os.boot_id). The node is ready only if its
              kubelet has reported this boot (see O(ready_timeout)).
            type: str
  state:
    description:
      - V(cordoned) keeps new pods off the nodes.
      - V(drained) cordons the nodes and takes pods off them.
      - V(released) releases nodes that this run holds. Nodes that no run holds are not changed.
    type: str
    choices: [cordoned, drained, released]
    required: true
  run:
    description: >-
      Name of the maintenance. It is recorded on the nodes, which only calls with the same name may
      change or release.
    type: str
    required: true
  reason:
    description: The reason, for people who read the annotation.
    type: str
    default: ""
  take_over:
    description: Whether to take over nodes of other runs. Use it for runs that have ended.
    type: bool
    default: false
  pods:
    description:
      - V(gpu) takes off pods that requested GPUs, parts of GPUs or MIG devices, also in init
        containers or by resource claims. Other pods are kept.
      - V(all) takes off pods without GPUs as well. Use it before a reboot, and if pods use GPUs
        that they did not request.
    type: str
    choices: [gpu, all]
    default: gpu
  pause_plugins:
    description:
      - Whether to set the label C(kubegpu.nodes/pause) on the nodes, in the same request as the
        cordon. Pods of DaemonSets whose node affinity excludes nodes with this label leave, and
        O(state=drained) waits for them.
      - O(state=cordoned) with V(false) removes the label if this run has set it, so that these pods
        come back to nodes that are still cordoned. O(state=released) removes it too.
    type: bool
    default: false
  keep_labels:
    description: >-
      Pods with all of these labels are kept, and do not hold up the drain. Without any label, the
      option has no effect.
    type: dict
    default: {kubegpu.nodes/maintenance: keep}
  wait_for:
    description: >-
      Pods that get time to finish before their node is drained. By default, no pods. A pod must
      meet all conditions.
    type: dict
    suboptions:
      owners:
        description: Kinds of the pod's controller. An empty list means all pods.
        type: list
        elements: str
        default: [Job]
      labels:
        description: Labels of the pod.
        type: dict
        default: {}
      namespaces:
        description: Namespaces of the pod. An empty list means all.
        type: list
        elements: str
        default: []
      timeout:
        description: Time limit in seconds. O(timeout) begins after it.
        type: int
        default: 3600
      on_timeout:
        description: >-
          V(refuse) fails the nodes whose pods have not finished. V(evict) takes these pods off as
          other pods.
        type: str
        choices: [refuse, evict]
        default: refuse
  unmanaged:
    description: >-
      What happens to pods without a controller, which nothing creates again. V(refuse) refuses the
      node. V(delete) evicts them for good.
    type: str
    choices: [refuse, delete]
    default: refuse
  local_data:
    description:
      - Which C(emptyDir) volumes pods may lose. V(refuse) means none, V(delete) means all.
      - V(memory) means only those with C(medium=Memory), such as C(/dev/shm).
    type: str
    choices: [refuse, memory, delete]
    default: memory
  grace_period:
    description: >-
      Seconds that each pod gets to end. By default, the pod's own grace period. V(0) kills pods at
      once.
    type: int
  eviction:
    description: >-
      V(evict) respects budgets. V(delete) deletes the pods regardless of budgets, which needs the
      right to delete pods. The module never falls back to it.
    type: str
    choices: [evict, delete]
    default: evict
  timeout:
    description: >-
      Time limit of the drain of each node in seconds, without the time of O(wait_for). Pods with a
      longer grace period need a larger value.
    type: int
    default: 900
  poll:
    description: Longest time in seconds between two attempts for a pod.
    type: int
    default: 5
  concurrency:
    description: Number of requests to the API server in parallel.
    type: int
    default: 8
  ready_timeout:
    description: >-
      Seconds that nodes get to become ready, with O(state=cordoned). A node that is not ready by
      then fails. With V(0), readiness is not checked.
    type: int
    default: 0
  lease:
    description:
      - A Lease object that the run holds while it changes nodes. Each call takes or renews it. If
        another run holds it, no node is changed, and each has the finding C(lease_held).
      - A Lease is free if it was not renewed for its duration, or if the process of its run has
        ended on this controller.
    type: dict
    suboptions:
      name:
        description: Name of the Lease.
        type: str
        required: true
      namespace:
        description: Its namespace, which is created if it does not exist.
        type: str
        default: kubegpu
      duration:
        description: Seconds after which it is free, unless it was renewed.
        type: int
        default: 3600
      done:
        description: Whether to release it after this call.
        type: bool
        default: false
attributes:
  check_mode:
    description: >-
      Asks the API server by dry runs whether each pod could be evicted now. If no budget, pod or
      node changes in between, the real run has the same result. Jobs and pods that end are assumed
      to end in time.
    support: full
  platform:
    description: Runs on a host that reaches the API server.
    platforms: posix
    support: full
seealso:
  - module: kubegpu.nodes.node_gpu_label
  - module: kubegpu.nodes.gpu_cluster_info
  - module: kubernetes.core.k8s_drain
"""

EXAMPLES = r"""
- name: Take two nodes out, and let jobs finish for two hours
  kubegpu.nodes.gpu_node_maintenance:
    kubeconfig: ~/.kube/config
    nodes: {gpu1: {}, gpu2: {}}
    state: drained
    run: new-power-supplies
    pods: all
    wait_for: {timeout: 7200}
  delegate_to: localhost
  become: false
  run_once: true

- name: Release them
  kubegpu.nodes.gpu_node_maintenance:
    kubeconfig: ~/.kube/config
    nodes: {gpu1: {}, gpu2: {}}
    state: released
    run: new-power-supplies
  delegate_to: localhost
  become: false
  run_once: true

- name: See what would block a drain
  kubegpu.nodes.gpu_node_maintenance:
    nodes:
      gpu1.example.com: {machine_id: 2d9ad6e6ed1c4bd1b4f1f1bb2e4bbd2d}
      gpu2.example.com: {name: node-gpu2}
    state: drained
    run: upgrade
  check_mode: true
  delegate_to: localhost
  become: false
  run_once: true
  register: preflight
  # The findings of all nodes are shown, not only those of the first that fails.
  failed_when: false
"""

RETURN = r"""
ok:
  description: Whether all nodes are in the requested state.
  returned: when the nodes could be listed
  type: bool
  sample: true
nodes:
  description: The nodes, by the keys of the option O(nodes).
  returned: when the nodes could be listed
  type: dict
  contains:
    node:
      description: The node's name; V(null) if the cluster has none for this key.
      returned: always
      type: str
      sample: gpu1
    ok:
      description: Whether the node is in the requested state.
      returned: always
      type: bool
      sample: true
    changed:
      description: Whether the node was changed or a pod was evicted (in check mode, would be).
      returned: always
      type: bool
      sample: true
    ready:
      description: Whether the node is ready.
      returned: always
      type: bool
      sample: true
    boot_id:
      description: The boot that the kubelet has reported.
      returned: always
      type: str
      sample: 5f0b1c9e-0a4d-4f0e-9a3e-7f2b5f1f4c11
    unschedulable:
      description: Whether the node is cordoned now.
      returned: always
      type: bool
      sample: true
    was_unschedulable:
      description: Whether the node was cordoned before the maintenance began.
      returned: always
      type: bool
      sample: false
    held_by:
      description: The run that holds the node now.
      returned: always
      type: str
      sample: new-power-supplies
    found:
      description: >-
        What C(unschedulable) and C(held_by) were when the node was read. In check mode, the other
        values are those that the node would have.
      returned: when the cluster has the node
      type: dict
      sample: {unschedulable: false, held_by: null}
    evicted:
      description: >-
        The pods that were evicted or deleted, with C(namespace), C(name), C(owner), C(gpus), and
        C(seconds) from the beginning of the drain until the pod was gone. C(seconds) is null in
        check mode, and for pods that are still there.
      returned: always
      type: list
      elements: dict
      sample: [{namespace: ml, name: web-0, owner: StatefulSet/web, gpus: 1, seconds: 3.1}]
    waiting:
      description: >-
        Pods that have not left, with the same keys. C(why) is V(evict) for a pod to be evicted,
        V(leaves) for one that ends, V(waits) for one that may finish. C(deletion) is the time by
        which the pod should have ended. C(code) and C(cause) are those of the last refusal.
      returned: always
      type: list
      elements: dict
      sample: []
    kept:
      description: >-
        Pods that are kept, with the same keys. C(why) is V(label), V(static) or V(daemonset). Pods
        without GPUs that O(pods=gpu) leaves are omitted.
      returned: always
      type: list
      elements: dict
      sample: [{namespace: kube-system, name: proxy-x, owner: DaemonSet/proxy, gpus: 0,
                why: daemonset}]
    without_request:
      description: >-
        Pods that remain and may use GPUs that they did not request, so that the driver cannot be
        unloaded. C(sign) is why: a RuntimeClass of NVIDIA, C(NVIDIA_VISIBLE_DEVICES), or devices of
        the host. After a drain.
      returned: always
      type: list
      elements: dict
      sample: [{namespace: monitoring, name: dcgm-x, sign: RuntimeClass nvidia}]
    containers:
      description: >-
        The containers of pods that are kept, by the first 12 characters of their IDs, with
        namespace and name of the pod. After a drain.
      returned: always
      type: dict
      sample: {4f2a9c1d5e6b: monitoring/dcgm-x}
    findings:
      description: >-
        Why the node is not in the requested state, with C(code), C(cause), C(evidence),
        C(next_step), and C(pod) (namespace and name) if it is a pod's. If a budget forbids the
        eviction, C(budget) is its name, C(needs) the number of healthy pods that it needs, and
        C(has) the current number.
      returned: always
      type: list
      elements: dict
      sample:
        - code: pdb_blocks
          cause: >-
            The budget web does not let the pod ml/web-0 go: it needs 1 healthy pods and has 1.
          evidence: Cannot evict pod as it would violate the pod's disruption budget.
          next_step: Give its workload one more replica.
          pod: ml/web-0
          budget: web
          needs: 1
          has: 1
lease_process:
  description: The process that holds the Lease, if it is that of another run.
  returned: with O(lease)
  type: str
  sample: ""
requests:
  description: Number of requests to the API server, by verb.
  returned: when the nodes could be listed
  type: dict
  sample: {list: 3, patch: 1, create: 2, get: 4}
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

import typing

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    InternalOptionsModule,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    KUBE_ARGUMENTS,
    Cluster,
    read_connection,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.apply import Maintenance
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.options import (
    ARGUMENTS,
    INTERNAL,
    read_request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.result import (
    build_result,
    failure,
    progress,
)

_ARGUMENT_SPEC: dict[str, dict[str, typing.Any]] = {
    **KUBE_ARGUMENTS,
    **ARGUMENTS,
}


def main() -> None:
    module = InternalOptionsModule(
        argument_spec=_ARGUMENT_SPEC, internal=INTERNAL, supports_check_mode=True
    )
    params = module.params
    try:
        maintenance = Maintenance(
            request=read_request(params),
            cluster=Cluster.connect(read_connection(params)),
            dry_run=module.check_mode,
            limit=params["_slice"],
            carried=params["_carry"] or {},
        )
        rows = maintenance.run()
    except KubegpuError as error:
        fail(module, error)
    for note in maintenance.notes:
        module.warn(printable(note))
    values = {**build_result(rows), "requests": dict(maintenance.cluster.requests)}
    if params["lease"]:
        values["lease_process"] = maintenance.lease_process
    if not module._diff:
        del values["diff"]
    pending = maintenance.carry(rows) if params["_slice"] else {}
    if pending:
        module.exit_json(**values, _carry=pending, _progress=progress(rows))
    wrong = failure(rows, params["state"])
    if wrong is not None:
        fail(module, wrong, **values)
    module.exit_json(**values)


if __name__ == "__main__":
    main()
