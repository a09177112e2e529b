# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: prometheus_gpu_files
short_description: Give a Prometheus the targets and rules for GPUs
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Writes a file of targets and two of rules, and the lines of C(prometheus.yml) that name them, if
    no line does so yet. Prometheus is reloaded after C(promtool) has accepted all of it; otherwise
    the earlier files are restored.
  - The hosts of a run are merged into those of earlier runs. When the last one has left, the files
    are removed.
options:
  state:
    description: V(absent) removes the files and our lines, whatever hosts they have.
    type: str
    choices: [present, absent]
    default: present
  hosts:
    description: The hosts of this run.
    type: list
    elements: dict
    default: []
    suboptions:
      host:
        description: Name of the host in the inventory.
        type: str
        required: true
      targets:
        description: Address and port of each exporter. Without any, the host is taken out.
        type: list
        elements: str
        default: []
      job:
        description: Label C(job) of the metrics. Empty is that of the scrape configuration.
        type: str
        default: ""
      scheme:
        description: The protocol.
        type: str
        choices: [http, https]
        default: http
      gpus:
        description: How many GPUs the exporter has to show, for the metric
          C(kubegpu_gpus_expected). V(0) records none, for an exporter that reports it by itself.
        type: int
        default: 0
  rules:
    description: Content of the file of rules. Empty writes no rules.
    type: str
    default: ""
  config:
    description: Prometheus' own file.
    type: str
    default: /etc/prometheus/prometheus.yml
  rules_file:
    description: >-
      The file of rules to write. A second file in the same folder has C(-expected) in its name.
    type: str
    default: /etc/prometheus/rules/kubegpu.yml
  targets_file:
    description: The file of targets to write.
    type: str
    default: /etc/prometheus/file_sd/kubegpu.yml
  manage_config:
    description: Whether lines are put into O(config). Otherwise a warning says which are missing.
    type: bool
    default: true
  job:
    description: Name of the scrape configuration.
    type: str
    default: kubegpu
  unit:
    description: Unit of Prometheus, without C(.service).
    type: str
    default: prometheus
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
notes:
  - Needs root, and C(promtool) on the host.
  - Prometheus does not report whether it has loaded the files. C(promtool) checks
    them in the same version.
seealso:
  - module: kubegpu.nodes.gpu_exporter
"""

EXAMPLES = r"""
- name: Have Prometheus read one exporter
  kubegpu.nodes.prometheus_gpu_files:
    hosts:
      - host: gpu1
        targets: ["gpu1.example.com:9400"]
        gpus: 4

- name: Take it out again
  kubegpu.nodes.prometheus_gpu_files:
    hosts:
      - host: gpu1
"""

RETURN = r"""
hosts:
  description: The hosts that are in the file of targets.
  returned: success
  type: list
  elements: str
  sample: [gpu1]
reasons:
  description: The reasons for changes.
  returned: success
  type: list
  elements: str
  sample: ["/etc/prometheus/prometheus.yml does not name /etc/prometheus/file_sd/kubegpu.yml"]
diff:
  description: The files before and after, without secrets.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: "scrape_configs:\n"
      after: "scrape_configs:\n  - job_name: kubegpu  # kubegpu.nodes\n"
      before_header: /etc/prometheus/prometheus.yml
      after_header: /etc/prometheus/prometheus.yml
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
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._prometheus.apply import (
    Dependencies,
    apply,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._prometheus.options import (
    ARGUMENTS,
    read_options,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            **ARGUMENTS,
            "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
        },
        supports_check_mode=True,
    )
    try:
        node = Dependencies(
            module_runner(module), StateStore(module.params["state_path"]), module.warn
        )
        absent = module.params["state"] == "absent"
        result = apply(read_options(module.params), node, module.check_mode, absent)
    except KubegpuError as error:
        fail(module, error)
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
