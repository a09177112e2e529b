# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_gpu_label
short_description: Manage labels, annotations and taints of the nodes of a Kubernetes cluster
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Sets labels, annotations and taints of nodes, and removes those that it set before and that are
    no longer requested. One call serves all nodes. Nodes that are not named are never changed.
  - The nodes are listed once, in pages. Only nodes that differ are patched, several in parallel. If
    no node differs, the list is the only request.
  - Labels and annotations are set by server-side apply with a separate field manager
    (O(field_manager)). The API server removes fields that this manager applied before and no longer
    applies. Fields of other managers are kept.
  - A label that another manager owns with another value is a conflict. The module keeps it, makes
    all other changes, and fails with the name of the owner, unless O(force_conflicts=true).
  - The taints of a node are a single list, which server-side apply would replace as a whole. So the
    module changes only its own taints in the list that it read, with the resource version, and
    records them in the annotation C(kubegpu.nodes/taints).
  - A node is found by the machine ID of its host if given, otherwise by name. The module refuses a
    host whose machine ID belongs to a node other than the one with its name, and hosts or nodes
    with the same machine ID that their names do not distinguish. It skips them, changes the other
    nodes, and then fails.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.kube
attributes:
  check_mode:
    description: >-
      Can run in C(check_mode) and returns the same C(changed) and diff as the real run. The API
      server validates each change (C(dryRun)), so that missing permissions and conflicts are
      reported.
    support: full
  platform:
    description: Runs on a host that reaches the API server.
    platforms: posix
    support: full
options:
  nodes:
    description:
      - The desired state of each node, by its name, or by any other key with
        O(nodes.NODE.name) or O(nodes.NODE.machine_id).
      - All that this module set before on a node with an empty value is removed.
    type: dict
    required: true
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
          labels:
            description: Labels by name. A label with V(null) is omitted.
            type: dict
          annotations:
            description: Annotations by name. An annotation with V(null) is omitted.
            type: dict
          taints:
            description: Taints.
            type: list
            elements: dict
            suboptions:
              key:
                description: The key.
                type: str
                required: true
              value:
                description: The value, a text, a number or a boolean.
                type: raw
              effect:
                description: The effect.
                type: str
                choices: [NoSchedule, PreferNoSchedule, NoExecute]
                required: true
          drop_taints:
            description: Keys of taints to remove, whoever set them.
            type: list
            elements: str
  field_manager:
    description:
      - Name of the field manager that owns the labels. After a change of the name, labels of
        earlier runs belong to another manager.
    type: str
    default: kubegpu.nodes
  force_conflicts:
    description:
      - Whether to take over fields that other managers own with another value.
    type: bool
    default: false
  fail_uncertain:
    description:
      - Whether the module fails if it is not certain which node a key is. All that is known of
        these keys is in RV(refusals) in any case.
    type: bool
    default: true
  feature_discovery:
    description:
      - Whether NVIDIA's GPU feature discovery labels this cluster. If so, the module does not set
        labels with its names, such as C(nvidia.com/gpu.product).
      - V(auto) detects it from the labels of the nodes and their owners. V(present) is for a run
        that deploys it later.
    type: str
    choices: [auto, present, absent]
    default: auto
  concurrency:
    description: Number of nodes to patch in parallel.
    type: int
    default: 8
seealso:
  - module: kubegpu.nodes.gpu_node_facts
  - module: kubegpu.nodes.gpu_cluster_info
  - plugin: kubegpu.nodes.gpu_node_labels
    plugin_type: filter
  - module: kubernetes.core.k8s_taint
  - name: Kubernetes
    description: Labels of this collection, rights, and how hosts and nodes are matched.
    link: https://kubegpu.example/nodes/blob/main/docs/kubernetes.md
