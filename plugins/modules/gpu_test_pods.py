# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_test_pods
short_description: Run a test pod with a GPU on each node, and report the results
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Creates one pod on each node, in parallel, that requests a GPU like any workload, reads its log,
    and deletes it. The failure of a pod is explained.
  - Pods are always deleted, even if the module is interrupted or terminated. Pods of a killed run
    end by themselves after O(timeout), and are deleted by the next run.
  - If other pods hold all GPUs of a node, no pod is created there, C(ok) is null, and the other
    pods are named. A node on which no device plugin offers any GPU is a failure.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.kube
options:
  state:
    description: >-
      V(tested) runs the pods. V(absent) deletes all test pods, and the namespace if this
      collection created it and it is unused (O(remove_namespace)).
    type: str
    choices: [tested, absent]
    default: tested
  nodes:
    description: >-
      The nodes, by any key. The key is the node's name, unless C(name) or C(machine_id) is given.
      C(resources) are the GPU resources that the node should offer, as name and count. C(driver),
      C(gpus) and C(facts), from the node's facts, make explanations more precise.
    type: dict
    default: {}
  image:
    description: >-
      The image, by tag or by digest (C(@sha256:...)). The default is NVIDIA's vector addition
      sample, with an old version of CUDA, so that old drivers can run it too.
    type: str
    default: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda11.7.1-ubuntu20.04
  command:
    description: Command of the container. By default, the image's own.
    type: list
    elements: str
    default: []
  args:
    description: Arguments of the command.
    type: list
    elements: str
    default: []
  env:
    description: Environment variables of the container.
    type: dict
    default: {}
  expect:
    description: Regular expression that one of the last 1000 lines of the log must match.
    type: str
    default: Test PASSED
  amd:
    description:
      - What a pod runs that requests GPUs of AMD, instead of O(image), O(command), O(args) and
        O(expect). The default shows that the container has C(/dev/kfd) and the render node of its
        GPU; an image with ROCm and C(rocminfo) shows more.
      - A node with GPUs of NVIDIA and another vendor is tested with NVIDIA's.
    type: dict
    suboptions:
      image: &image
        description: The image, by tag or by digest.
        type: str
        default: docker.io/library/busybox:1.37.0
      command:
        description: Command of the container. The default lists the device nodes.
        type: list
        elements: str
        default:
          - sh
          - -c
          - >-
            for node in /dev/kfd /dev/dri/renderD*;
            do test -c $node || exit 1; echo given $node; done
      args: &args
        description: Arguments of the command.
        type: list
        elements: str
        default: []
      expect: &expect
        description: Regular expression that one of the last 1000 lines of the log must match.
        type: str
        default: ^given /dev/dri/renderD\d+
  intel:
    description: The same for GPUs of Intel.
    type: dict
    suboptions:
      image: *image
      command:
        description: Command of the container. The default lists the device nodes.
        type: list
        elements: str
        default:
          - sh
          - -c
          - >-
            for node in /dev/dri/renderD*;
            do test -c $node || exit 1; echo given $node; done
      args: *args
      expect: *expect
  count:
    description: Number of GPUs that each pod requests.
    type: int
    default: 1
  runtime_class:
    description: >-
      RuntimeClass of the pods. V(auto) is that of the cluster's device plugin, and none on a node
      whose GPUs are managed by a DRA driver. An empty value is the runtime's default.
    type: str
    default: auto
  tolerations:
    description: >-
      Tolerations of the pods, as in a pod's specification. The default tolerates all taints with
      the effect C(NoSchedule).
    type: list
    elements: dict
    default: [{operator: Exists, effect: NoSchedule}]
  namespace:
    description: Namespace of the pods. It is created if it does not exist.
    type: str
    default: kubegpu
  remove_namespace:
    description: Delete the namespace too, with O(state=absent).
    type: bool
    default: true
  pull_policy:
    description: When the image is pulled, as C(imagePullPolicy) of a container.
    type: str
    choices: [IfNotPresent, Always, Never]
    default: IfNotPresent
  pull_secrets:
    description: Names of secrets in O(namespace) for pulling the image.
    type: list
    elements: str
    default: []
  priority_class:
    description: Priority class of the pods. By default, the cluster's own.
    type: str
    default: ""
  run_as_user:
    description: >-
      User ID in the container. With any value except V(0), the pods meet the Pod Security level
      C(restricted).
    type: int
    default: 65532
  busy:
    description: >-
      Result of a node whose GPUs are all held by other pods. With V(skip), it could not be tested
      (C(ok) is null). With V(fail), it failed.
    type: str
    choices: [skip, fail]
    default: skip
  timeout:
    description: Time limit of a pod in seconds, including the pull of its image.
    type: int
    default: 180
attributes:
  check_mode:
    description: >-
      Predicts whether anything would change. No pod is created, so that C(ok) is null for each
      node on which one would be created.
    support: partial
    details: The result of a pod is unknown until it has run.
  diff_mode:
    description: Test pods are temporary. There is no diff.
    support: none
  idempotent:
    description: Each run creates its pods and deletes them, so that nothing has changed afterwards.
    support: full
  platform:
    description: Runs on a host that can reach the API server.
    platforms: posix
    support: full
