#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_node_verify
short_description: Verify layer by layer that containers of a node can use its GPUs
version_added: 0.1.0
description:
  - Reads the node's facts again and judges the node layer by layer. In V(pci), all GPUs are bound
    to their driver. In V(module), the loaded driver is the installed one, with libraries of
    the same version. In V(nvml), the driver answers and counts as many GPUs as the PCI bus. In
    V(toolkit), NVIDIA's container runtime answers, its configuration can be read, and the CDI
    specification is that of the loaded driver. In V(runtime), containerd, CRI-O or Docker knows
    the handler, and a container that is started through it (not with CRI-O) sees the GPUs.
  - For GPUs of AMD and Intel, V(module) is the driver of the kernel (C(amdgpu), C(i915) or C(xe)),
    loaded and without an error in the kernel's log, such as missing firmware, and V(devices) are
    the device nodes C(/dev/kfd) and C(/dev/dri/renderD*) with their groups. The layers after it are
    NVIDIA's.
  - Each failure has a cause, evidence and a next step. Known error messages of the driver, the
    toolkit and the runtimes are explained, for example with the driver version that an image
    requires. See M(kubegpu.nodes.fleet_table) for a table of the results.
  - A verification does not change the node. The containers that are started have a time limit, and
    are removed with everything that was created for them, even if a signal stops the module. What a
    killed run leaves behind is removed by the next run.
  - Whether Kubernetes assigns GPUs to pods is not verified.
author:
  - kubegpu.nodes contributors (@kubegpu)
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.driver_hang
  - kubegpu.nodes.record
attributes:
  check_mode:
    description: >-
      Reads everything, starts no container, and reports which containers would be started.
    support: full
  diff_mode:
    description: A verification changes nothing. O(state=due) and O(state=passed) show the mark.
    support: full
  facts:
    description: Returns an C(ansible_facts) dictionary.
    support: full