"""

EXAMPLES = r"""
- name: Label two nodes in one call
  kubegpu.nodes.node_gpu_label:
    kubeconfig: /home/ops/.kube/config
    context: production
    nodes:
      gpu1.example.com:
        labels:
          accelerator: nvidia-tesla-p100
        taints:
          - {key: nvidia.com/gpu, value: present, effect: NoSchedule}
      # Any key; the machine ID finds the node, whatever its name in the cluster is.
      gpu2:
        machine_id: 2d9ad6e6ed1c4bd1b4f1f1bb2e4bbd2d
        labels:
          accelerator: nvidia-tesla-p100
  delegate_to: localhost
  become: false
  run_once: true

- name: Label the node of each host with what its facts show
  kubegpu.nodes.node_gpu_label:
    kubeconfig: /home/ops/.kube/config
    nodes: "{{ {inventory_hostname: wanted} }}"
  vars:
    wanted:
      machine_id: "{{ ansible_facts['gpu_node'].os.machine_id }}"
      labels: "{{ ansible_facts['gpu_node'] | kubegpu.nodes.gpu_node_labels }}"
  delegate_to: localhost
  become: false

- name: Set a label that another manager may own
  kubegpu.nodes.node_gpu_label:
    nodes:
      gpu1.example.com:
        labels: {accelerator: nvidia-tesla-p100}
  delegate_to: localhost
  become: false
  run_once: true
  register: labelled
  failed_when: labelled.conflicts is not defined

- name: Show who owns it, and its value
  ansible.builtin.debug:
    msg: "{{ item.node }}: {{ item.name }} is {{ item.value }}, set by {{ item.owner }}"
  loop: "{{ labelled.conflicts }}"

- name: Take it over
  kubegpu.nodes.node_gpu_label:
    nodes:
      gpu1.example.com:
        labels: {accelerator: nvidia-tesla-p100}
    force_conflicts: true
  delegate_to: localhost
  become: false
  run_once: true

- name: Remove a taint that somebody else has set
  kubegpu.nodes.node_gpu_label:
    nodes:
      gpu1.example.com:
        labels: {kubegpu.nodes/gpu: nvidia}
        drop_taints: [example.com/new-node]
  delegate_to: localhost
  become: false
  run_once: true

- name: Connect by address, token and CA instead of a kubeconfig
  kubegpu.nodes.node_gpu_label:
    host: https://10.0.0.1:6443
    api_key: "{{ labels_token }}"
    ca_cert: /etc/kubernetes/pki/ca.crt
    nodes:
      gpu1.example.com:
        labels: {kubegpu.nodes/gpu: nvidia}
  delegate_to: localhost
  become: false
  run_once: true

- name: Remove the labels, annotations and taints of this module
  kubegpu.nodes.node_gpu_label:
    nodes:
      gpu1.example.com: {}
  delegate_to: localhost
  become: false
  run_once: true
"""

RETURN = r"""
nodes:
  description: The nodes, by the keys of the option O(nodes).
  returned: when the nodes could be listed
  type: dict
  contains:
    node:
      description: The node's name; V(null) if the cluster has none for this key.
      returned: always
      type: str
      sample: gpu1.example.com
    found_by:
      description: V(machine_id) or V(name).
      returned: always
      type: str
      sample: machine_id
    ready:
      description: Whether the node is ready.
      returned: always
      type: bool
      sample: true
    changed:
      description: Whether the node was changed (in check mode, would have been).
      returned: always
      type: bool
      sample: true
    added:
      description: The names of the applied labels that the node did not have before.
      returned: always
      type: list
      elements: str
      sample: [kubegpu.nodes/gpu]
    labels:
      description: The labels that this field manager now owns.
      returned: always
      type: dict
      sample: {kubegpu.nodes/gpu: nvidia}
    annotations:
      description: The annotations that this field manager now owns.
      returned: always
      type: dict
      sample: {}
    taints:
      description: The taints that this field manager now owns.
      returned: always
      type: list
      elements: dict
      sample: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
