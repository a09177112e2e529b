# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_exporter
short_description: Set up the exporter of GPU metrics on a host
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Writes the files of one method, starts its units and waits until the metrics are there. If they
    are not, the earlier files and units are restored.
  - The files of another method are removed.
  - An exporter that this module has not set up is reported and left alone.
options:
  state:
    description: V(absent) stops the units that the module has enabled, and restores the files.
    type: str
    choices: [present, absent]
    default: present
  counters:
    description: The content of the exporter's file of counters. Needed for V(packages) and
      V(container).
    type: str
    default: ""
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.exporter
  - kubegpu.nodes.record
notes:
  - Needs root and systemd.
seealso:
  - module: kubegpu.nodes.prometheus_gpu_files
  - module: kubegpu.nodes.package_set
"""

EXAMPLES = r"""
- name: Write the metrics of all GPUs for node_exporter
  kubegpu.nodes.gpu_exporter:
    method: textfile

- name: Run the exporter of DCGM in a container
  kubegpu.nodes.gpu_exporter:
    method: container
    counters: |
      DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).

- name: Remove it
  kubegpu.nodes.gpu_exporter:
    state: absent
"""

RETURN = r"""
plan:
  description: The changes and their reasons, as returned by the filter
    P(kubegpu.nodes.gpu_plan#filter).
  returned: success
  type: dict
  sample:
    action: change
    method: textfile
    gpus: ["0000:3b:00.0"]
    reasons: ["monitoring: it is new"]
diff:
  description: The files before and after.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: ""
      after: "[Timer]\nOnUnitInactiveSec=15\n"
      before_header: /etc/systemd/system/kubegpu-metrics.timer (absent)
      after_header: /etc/systemd/system/kubegpu-metrics.timer
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
from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.apply import (
    Dependencies,
    absent,
    present,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.facts import listeners
from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.options import (
    MODULE_ARGUMENTS,
    read_options,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import gather
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            **MODULE_ARGUMENTS,
            "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
        },
        supports_check_mode=True,
    )
    state_path = module.params["state_path"]
    try:
        run = module_runner(module)
        reader = NodeReader("/", run)
        node = Dependencies(
            run=run,
            store=StateStore(state_path),
            facts=lambda: gather(reader, RuntimePaths(), state_path),
            listens=lambda port: port in listeners(reader),
            warn=module.warn,
        )
        if module.params["state"] == "present":
            result = present(read_options(module.params), node, module.check_mode)
        else:
            result = absent(node, module.check_mode)
    except KubegpuError as error:
        fail(module, error)
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