"""

EXAMPLES = r"""
- name: Test a GPU of each node
  kubegpu.nodes.gpu_test_pods:
    kubeconfig: ~/.kube/config
    nodes:
      gpu1: {resources: {nvidia.com/gpu: 4}}
      gpu2: {resources: {nvidia.com/gpu: 8}}
  delegate_to: localhost
  become: false
  run_once: true
  register: tested

- name: Use another image
  kubegpu.nodes.gpu_test_pods:
    nodes: {gpu1: {}}
    image: registry.example/cuda/samples:12.8
    command: [sh, -c, "nvidia-smi -L && /samples/vectorAdd"]
    expect: Test PASSED
    pull_secrets: [registry]
  delegate_to: localhost
  become: false
  run_once: true
"""

RETURN = r"""
nodes:
  description: >-
    The result of each node, by the keys of O(nodes): C(node), C(ok) (true, false, or null if it
    could not be tested), C(code), C(cause), C(evidence), C(next_step), C(proof), C(pod),
    C(resource), C(seconds) and the last lines of the C(log).
  returned: when O(state=tested)
  type: dict
  sample:
    gpu1:
      node: gpu1
      ok: true
      code: ""
      cause: ""
      evidence: ""
      next_step: ""
      proof: "a pod with 1 nvidia.com/gpu said 'Test PASSED'"
      pod: kubegpu/gpu-verify-gpu1-5d1f3c20
      resource: nvidia.com/gpu
      seconds: 3.1
      log: ["[Vector addition of 50000 elements]", "Test PASSED", "Done"]
layers:
  description: >-
    The results in the form of the layers of M(kubegpu.nodes.gpu_node_verify), layer C(pod). If the
    cluster cannot be queried, the task fails, and the first entry says why.
  returned: when O(state=tested), unless an option has a wrong value
  type: list
  elements: dict
changes:
  description: Changes in the cluster, without the pods of this run.
  returned: always
  type: list
  elements: str
  sample: ["namespace kubegpu made"]
requests:
  description: Number of requests to the API server, by verb.
  returned: always
  type: dict
  sample: {list: 5, create: 2, delete: 2, get: 3}
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
import uuid

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import build_unreachable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.process import (
    is_alive,
    own_identity,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.signals import (
    Interrupted,
    ignore_signals,
    raise_on_signals,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    KUBE_ARGUMENTS,
    Cluster,
    read_connection,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._test_pods.apply import PodTests
from ansible_collections.kubegpu.nodes.plugins.module_utils._test_pods.options import (
    IMAGE,
    TOLERATIONS,
    read_options,
    sample_argument,
)

_ARGUMENT_SPEC: dict[str, typing.Any] = {
    "state": {"type": "str", "choices": ["tested", "absent"], "default": "tested"},
    "nodes": {"type": "dict", "default": {}},
    "image": {"type": "str", "default": IMAGE},
    "command": {"type": "list", "elements": "str", "default": []},
    "args": {"type": "list", "elements": "str", "default": []},
    "env": {"type": "dict", "default": {}},
    "expect": {"type": "str", "default": "Test PASSED"},
    "count": {"type": "int", "default": 1},
    "runtime_class": {"type": "str", "default": "auto"},
    "tolerations": {"type": "list", "elements": "dict", "default": [*TOLERATIONS]},
    "amd": sample_argument("amd"),
    "intel": sample_argument("intel"),
    "namespace": {"type": "str", "default": "kubegpu"},
    "remove_namespace": {"type": "bool", "default": True},
    "pull_policy": {
        "type": "str",
        "choices": ["IfNotPresent", "Always", "Never"],
        "default": "IfNotPresent",
    },
    # Names only; the secrets stay in the cluster.
    "pull_secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "priority_class": {"type": "str", "default": ""},
    "run_as_user": {"type": "int", "default": 65532},
    "busy": {"type": "str", "choices": ["skip", "fail"], "default": "skip"},
    "timeout": {"type": "int", "default": 180},
    **KUBE_ARGUMENTS,
}


def main() -> None:
    module = AnsibleModule(argument_spec=_ARGUMENT_SPEC, supports_check_mode=True)
    result: dict[str, typing.Any] = {}
    try:
        request, nodes = read_options(module.params), read_expected(module.params["nodes"])
    except KubegpuError as error:
        fail(module, error)
    is_test = module.params["state"] == "tested"
    try:
        tests = PodTests(
            reader=Reader(Cluster.connect(read_connection(module.params))),
            request=request,
            run_id=uuid.uuid4().hex[:12],
            owner=own_identity(),
            alive=is_alive,
            before_cleanup=ignore_signals,
            check_mode=module.check_mode,
        )
        raise_on_signals()
        if not is_test:
            tests.absent(module.params["remove_namespace"])
        elif nodes:
            result = tests.test(nodes, module.params["count"])
        else:
            result = {"nodes": {}, "layers": []}
    except KubegpuError as error:
        more = {"layers": build_unreachable(nodes, "pod", error)} if is_test else {}
        fail(module, error, **more)
    except Interrupted as error:
        cause = f"Interrupted by {error}. The test pods were removed."
        fail(module, KubegpuError(cause, next_step="Run again."))
    for note in tests.reader.notes:
        module.warn(printable(note))
    module.exit_json(
        changed=bool(tests.changes),
        changes=tests.changes,
        requests=dict(tests.reader.cluster.requests),
        **result,
    )


if __name__ == "__main__":
    main()