unknown:
  description: Keys for which the cluster has no node. The other nodes are processed.
  returned: when the nodes could be listed
  type: list
  elements: str
  sample: [gpu7.example.com]
not_ready:
  description: Requested nodes that are not ready. They are labelled too.
  returned: when the nodes could be listed
  type: list
  elements: str
  sample: []
conflicts:
  description: Labels, annotations and taints of other owners that were not changed.
  returned: when the nodes could be listed
  type: list
  elements: dict
  contains:
    node:
      description: The node.
      returned: always
      type: str
      sample: gpu1.example.com
    kind:
      description: V(label), V(annotation) or V(taint).
      returned: always
      type: str
      sample: label
    name:
      description: Name of the label or annotation; key and effect of the taint.
      returned: always
      type: str
      sample: accelerator
    label:
      description: The same as C(name).
      returned: always
      type: str
      sample: accelerator
    owner:
      description: The field manager that owns it, such as C(kubectl-label).
      returned: always
      type: str
      sample: kubectl-label
    value:
      description: The current value.
      returned: always
      type: str
      sample: nvidia-tesla-k80
    wanted:
      description: The requested value.
      returned: always
      type: str
      sample: nvidia-tesla-p100
errors:
  description: The nodes that failed for another reason, with that reason.
  returned: when the nodes could be listed
  type: dict
  sample: {}
refused:
  description: >-
    The keys of which it is not certain which node they are, with the reason. Nothing was done for
    them.
  returned: when the nodes could be listed
  type: dict
  sample: {}
refusals:
  description: The same reasons with C(cause), C(evidence) and C(next_step), as a list for each key.
  returned: when the nodes could be listed
  type: dict
  sample: {}
feature_discovery:
  description: Whether GPU feature discovery labels this cluster.
  returned: when the nodes could be listed
  type: bool
  sample: false
left_to_feature_discovery:
  description: Labels that were left to it.
  returned: when the nodes could be listed
  type: list
  elements: str
  sample: [nvidia.com/gpu.product]
requests:
  description: How many requests were made, by verb.
  returned: when the nodes could be listed
  type: dict
  sample: {list: 1, patch: 3}
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

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    AT_ONCE,
    FIELD_MANAGER,
    KUBE_ARGUMENTS,
    Cluster,
    read_connection,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.apply import (
    Labeller,
    Settings,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.options import read_requests
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.result import failure
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable

ARGUMENTS: dict[str, dict[str, typing.Any]] = {
    **KUBE_ARGUMENTS,
    "nodes": {"type": "dict", "required": True},
    "field_manager": {"type": "str", "default": FIELD_MANAGER},
    "force_conflicts": {"type": "bool", "default": False},
    "fail_uncertain": {"type": "bool", "default": True},
    "feature_discovery": {
        "type": "str",
        "choices": ["auto", "present", "absent"],
        "default": "auto",
    },
    "concurrency": {"type": "int", "default": AT_ONCE},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    try:
        requests = read_requests(params["nodes"])
        cluster = Cluster.connect(read_connection(params))
        settings = Settings(
            field_manager=params["field_manager"],
            force=params["force_conflicts"],
            feature_discovery=params["feature_discovery"],
            concurrency=max(1, params["concurrency"]),
        )
        result = Labeller(cluster, settings, module.check_mode)(requests)
    except KubegpuError as error:
        fail(module, error)
    for warning in result.warnings:
        module.warn(printable(warning))
    values = result.to_json(cluster.requests)
    if not module._diff:
        # For 500 nodes the diff is a large part of the output.
        del values["diff"]
    wrong = failure(result)
    only_refused = result.refused and not (result.errors or result.conflicts)
    if wrong is not None and (params["fail_uncertain"] or not only_refused):
        cause, evidence, step = (wrong[name] for name in ("cause", "evidence", "next_step"))
        fail(module, KubegpuError(cause, evidence=evidence, next_step=step), **values)
    module.exit_json(**values)


if __name__ == "__main__":
    main()
