# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: amd_cdi_specification
short_description: Generate the CDI specification of AMD GPUs
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Has AMD's program C(amd-ctk) generate the Container Device Interface specification if there is
    none, if it names a device that is not there, or if the node has other render nodes than when
    this module made it.
  - Containers then get C(amd.com/gpu=0), C(amd.com/gpu=1) and so on, or C(amd.com/gpu=all).
  - A specification that another program made is kept as long as its devices are there.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
options:
  state:
    description: >-
      V(absent) removes a specification that this module wrote, or restores the previous one.
    type: str
    choices: [present, absent]
    default: present
  path:
    description: Path of the specification.
    type: path
    default: /etc/cdi/amd.json
  program:
    description: AMD's program, as an absolute path or the name of a program.
    type: str
    default: amd-ctk
  device_directory:
    description: Directory of the render nodes.
    type: path
    default: /dev/dri
seealso:
  - module: kubegpu.nodes.docker_runtime
"""

EXAMPLES = r"""
- name: Generate the CDI specification of the AMD GPUs
  kubegpu.nodes.amd_cdi_specification:
"""

RETURN = r"""
path:
  description: Path of the specification.
  returned: success
  type: str
  sample: /etc/cdi/amd.json
devices:
  description: The render nodes of the node.
  returned: success
  type: list
  elements: str
  sample: [/dev/dri/renderD128]
reasons:
  description: Why it was generated.
  returned: success
  type: list
  elements: str
  sample: ["it names /dev/dri/renderD136, which is not there"]
diff:
  description: The devices for which it is made, one per line.
  returned: with diff mode
  type: dict
  sample:
    before: ""
    after: "amd.com/gpu\n/dev/dri/renderD128\n"
    before_header: /etc/cdi/amd.json
    after_header: /etc/cdi/amd.json
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

from ..module_utils._core.errors import KubegpuError
from ..module_utils._core.failure import fail
from ..module_utils._host.command import module_runner
from ..module_utils._record.options import STATE_ARGUMENTS
from ..module_utils._record.store import StateStore
from ..module_utils._toolkit.amd_cdi_apply import AmdCdiRequest, Dependencies, absent, present
from ..module_utils._toolkit.amd_data import CDI_PATH


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "path": {"type": "path", "default": CDI_PATH},
            "program": {"type": "str", "default": "amd-ctk"},
            "device_directory": {"type": "path", "default": "/dev/dri"},
            **STATE_ARGUMENTS,
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        request = AmdCdiRequest(params["path"], params["program"], params["device_directory"])
        node = Dependencies(
            module_runner(module), StateStore(params["state_path"]), str(module.tmpdir)
        )
        act = present if params["state"] == "present" else absent
        result = act(request, node, module.check_mode)
    except KubegpuError as error:
        fail(module, error)
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
