# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cdi_specification
short_description: Generate the CDI specification of NVIDIA GPUs for the loaded driver
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Generates the Container Device Interface specification if there is none, or if it was made for
    another driver than the loaded one.
  - From version 1.18 of the NVIDIA Container Toolkit on, its service C(nvidia-cdi-refresh)
    generates it; with older versions, C(nvidia-ctk cdi generate) does.
  - The service starts only if it finds the kernel module under one of its known names
    (C(ExecCondition) of its unit). Debian's open kernel modules have another name.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
options:
  state:
    description: >-
      V(absent) removes a specification that this module wrote, or restores the previous one. The
      specification of the toolkit's service is removed if the program of the toolkit in it no
      longer exists, since the packages leave it.
    type: str
    choices: [present, absent]
    default: present
  driver_version:
    description: Version of the loaded driver. If it is not set, any specification is accepted.
    type: str
  previous_driver_version:
    description: >-
      For a play that installs the toolkit first. Driver version of the specification when the facts
      were gathered; empty if there was none. The package generates the specification during its
      installation; with this option, C(changed) and the diff still report the change of the play.
    type: str
  method:
    description: V(auto) uses the toolkit's service if it is installed and starts, otherwise
      C(nvidia-ctk).
    type: str
    choices: [auto, service, generate]
    default: auto
  service_expected:
    description: >-
      For a play that installs the toolkit first. Whether its packages contain the service, which
      O(method=auto) then predicts in check mode.
    type: bool
    default: false
  toolkit_removed:
    description: >-
      For a play that removes the toolkit. Whether its packages are removed. A specification at
      O(service_path) that O(state=absent) restores is then removed too if it names the toolkit's
      program. In check mode, O(state=absent) predicts the result of the play.
    type: bool
    default: false
  outdated:
    description: >-
      For a play that changed the GPUs, for example their MIG instances. Why a specification for the
      loaded driver is generated again; empty if it is not.
    type: str
    default: ""
  path:
    description: Path to which C(nvidia-ctk) writes the specification. An existing one at
      O(service_path) is generated again too, because containers get that one. If this is
      O(service_path) itself, which does not survive a reboot, the default is used. O(state=absent)
      undoes all writes of this module, whatever their path.
    type: path
    default: /etc/cdi/nvidia.yaml
  service_path:
    description: Path to which the toolkit's service writes the specification.
    type: path
    default: /var/run/cdi/nvidia.yaml
"""

EXAMPLES = r"""
- name: Generate the CDI specification for the loaded driver
  kubegpu.nodes.cdi_specification:
    driver_version: "{{ ansible_facts['gpu_node']['driver']['loaded'] }}"
"""

RETURN = r"""
path:
  description: Path of the specification.
  returned: always
  type: str
  sample: /var/run/cdi/nvidia.yaml
method:
  description: Method of generation, V(service) or V(generate).
  returned: always
  type: str
  sample: service
reasons:
  description: Why it was generated.
  returned: always
  type: list
  elements: str
  sample: ["it was made for driver 570.124.06, not 580.95.05"]
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

import dataclasses
import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.toolkit_paths import (
    CDI_PATH,
    CDI_SERVICE_PATH,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.options import STATE_ARGUMENTS
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
            "outdated": {"type": "str", "default": ""},
            "path": {"type": "path", "default": CDI_PATH},
            "service_path": {"type": "path", "default": CDI_SERVICE_PATH},
            **STATE_ARGUMENTS,
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
        fail(module, error)
    if not module._diff:
        # With `diff: false` it contains a driver version that was not known before the run.
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
