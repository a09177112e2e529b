# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cdi_specification
short_description: Keep the CDI specification of a node's NVIDIA GPUs in step with its driver
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Makes the Container Device Interface specification again where there is none, or where it was
    made for another driver than the one that is loaded.
  - From version 1.18 of the NVIDIA Container Toolkit on its own service C(nvidia-cdi-refresh) does
    the work; before that C(nvidia-ctk cdi generate) does.
  - The service starts only where it finds the kernel module under the names that it knows
    (C(ExecCondition) of its unit). Debian's open kernel modules have another one.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
options:
  state:
    description: >-
      V(absent) removes a specification that this module wrote, or puts back the one that was
      there. What the toolkit's service wrote is removed where the toolkit's program that it names
      is gone, since the packages leave it.
    type: str
    choices: [present, absent]
    default: present
  driver_version:
    description: Version of the loaded driver. Without it, any specification will do.
    type: str
  previous_driver_version:
    description: >-
      For a play that installs the toolkit first: the driver that the specification was for when
      the node was read, empty for none. The package makes the specification while it is
      installed; V(changed) and the diff then still tell what the play changed.
    type: str
  method:
    description: V(auto) uses the toolkit's service where it is installed and starts, else
      C(nvidia-ctk).
    type: str
    choices: [auto, service, generate]
    default: auto
  service_expected:
    description: >-
      For a play that installs the toolkit first: whether its packages bring the service. In check
      mode V(method=auto) then tells what the play would do.
    type: bool
    default: false
  toolkit_removed:
    description: >-
      For a play that removes the toolkit: whether its packages go. What O(state=absent) puts back
      at O(service_path) is then removed, too, where it names the toolkit's program. In check mode
      V(state=absent) tells what the play would do.
    type: bool
    default: false
  path:
    description: Where C(nvidia-ctk) writes the specification. One that is at O(service_path) is
      made again too, because containers get that one. Where this is O(service_path) itself, which
      is lost with the next boot, the default is used. With O(state=absent), whatever this module
      wrote is undone, wherever it is.
    type: path
    default: /etc/cdi/nvidia.yaml
  service_path:
    description: Where the toolkit's service writes it.
    type: path
    default: /var/run/cdi/nvidia.yaml
"""

EXAMPLES = r"""
- name: Make the CDI specification for the driver that is loaded
  kubegpu.nodes.cdi_specification:
    driver_version: "{{ ansible_facts['gpu_node']['driver']['loaded'] }}"
"""

RETURN = r"""
path:
  description: The specification's file.
  returned: always
  type: str
  sample: /var/run/cdi/nvidia.yaml
method:
  description: How it is made.
  returned: always
  type: str
  sample: service
reasons:
  description: Why it was made again.
  returned: always
  type: list
  elements: str
  sample: ["it was made for driver 570.124.06, not 580.95.05"]
"""

import dataclasses
import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.toolkit_paths import (
    CDI_PATH,
    CDI_SERVICE_PATH,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.cdi_apply import (
    CdiRequest,
    Dependencies,
    absent,
    present,
)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "choices": ["present", "absent"],
                "default": "present",
            },
            "driver_version": {"type": "str"},
            "previous_driver_version": {"type": "str"},
            "method": {
                "type": "str",
                "choices": ["auto", "service", "generate"],
                "default": "auto",
            },
            "service_expected": {"type": "bool", "default": False},
            "toolkit_removed": {"type": "bool", "default": False},
            "path": {"type": "path", "default": CDI_PATH},
            "service_path": {"type": "path", "default": CDI_SERVICE_PATH},
            "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
        },
        supports_check_mode=True,
    )
    try:
        names = {field.name for field in dataclasses.fields(CdiRequest)}
        request = CdiRequest(**{name: module.params[name] for name in names})
        node = Dependencies(
            run=module_runner(module),
            open_store=lambda: StateStore(module.params["state_path"]),
            exists=os.path.exists,
            real_path=os.path.realpath,
        )
        act = present if module.params["state"] == "present" else absent
        result = act(request, node, module.check_mode)
    except KubegpuError as error:
        module.fail_json(msg=str(error))
    if not module._diff:
        # A task with `diff: false` has one that nobody could know beforehand.
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
