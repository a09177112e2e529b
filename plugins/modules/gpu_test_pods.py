# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_test_pods
short_description: Run a pod with a GPU on each of some nodes, and tell how it ended
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Makes one pod on each node, all at once, that asks for a GPU as any workload does; reads its
    log, and removes it. A pod that does not do what it should is explained.
  - Pods are always removed, also when the module is interrupted or terminated. What a run that was
    killed left behind is removed by the next one, and ends by itself after O(timeout).
  - Where pods of others hold all GPUs of a node, none is made there, C(ok) is null, and the pods
    are named. That no device plugin offers any GPU is another answer, and a failure.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.kube
options:
  state:
    description: >-
      V(tested) runs the pods. V(absent) removes whatever pods of tests are there, and the
      namespace if this collection made it and nobody else uses it (O(remove_namespace)).
    type: str
    choices: [tested, absent]
    default: tested
  nodes:
    description: >-
      The nodes, by any key; the key is the node's name, unless C(name) or C(machine_id) say more.
      C(resources) are the GPU resources that it should offer, as name and count; C(driver) and
      C(gpus), from its facts, make explanations better.
    type: dict
    default: {}
  image:
    description: >-
      The image, by tag or by digest (C(@sha256:...)). The default is NVIDIA's sample that adds two
      vectors; its CUDA is old on purpose, so that old drivers run it too.
    type: str
    default: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda11.7.1-ubuntu20.04
  command:
    description: Command in the image; empty is the image's own.
    type: list
    elements: str
    default: []
  args:
    description: Arguments of it.
    type: list
    elements: str
    default: []
  env:
    description: Environment of the container.
    type: dict
    default: {}
  expect:
    description: Regular expression that one of the last 1000 lines of the log has to match.
    type: str
    default: Test PASSED
  count:
    description: How many GPUs the pod asks for.
    type: int
    default: 1
  runtime_class:
    description: >-
      RuntimeClass of the pods. V(auto) is that of the cluster's device plugin, and none on a node
      whose GPUs a DRA driver gives out; empty is the runtime's default.
    type: str
    default: auto
  tolerations:
    description: >-
      Tolerations of the pods, as in a pod's specification. By default they go to every node that
      takes pods at all, whatever its taints of C(NoSchedule).
    type: list
    elements: dict
    default: [{operator: Exists, effect: NoSchedule}]
  namespace:
    description: Where the pods are made. It is made if it is not there.
    type: str
    default: kubegpu
  remove_namespace:
    description: Whether the namespace goes too, with O(state=absent).
    type: bool
    default: true
  pull_policy:
    description: Whether the image is pulled.
    type: str
    choices: [IfNotPresent, Always, Never]
    default: IfNotPresent
  pull_secrets:
    description: Names of secrets in O(namespace) with which the image is pulled.
    type: list
    elements: str
    default: []
  priority_class:
    description: Priority class of the pods; empty is the cluster's default.
    type: str
    default: ""
  run_as_user:
    description: >-
      User id in the container. The pods meet the Pod Security level C(restricted) with any but
      V(0).
    type: int
    default: 65532
  busy:
    description: >-
      What a node counts as whose GPUs are all held by other pods. V(skip), it could not be tried
      (C(ok) is null); V(fail), it failed.
    type: str
    choices: [skip, fail]
    default: skip
  timeout:
    description: How long a pod may take, with the pull of its image, in seconds.
    type: int
    default: 180
attributes:
  check_mode:
    description: >-
      Whether anything would change is predicted. No pod is made, so that C(ok) is null for each
      node where one would be.
    support: partial
    details: What only a pod can show is unknown before there is one.
  diff_mode:
    description: Pods that come and go are no difference.
    support: none
  idempotent:
    description: Each run makes its pods anew and removes them; afterwards nothing has changed.
    support: full
  platform:
    description: Runs where the API server can be reached.
    platforms: posix
    support: full
"""

EXAMPLES = r"""
- name: Prove a GPU of each node
  kubegpu.nodes.gpu_test_pods:
    kubeconfig: ~/.kube/config
    nodes:
      gpu1: {resources: {nvidia.com/gpu: 4}}
      gpu2: {resources: {nvidia.com/gpu: 8}}
  delegate_to: localhost
  become: false
  run_once: true
  register: proof