options:
  state:
    description:
      - V(verified) verifies the node.
      - V(due) marks in the node's record that the node has to be verified, and V(passed) drops that
        mark. Neither verifies anything. The playbook C(kubegpu.nodes.site) verifies a node with the
        mark. It sets the mark before it changes a node, and the role
        P(kubegpu.nodes.gpu_verify#role) after a verification that failed. That role drops the mark
        after a verification that passed, which includes the layers of a cluster.
    type: str
    choices: [verified, due, passed]
    default: verified
  layers:
    description: The layers to judge.
    type: list
    elements: str
    choices: [pci, module, devices, nvml, toolkit, runtime]
    default: [pci, module, devices, nvml, toolkit, runtime]
  metrics:
    description: >-
      Whether the layer C(metrics) is judged too. The exporter that M(kubegpu.nodes.gpu_exporter)
      has set up on this host runs, and has samples of each GPU.
    type: bool
    default: false
  gpus:
    description: >-
      Expected number of GPUs; of a node with GPUs of two vendors, that of NVIDIA's. The default is
      the number on the node's PCI bus.
    type: int
  driver_version:
    description: Expected version of the loaded driver, in full. By default any version is accepted.
    type: str
    default: ''
  cdi:
    description: >-
      Require a CDI specification. An existing one must match the driver, whatever this option is.
    type: bool
    default: false
  name:
    description: Name of the runtime handler.
    type: str
    default: nvidia
  require_default:
    description: The runtimes in which the handler must be the default.
    type: list
    elements: str
    choices: [containerd, docker, crio]
    default: []
  runtime_path:
    description: Path of NVIDIA's container runtime, unless the handler names another one.
    type: path
    default: /usr/bin/nvidia-container-runtime
  engines:
    description: >-
      The container runtimes to verify, if the node has them. A containerd that serves Docker alone,
      and a Docker that does not run next to a containerd of Kubernetes, are skipped. For CRI-O, the
      handler is looked up, and no container is started outside of a pod.
    type: list
    elements: str
    choices: [containerd, docker, crio]
    default: [containerd, docker, crio]
  container:
    description: Start containers. If V(false), the handler is only looked up.
    type: bool
    default: true
  image:
    description:
      - Image of the test container. With containerd, an image of Kubernetes (in the namespace
        C(k8s.io)) is used in place.
      - With O(image_archive), the name of the image in the archive.
      - Without an image, a bare root file system is made of the node's own C(ld.so) and C(libc),
        without any file of the driver. C(nvidia-smi) and its libraries can only be added by the
        toolkit, so that the test shows the same as with an image, except for the image's own CUDA.
    type: str
    default: ''
  image_archive:
    description: >-
      Path of an archive of the image on the node, in the format of C(docker save), C(ctr images
      export) or C(skopeo copy).
    type: path
  pull:
    description: Pull the image if the node does not have it. It is removed afterwards.
    type: bool
    default: false
  command:
    description: >-
      Command of the container. The default is C(nvidia-smi -L), whose GPUs are counted; with
      O(image) and O(expect), it is the image's own command.
    type: list
    elements: str
    default: []
  expect:
    description: >-
      Regular expression that the output must match. It has Python's syntax; C(^) and C($) match at
      each line.
    type: str
    default: ''
  devices:
    description: >-
      The GPUs to give to a container, with one container for each entry. An entry is V(all), or
      indices or UUIDs, separated by commas.
    type: list
    elements: str
    default: [all]
  timeout:
    description: Time limit of a container, in seconds.
    type: int
    default: 60
  image_timeout:
    description: Time limit for pulling or importing the image, in seconds.
    type: int
    default: 600
  fabric:
    description:
      - Whether the fabric manager must run, as O(kubegpu.nodes.nvidia_driver#module:fabric).
        V(auto) requires it if the node has NVSwitches, or GPUs of a board with NVSwitches.
      - V(false) accepts a stopped fabric manager. GPUs must join their fabric in any case.
    type: str
    choices: ["auto", "true", "false"]
    default: auto
  fabric_timeout:
    description: >-
      Seconds that GPUs behind NVSwitches may take to join their fabric, before the layer C(nvml)
      fails.
    type: int
    default: 120
  licence_timeout:
    description: >-
      Seconds that the virtual GPUs of a vGPU guest may take to acquire their licence (license),
      before the layer C(nvml) fails. A whole GPU needs none, and is not waited for.
    type: int
    default: 60
  driver_timeout:
    description: Seconds for the driver to answer.
    type: int
    default: 60
  containerd_socket:
    description: >-
      Socket of containerd. If this is the default, and the node runs k3s, RKE2, k0s or MicroK8s,
      the socket of that distribution is used.
    type: path
    default: /run/containerd/containerd.sock
  containerd_config_path:
    description: Configuration file of a plain containerd.
    type: path
    default: /etc/containerd/config.toml
  docker_config_path:
    description: Configuration file of Docker.
    type: path
    default: /etc/docker/daemon.json
  fail:
    description: >-
      Fail the task if a layer failed. By default failures are only returned, so that a play can
      verify all nodes first.
    type: bool
    default: false
seealso:
  - module: kubegpu.nodes.gpu_node_facts
  - module: kubegpu.nodes.fleet_table
notes:
  - Requires root, C(ctr) for containers of containerd, and C(docker) for containers of Docker.
  - With containerd, the container runs in the namespace C(kubegpu-verify), through the program of
    CRI's handler. CRI itself is only queried, because the kubelet would remove a pod that it does
    not know. The rest is shown by a pod in the cluster, see M(kubegpu.nodes.gpu_test_pods).
"""

EXAMPLES = r"""
- name: Verify that containers can use the GPUs
  kubegpu.nodes.gpu_node_verify:
  become: true
  register: verified

- name: Stop if they cannot
  ansible.builtin.assert:
    that: verified.ok
    fail_msg: "{{ verified.layers | selectattr('ok', 'false') | map(attribute='cause') | list }}"

- name: Run CUDA's vector-add from an archive, on all GPUs and on the first one
  kubegpu.nodes.gpu_node_verify:
    image_archive: /srv/images/vectoradd.tar
    expect: ^Test PASSED$
    devices: [all, "0"]
    fail: true
  become: true

- name: Have the playbook site verify the node in its next run
  kubegpu.nodes.gpu_node_verify:
    state: due
  become: true

- name: Verify without starting a container
  kubegpu.nodes.gpu_node_verify:
    container: false
  become: true
"""

RETURN = r"""
ok:
  description: Whether all tested layers are fine.
  returned: with O(state=verified)
  type: bool
  sample: false
failed_layers:
  description: The layers that failed.
  returned: with O(state=verified)
  type: list
  elements: str
  sample: [runtime]
layers:
  description:
    - One entry for each layer, and for C(runtime) one for each runtime, in C(subject). On a node
      with GPUs of two vendors, C(subject) of a layer is AMD or Intel. A failed layer has C(names)
      if its texts name something, such as a package.
    - C(ok) is V(null) if a layer was not tested; C(cause) says why. C(proof) says how a layer that
      is fine was verified. C(code) identifies the cause for programs.
    - Empty with O(state=due) and O(state=passed).
  returned: always
  type: list
  elements: dict
  sample:
    - node: gpu1
      layer: runtime
      ok: false
      code: unmet_requirement
      cause: >-
        The image demands CUDA 12.3, which is newer than the node's driver allows. The node's driver
        is 535.104.05, whose own CUDA is 12.2.
      evidence: "requirement error: unsatisfied condition: cuda>=12.3"
      next_step: >-
        Install driver 545.23.06 or newer (it came with CUDA 12.3), or use an image with CUDA 12.2
        or older.
      proof: ''
      subject: containerd
ansible_facts:
  description: The facts of M(kubegpu.nodes.gpu_node_facts), as read by this module.
  returned: with O(state=verified)
  type: dict
  contains:
    gpu_node:
      description: Facts of the node.
      returned: always
      type: dict
code:
  description: Identifies the cause for programs, if it is known.
  returned: failure with a known cause
  type: str
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
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import NVML_SECONDS
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import (
    HANG_ARGUMENTS,
    module_stream,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.signals import (
    Interrupted,
    raise_on_signals,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.toolkit_paths import (
    RUNTIME_PATH,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.options import STATE_ARGUMENTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.verification import (
    mark_verification,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import NODE_LAYERS
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.verify import (
    failure_text,
    first_failure,
    node_dependencies,
    verify_node,
)

_RUNTIMES = ["containerd", "docker", "crio"]
_ARGUMENT_SPEC: dict[str, dict[str, typing.Any]] = {
    "state": {"type": "str", "choices": ["verified", "due", "passed"], "default": "verified"},
    **STATE_ARGUMENTS,
    "layers": {
        "type": "list",
        "elements": "str",
        "choices": list(NODE_LAYERS),
        "default": list(NODE_LAYERS),
    },
    "metrics": {"type": "bool", "default": False},
    "gpus": {"type": "int"},
    "driver_version": {"type": "str", "default": ""},
    "cdi": {"type": "bool", "default": False},
    "name": {"type": "str", "default": "nvidia"},
    "require_default": {"type": "list", "elements": "str", "choices": _RUNTIMES, "default": []},
    "runtime_path": {"type": "path", "default": RUNTIME_PATH},
    "engines": {
        "type": "list",
        "elements": "str",
        "choices": _RUNTIMES,
        "default": _RUNTIMES,
    },
    "container": {"type": "bool", "default": True},
    "image": {"type": "str", "default": ""},
    "image_archive": {"type": "path"},
    "pull": {"type": "bool", "default": False},
    "command": {"type": "list", "elements": "str", "default": []},
    "expect": {"type": "str", "default": ""},
    "devices": {"type": "list", "elements": "str", "default": ["all"]},
    "timeout": {"type": "int", "default": 60},
    "image_timeout": {"type": "int", "default": 600},
    "fabric": {"type": "str", "choices": ["auto", "true", "false"], "default": "auto"},
    "fabric_timeout": {"type": "int", "default": 120},
    "licence_timeout": {"type": "int", "default": 60},
    "driver_timeout": {"type": "int", "default": NVML_SECONDS},
    "driver_hang": {"type": "dict", "options": HANG_ARGUMENTS},
    "containerd_socket": {"type": "path", "default": "/run/containerd/containerd.sock"},
    "containerd_config_path": {"type": "path", "default": "/etc/containerd/config.toml"},
    "docker_config_path": {"type": "path", "default": "/etc/docker/daemon.json"},
    "fail": {"type": "bool", "default": False},
}


def _mark(module: AnsibleModule) -> dict[str, typing.Any]:
    store, due = StateStore(module.params["state_path"]), module.params["state"] == "due"
    answer = mark_verification(store, due=due, dry_run=module.check_mode)
    if not module._diff:
        answer.pop("diff")
    return {"layers": [], **answer}


def main() -> None:
    module = AnsibleModule(argument_spec=_ARGUMENT_SPEC, supports_check_mode=True)
    raise_on_signals()
    try:
        if module.params["state"] != "verified":
            module.exit_json(**_mark(module))
        dependencies = node_dependencies(module_runner(module), module_stream(module))
        result = verify_node(module.params, dependencies, module.check_mode)
    except KubegpuError as error:
        fail(module, error)
    except Interrupted as interrupted:
        cause = f"Stopped by {interrupted} before all was looked at; what was started is removed."
        fail(module, KubegpuError(cause, next_step="Run again."))
    if module.params["fail"] and not result["ok"]:
        first, text = first_failure(result["layers"]), failure_text(result["layers"])
        fail(module, first, **{**result, "msg": printable(text)})
    module.exit_json(**result)


if __name__ == "__main__":
    main()
