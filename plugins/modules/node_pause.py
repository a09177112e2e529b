# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_pause
short_description: Pause Kubernetes nodes while their GPUs are changed
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Gives nodes the label C(kubegpu.nodes/pause), which the pods of this collection's DaemonSets
    avoid (NVIDIA's device plugin, MPS control daemon and GPU feature discovery, the device plugins
    of AMD and Intel, DCGM's exporter, the DRA driver), cordons the nodes that are schedulable, and
    waits until these pods have left. A node without the annotation
    C(cluster-autoscaler.kubernetes.io/scale-down-disabled) gets it for the time of the pause.
  - Refuses a node with pods that use GPUs, before any change and with their names, unless
    O(allow_pods=true).
  - V(absent) removes the label, and uncordons the nodes that this module cordoned.
  - Label and cordon have the field manager of M(kubegpu.nodes.node_gpu_label). So that module ends
    a pause that an interrupted run left.
  - Hosts without a node in the cluster are left out, see RV(nodes).
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.kube
attributes:
  check_mode:
    description: >-
      Can run in C(check_mode): refuses the same nodes, and the API server validates the change
      (C(dryRun)). Does not wait.
    support: full
  diff_mode:
    description: A pause is ended by the run that began it.
    support: none
  platform:
    description: Runs on a host that reaches the API server.
    platforms: posix
    support: full
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
  state:
    description: V(present) pauses the nodes, V(absent) ends the pause.
    type: str
    choices: [present, absent]
    default: present
  reason:
    description: >-
      The value of the label. A node that is paused for another reason is left as it is by either
      O(state).
    type: str
    required: true
  allow_pods:
    description: Pause nodes with pods that use GPUs as well. These pods continue.
    type: bool
    default: false
  timeout:
    description: Seconds to wait until the pods of this collection have left.
    type: int
    default: 120
  field_manager:
    description: Field manager of label and cordon; the same as that of the labels.
    type: str
    default: kubegpu.nodes
seealso:
  - module: kubegpu.nodes.node_gpu_label
  - module: kubernetes.core.k8s_drain
"""

EXAMPLES = r"""
- name: Pause a node
  kubegpu.nodes.node_pause:
    kubeconfig: /home/ops/.kube/config
    nodes:
      gpu1.example.com:
        machine_id: 2d9ad6e6ed1c4bd1b4f1f1bb2e4bbd2d
    reason: maintenance
  delegate_to: localhost

- name: End its pause
  kubegpu.nodes.node_pause:
    kubeconfig: /home/ops/.kube/config
    nodes:
      gpu1.example.com: {}
    reason: maintenance
    state: absent
  delegate_to: localhost
"""

RETURN = r"""
nodes:
  description: The hosts, by the keys of the option O(nodes).
  returned: when the nodes could be listed
  type: dict
  contains:
    node:
      description: The node's name; V(null) if the cluster has none for this key.
      returned: always
      type: str
      sample: gpu1.example.com
    changed:
      description: Whether the node was changed (in check mode, would have been).
      returned: always
      type: bool
      sample: true
    paused:
      description: The reason of the node's pause; empty if it is not paused.
      returned: always
      type: str
      sample: mig
    cordoned:
      description: Whether this module cordoned the node.
      returned: always
      type: bool
      sample: true
    pods:
      description: Pods on the node that use GPUs, with O(allow_pods=true).
      returned: always
      type: list
      elements: str
      sample: []
    left:
      description: DaemonSets of this collection whose pods left the node.
      returned: always
      type: list
      elements: str
      sample: [kubegpu/kubegpu-nvidia-device-plugin]
    containers:
      description: IDs of the containers of these pods. In check mode they still run.
      returned: always
      type: list
      elements: str
      sample: [3f4b1c0d5a6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708]
requests:
  description: How many requests were made, by verb.
  returned: when the nodes could be listed
  type: dict
  sample: {list: 4, patch: 1}
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

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.pause import (
    Pauser,
    Settings,
    failure,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    FIELD_MANAGER,
    KUBE_ARGUMENTS,
    Cluster,
    read_connection,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.options import (
    check_label,
    read_requests,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.pause import PAUSE


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBE_ARGUMENTS,
            "nodes": {"type": "dict", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "reason": {"type": "str", "required": True},
            "allow_pods": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 120},
            "field_manager": {"type": "str", "default": FIELD_MANAGER},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        requests = read_requests(params["nodes"])
        check_label("reason", PAUSE, params["reason"])
        cluster = Cluster.connect(read_connection(params))
        settings = Settings(
            params["reason"], params["field_manager"], params["allow_pods"], params["timeout"]
        )
        pauser = Pauser(cluster, settings, module.check_mode)
        outcomes = (pauser.pause if params["state"] == "present" else pauser.resume)(requests)
    except KubegpuError as error:
        fail(module, error)
    result = {
        "changed": any(one.changed for one in outcomes.values()),
        "nodes": {key: one.to_json() for key, one in outcomes.items()},
        "requests": dict(cluster.requests),
    }
    wrong = failure(outcomes)
    if wrong is not None:
        fail(module, wrong, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