- name: With an image of the site's own
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
results:
  description: >-
    How it ended, by the keys of O(nodes): C(node), C(ok) (true, false, or null where it could not
    be tried), C(code), C(cause), C(evidence), C(next_step), C(proof), C(pod), C(resource),
    C(seconds) and the last lines of the C(log).
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
    The same as entries of P(kubegpu.nodes.verify_rows#filter), layer C(pod). Where the cluster
    could not be asked the task fails, and the first entry says why.
  returned: when O(state=tested), but where an option is not as it should be
  type: list
  elements: dict
changes:
  description: What of the cluster is another now than before; pods of this run are not.
  returned: always
  type: list
  elements: str
  sample: ["namespace kubegpu made"]
requests:
  description: Requests that the API server was sent, by verb.
  returned: always
  type: dict
  sample: {list: 5, create: 2, delete: 2, get: 3}
"""

import os
import re
import signal
import socket
import typing
import uuid

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import build_unreachable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    InputError,
    KubegpuError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.image import check_reference
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    KUBE_ARGUMENTS,
    Cluster,
    read_connection,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._test_pods.plan import TestSpec
from ansible_collections.kubegpu.nodes.plugins.module_utils._test_pods.apply import Tester


_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Interrupted(BaseException):
    """The module was told to end."""


def _end(number: int, frame: object) -> None:
    # The first one ends the test and lets it clean up; nothing interrupts that.
    _shield()
    raise Interrupted(signal.Signals(number).name)


def _shield() -> None:
    """Let nothing interrupt the removal of the pods, which is bounded in time."""
    for one in _SIGNALS:
        signal.signal(one, signal.SIG_IGN)


def _started(pid: int) -> str:
    """Return when a process was started, as its number can be given again; empty if unknown."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as handle:
            return handle.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _machine() -> str:
    """Return what a process id is of: containers may share the name of their machine."""
    try:
        return f"{socket.gethostname()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _myself() -> str:
    return f"{_machine()} {os.getpid()} {_started(os.getpid())}".strip()


def _alive(owner: str) -> bool | None:
    """Return whether the run that made a pod goes on; None where it is not of this machine."""
    host, pid, started = (*owner.split(" "), "", "", "")[:3]
    if host != _machine() or not pid.isdigit():
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return not started or _started(int(pid)) == started


def _specification(params: dict[str, typing.Any]) -> TestSpec:
    try:
        re.compile(params["expect"])
    except re.error as error:
        raise InputError(
            f"The option expect is no regular expression: {params['expect']!r}",
            evidence=str(error),
            next_step="Write it as Python's re has it; a backslash before what is meant as it is.",
        ) from error
    for name in ("count", "timeout"):
        if params[name] < 1:
            raise InputError(
                f"The option {name} is {params[name]}", next_step="Give a number from 1 on."
            )
    check_reference("The option image", params["image"])
    return TestSpec(
        image=params["image"],
        expect=params["expect"],
        command=tuple(params["command"]),
        args=tuple(params["args"]),
        env=params["env"],
        namespace=params["namespace"],
        runtime_class=params["runtime_class"],
        tolerations=tuple(params["tolerations"]),
        pull_policy=params["pull_policy"],
        pull_secrets=tuple(params["pull_secrets"]),
        priority_class=params["priority_class"],
        run_as_user=params["run_as_user"],
        timeout=params["timeout"],
        busy_fails=params["busy"] == "fail",
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["tested", "absent"], "default": "tested"},
            "nodes": {"type": "dict", "default": {}},
            "image": {
                "type": "str",
                "default": "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda11.7.1-ubuntu20.04",
            },
            "command": {"type": "list", "elements": "str", "default": []},
            "args": {"type": "list", "elements": "str", "default": []},
            "env": {"type": "dict", "default": {}},
            "expect": {"type": "str", "default": "Test PASSED"},
            "count": {"type": "int", "default": 1},
            "runtime_class": {"type": "str", "default": "auto"},
            "tolerations": {
                "type": "list",
                "elements": "dict",
                "default": [{"operator": "Exists", "effect": "NoSchedule"}],
            },
            "namespace": {"type": "str", "default": "kubegpu"},
            "remove_namespace": {"type": "bool", "default": True},
            "pull_policy": {
                "type": "str",
                "choices": ["IfNotPresent", "Always", "Never"],
                "default": "IfNotPresent",
            },
            # Their names; the secrets stay in the cluster.
            "pull_secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "priority_class": {"type": "str", "default": ""},
            "run_as_user": {"type": "int", "default": 65532},
            "busy": {"type": "str", "choices": ["skip", "fail"], "default": "skip"},
            "timeout": {"type": "int", "default": 180},
            **KUBE_ARGUMENTS,
        },
        supports_check_mode=True,
    )
    result: dict[str, typing.Any] = {}
    try:
        spec, nodes = _specification(module.params), read_expected(module.params["nodes"])
    except KubegpuError as error:
        module.fail_json(msg=str(error))
    tested = module.params["state"] == "tested"
    try:
        tester = Tester(
            reader=Reader(Cluster.connect(read_connection(module.params))),
            spec=spec,
            run_id=uuid.uuid4().hex[:12],
            owner=_myself(),
            alive=_alive,
            shield=_shield,
            check_mode=module.check_mode,
        )
        for number in _SIGNALS:
            signal.signal(number, _end)
        if not tested:
            tester.absent(module.params["remove_namespace"])
        elif nodes:
            result = tester.test(nodes, module.params["count"])
        else:
            result = {"results": {}, "layers": []}
    except KubegpuError as error:
        more = {"layers": build_unreachable(nodes, "pod", error)} if tested else {}
        module.fail_json(msg=str(error), **more)
    except Interrupted as error:
        module.fail_json(msg=f"Interrupted by {error}. The test pods were removed.")
    for note in tester.reader.notes:
        module.warn(printable(note))
    module.exit_json(
        changed=bool(tester.changes),
        changes=tester.changes,
        requests=dict(tester.reader.cluster.requests),
        **result,
    )


if __name__ == "__main__":
    main()
