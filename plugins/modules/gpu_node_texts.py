#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_node_texts
short_description: Read configurations and logs of a node, without secrets (internal)
version_added: 0.1.0
description:
  - The playbooks and roles of this collection use it. Its options can change in any release.
  - Reads the lines of the kernel's log that concern GPUs, the configurations of container runtimes,
    toolkit, CDI, kubelet and the driver's modules, and the last lines of the journals of kubelet,
    container runtimes, NVIDIA's services and device plugins.
  - Passwords, tokens, keys and credentials in addresses are replaced on the node, by the names of
    settings and by the form of addresses. Kubeconfigs, certificates, environments and command lines
    are not read; lines of logs that have a command line are left out.
  - The role P(kubegpu.nodes.gpu_diagnose#role) calls it for its support bundle. Changes nothing.
author:
  - kubegpu.nodes contributors (@kubegpu)
extends_documentation_fragment:
  - kubegpu.nodes.attributes
attributes:
  check_mode:
    description: Reads the same as without check mode.
    support: full
  diff_mode:
    description: The module changes nothing.
    support: none
options:
  most_kib:
    description: Size of all texts together in KiB, 16384 at most. What is more is left out, and
      named in RV(unseen).
    type: int
    default: 1024
  lines:
    description: Number of lines of each log, the last ones.
    type: int
    default: 300
  timeout:
    description: Seconds that all logs together may take.
    type: int
    default: 60
  namespaces:
    description: Namespaces of the cluster in which device plugins or drivers are, in addition to
      those that their install pages name (such as C(kube-system) and C(gpu-operator)) and
      C(kubegpu). Of pods in other namespaces no log is read, since who may create pods there
      chooses their names. RV(unseen) names them.
    type: list
    elements: str
    default: []
seealso:
  - module: kubegpu.nodes.fleet_bundle
notes:
  - Without root, some configurations and journals cannot be read, which RV(unseen) says.
"""

EXAMPLES = r"""
- name: Read what a support bundle has of a node
  kubegpu.nodes.gpu_node_texts:
  become: true
  register: texts
"""

RETURN = r"""
texts:
  description: The texts, with C(name) in a bundle, C(source) (the file or the command), C(text),
    and C(cut), whether a part was left out.
  returned: success
  type: list
  elements: dict
  sample:
    - {name: config/etc/docker/daemon.json, source: /etc/docker/daemon.json, text: "{}", cut: false}
unseen:
  description: What could not be read, with C(what) and C(why).
  returned: success
  type: list
  elements: dict
  sample: []
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

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import module_stream
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.signals import (
    Interrupted,
    raise_on_signals,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._node_texts.options import (
    ARGUMENTS,
    read_options,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._node_texts.read import read_texts


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    raise_on_signals()
    try:
        result = read_texts(NodeReader("/"), module_stream(module), read_options(module.params))
    except KubegpuError as error:
        fail(module, error)
    except Interrupted as interrupted:
        cause = f"Stopped by {interrupted} before all was read; what was started is ended."
        fail(module, KubegpuError(cause, next_step="Run again."))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
