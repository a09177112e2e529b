#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_node_verify
short_description: Proves layer by layer that containers of a node can use its GPUs
version_added: 0.1.0
description:
  - Looks at the node anew and judges it layer by layer. V(pci), all NVIDIA GPUs are bound to the
    driver. V(module), the driver that is installed is the one that is loaded, with libraries of the
    same version. V(nvml), the driver answers and counts as many GPUs as the PCI bus. V(toolkit),
    NVIDIA's container runtime answers, its configuration can be read, and the CDI specification is
    that of the driver that is loaded. V(runtime), containerd, CRI-O or Docker knows the handler,
    and a container that is really started through it (not by CRI-O) sees the GPUs.
  - Each failure has a cause, what was seen, and the next step. What drivers, toolkit and runtimes
    say where something is wrong is recognised and explained, with the driver that an image wants,
    for example. See P(kubegpu.nodes.verify_rows#filter) for a table of it.
  - Changes nothing. The containers that it starts are bounded in time and are removed, with
    whatever was made for them, also when the module is stopped by a signal; what is left by a run
    that was killed is removed by the next one.
  - Whether Kubernetes gives GPUs to pods is not looked at.
author:
  - kubegpu.nodes contributors (@kubegpu)
extends_documentation_fragment:
  - kubegpu.nodes.attributes
attributes:
  check_mode:
    description: >-
      Looks at everything, and starts no container: it says which one it would start.
    support: full
  diff_mode:
    description: There is nothing to compare, as nothing is changed.
    support: none
  facts:
    description: Returns an C(ansible_facts) dictionary.
    support: full
options:
  layers:
    description: The layers that are judged.
    type: list
    elements: str
    choices: [pci, module, nvml, toolkit, runtime]
    default: [pci, module, nvml, toolkit, runtime]
  gpus:
    description: How many NVIDIA GPUs the node should have. Without it, as many as are on its bus.
    type: int
  driver_version:
    description: The exact version of the driver that should be loaded. Without it, any.
    type: str
    default: ''
  cdi:
    description: >-
      Whether a CDI specification has to be there. One that is there has to be that of the driver,
      whatever is said here.
    type: bool
    default: false
  name:
    description: Name of the runtime handler.
    type: str
    default: nvidia
  require_default:
    description: The runtimes whose default the handler has to be.
    type: list
    elements: str
    choices: [containerd, docker, crio]
    default: []
  runtime_path:
    description: NVIDIA's container runtime, where the handler does not name another one.
    type: path
    default: /usr/bin/nvidia-container-runtime
  engines:
    description: >-
      The runtimes that are looked at, where the node has them. A containerd that serves Docker
      alone, and a Docker that does not run beside a containerd of Kubernetes, take no part. Of
      CRI-O the handler is looked up, and no container is started outside of a pod.
    type: list
    elements: str
    choices: [containerd, docker, crio]
    default: [containerd, docker, crio]
  container:
    description: Whether containers are started. Without, the handler is only looked up.
    type: bool
    default: true
  image:
    description:
      - Image of the test container. With containerd, one that Kubernetes has (in the namespace
        C(k8s.io)) is used where it lies.
      - With O(image_archive), the name of the image in it that is meant.
      - Without any image a bare root file system is made of the node's own C(ld.so) and C(libc),
        without anything of the driver. C(nvidia-smi) and its libraries can come into it by the
        toolkit alone, so that it shows the same as an image would, but for the image's own CUDA.
    type: str
    default: ''
  image_archive:
    description: >-
      An archive of the image on the node, as C(docker save), C(ctr images export) and C(skopeo)
      make them.
    type: path
  pull:
    description: Whether an image that is not there may be pulled. It is removed afterwards.
    type: bool
    default: false
  command:
    description: >-
      What the container runs. Without it C(nvidia-smi -L), whose GPUs are counted; or with O(image)
      and O(expect) what the image runs by itself.
    type: list
    elements: str
    default: []
  expect:
    description: A regular expression (Python's, C(^) and C($) are a line's) that its output has.
    type: str
    default: ''
  devices:
    description: >-
      The GPUs that a container is given, one container for each entry; V(all), or numbers or UUIDs
      that are separated by commas.
    type: list
    elements: str
    default: [all]
  timeout:
    description: Seconds that a container has.
    type: int
    default: 60
  image_timeout:
    description: Seconds that bringing an image has.
    type: int
    default: 600
  fabric:
    description:
      - Whether the fabric manager has to run, as O(kubegpu.nodes.nvidia_driver#module:fabric).
        V(auto) is where the node has NVSwitches, or GPUs of a board that has them.
      - V(false) leaves that to whoever looks after it; GPUs still have to join their fabric.
    type: str
    choices: ["auto", "true", "false"]
    default: auto
  fabric_timeout:
    description: >-
      Seconds that GPUs behind NVSwitches have to join their fabric, before the layer C(nvml) fails.
    type: int
    default: 120
  containerd_socket:
    description: >-
      Socket of containerd. With the default, that of k3s, RKE2, k0s or MicroK8s is used where the
      node runs one of them.
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
      Whether the task fails where a layer failed. By default it tells only, so that a play can look
      at all nodes first.
    type: bool
    default: false
seealso:
  - module: kubegpu.nodes.gpu_node_facts
  - plugin: kubegpu.nodes.verify_rows
    plugin_type: filter
notes:
  - Needs root, C(ctr) for containers of containerd and C(docker) for those of Docker.
  - With containerd the container runs in the namespace C(kubegpu-verify), through the program that
    CRI's handler names. The kubelet would remove a pod that it does not know, so that CRI itself is
    only asked. A pod in the cluster shows the rest.
"""

EXAMPLES = r"""
- name: See whether containers can use the GPUs
  kubegpu.nodes.gpu_node_verify:
  become: true
  register: verified

- name: Stop where they cannot
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

- name: Only look
  kubegpu.nodes.gpu_node_verify:
    container: false
  become: true
"""

RETURN = r"""
ok:
  description: Whether no layer failed.
  returned: always
  type: bool
  sample: false
failed_layers:
  description: The layers that failed.
  returned: always
  type: list
  elements: str
  sample: [runtime]
layers:
  description:
    - One entry for each layer, and for C(runtime) one for each runtime, in C(subject).
    - C(ok) is V(null) where a layer was not tried; C(cause) says why. C(proof) says what was shown
      of a layer that is good, and how. C(code) names the cause for programs.
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
  description: The facts of M(kubegpu.nodes.gpu_node_facts), as they were read for this.
  returned: always
  type: dict
  contains:
    gpu_node:
      description: What the node is and has.
      returned: always
      type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.signals import (
    Interrupted,
    raise_on_signals,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import NODE_LAYERS
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.verify import (
    failure_text,
    node_dependencies,
    verify_node,
)

_RUNTIMES = ["containerd", "docker", "crio"]
_ARGUMENT_SPEC = {
    "layers": {
        "type": "list",
        "elements": "str",
        "choices": list(NODE_LAYERS),
        "default": list(NODE_LAYERS),
    },
    "gpus": {"type": "int"},
    "driver_version": {"type": "str", "default": ""},
    "cdi": {"type": "bool", "default": False},
    "name": {"type": "str", "default": "nvidia"},
    "require_default": {
        "type": "list",
        "elements": "str",
        "choices": _RUNTIMES,
        "default": [],
    },
    "runtime_path": {"type": "path", "default": "/usr/bin/nvidia-container-runtime"},
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
    "containerd_socket": {"type": "path", "default": "/run/containerd/containerd.sock"},
    "containerd_config_path": {"type": "path", "default": "/etc/containerd/config.toml"},
    "docker_config_path": {"type": "path", "default": "/etc/docker/daemon.json"},
    "fail": {"type": "bool", "default": False},
}


def main() -> None:
    module = AnsibleModule(argument_spec=_ARGUMENT_SPEC, supports_check_mode=True)
    raise_on_signals()
    try:
        dependencies = node_dependencies(module_runner(module))
        result = verify_node(module.params, dependencies, module.check_mode)
    except KubegpuError as error:
        module.fail_json(msg=str(error))
    except Interrupted as interrupted:
        module.fail_json(
            msg=f"Stopped by {interrupted} before all was looked at; what was started is removed."
        )
    if module.params["fail"] and not result["ok"]:
        module.fail_json(msg=printable(failure_text(result["layers"])), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
