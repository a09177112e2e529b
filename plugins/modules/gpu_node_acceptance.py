#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_node_acceptance
short_description: Test the GPUs of a node before it takes work
version_added: 0.1.0
description:
  - One call for each step, of which the role P(kubegpu.nodes.gpu_acceptance#role) makes an
    acceptance.
  - O(step=look) returns which programs for tests the node has, and what computes on its GPUs.
  - O(step=test) runs one of C(dcgmi diag), C(nvbandwidth) and C(gpu_burn), and judges what it
    prints. The exit status does not count. C(gpu_burn) ends with 0 also if a GPU is faulty, and
    C(dcgmi diag) has one status for a failed test and one that could not run.
  - A test has a limit of time. When it is reached, the program gets SIGTERM, then its process group
    SIGKILL. The unit C(nvidia-dcgm) is started for C(dcgmi diag) where it does not run, and stopped
    afterwards.
  - O(step=keep) writes a result into the node's record, O(step=forget) removes it.
  - A test that fails does not fail the task; RV(findings) has what is wrong.
author:
  - kubegpu.nodes contributors (@kubegpu)
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
attributes:
  check_mode:
    description: >-
      Runs no test, and returns what would be run. The other steps return the same C(changed) and
      the same diff as the real run.
    support: full
  idempotent:
    description: Each call with O(step=test) runs the test. The other steps change nothing twice.
    support: partial
options:
  step:
    description: What to do.
    type: str
    choices: [look, test, keep, forget]
    required: true
  programs:
    description:
      - Names or paths of the programs, where they are not in the search path or in C(/opt).
    type: dict
    default: {}
    suboptions:
      dcgm:
        description: Name or path of C(dcgmi).
        type: str
      nvbandwidth:
        description: Name or path of C(nvbandwidth).
        type: str
      gpu_burn:
        description: Name or path of C(gpu_burn). C(compare.ptx) has to be in its folder.
        type: str
  test:
    description: The test. Required with O(step=test).
    type: str
    choices: [dcgm, nvbandwidth, gpu_burn]
  program:
    description: Path of its program. Required with O(step=test).
    type: path
  timeout:
    description: Seconds that the test may take. Required with O(step=test).
    type: int
  diag_level:
    description: The level of C(dcgmi diag), from 1 to 4.
    type: int
    default: 1
  minutes:
    description: How long C(gpu_burn) burns.
    type: int
    default: 60
  thresholds:
    description:
      - The least bandwidths in GB/s, C(h2d) (host to GPU), C(d2h) (GPU to host) and C(p2p) (GPU to
        GPU). What has none is not judged.
    type: dict
    default: {}
  gpus:
    description: How many GPUs the node has. A test of fewer fails. V(0) is not compared.
    type: int
    default: 0
  facts:
    description: What of the fact C(gpu_node) decides between the causes of a test without a result.
    type: dict
    default: {}
  result:
    description: The result to keep. Required with O(step=keep).
    type: dict
seealso:
  - module: kubegpu.nodes.gpu_node_health
  - module: kubegpu.nodes.gpu_node_verify
notes:
  - Needs root for a complete answer of O(step=look).
"""

EXAMPLES = r"""
- name: See which programs there are
  kubegpu.nodes.gpu_node_acceptance:
    step: look
  become: true
  register: looked

- name: Run the short tests of DCGM
  kubegpu.nodes.gpu_node_acceptance:
    step: test
    test: dcgm
    program: "{{ looked.programs.dcgm }}"
    diag_level: 1
    timeout: 600
  become: true
  register: diag

- name: Stop if a test failed
  ansible.builtin.assert:
    that: diag.findings | selectattr('severity', 'eq', 'error') | length == 0
    fail_msg: "{{ diag.findings | map(attribute='cause') }}"
"""

RETURN = r"""
programs:
  description: Path of the program of each test; V(null) if the node does not have it.
  returned: with O(step=look)
  type: dict
  sample: {dcgm: /usr/bin/dcgmi, nvbandwidth: null, gpu_burn: null}
users:
  description: Processes that compute on the GPUs, without their arguments.
  returned: with O(step=look)
  type: list
  elements: str
  sample: ["python (pid 4242, container 3f2a9c1d5e6b)"]
ran:
  description: Whether the test was run.
  returned: with O(step=test)
  type: bool
  sample: true
argv:
  description: The program with its arguments.
  returned: with O(step=test)
  type: list
  elements: str
  sample: [/usr/bin/dcgmi, diag, --run, "1", --json]
findings:
  description:
    - What the test found. C(severity) is C(error), C(warning) or C(info), C(subject) the GPU.
    - An error of DCGM has C(error_id), its name in C(error), and in C(action) what DCGM takes it
      for (V(isolate), V(reset), V(triage), V(config), V(monitor), V(unknown)).
  returned: with O(step=test)
  type: list
  elements: dict
  sample:
    - code: dcgm_failed
      severity: error
      subject: GPU 1
      error_id: 30
      error: LOW_BANDWIDTH
      action: triage
      cause: "The test pcie of DCGM failed for GPU 1: LOW_BANDWIDTH (error 30, triage)."
      evidence: Bandwidth of GPU 1 in direction device to host was below the minimum.
      next_step: >-
        Run NVIDIA's field diagnostics, or nvidia-bug-report.sh and a case with the vendor; see the
        known causes of this error in NVIDIA's documentation of DCGM.
measured:
  description: >-
    The least bandwidth of each GPU in GB/s, by the names of O(thresholds); with C(p2p) that of its
    best pair.
  returned: with O(step=test)
  type: dict
  sample: {h2d: {"0": 55.6, "1": 55.5}}
not_tested:
  description: What the program did not test.
  returned: with O(step=test)
  type: list
  elements: str
  sample: [nvlink]
version:
  description: The version that the program reports; may be empty.
  returned: with O(step=test)
  type: str
  sample: 4.6.0
seconds:
  description: Seconds that the test took.
  returned: with O(step=test)
  type: float
  sample: 94.2
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

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.apply import (
    Dependencies,
    Test,
    forget,
    keep,
    look,
    run_test,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.data import TOOLS
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.options import (
    read_test,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.device_users import (
    find_users,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import module_stream
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.signals import (
    Interrupted,
    raise_on_signals,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.options import STATE_ARGUMENTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore

_ARGUMENT_SPEC: dict[str, dict[str, typing.Any]] = {
    "step": {"type": "str", "choices": ["look", "test", "keep", "forget"], "required": True},
    "programs": {
        "type": "dict",
        "default": {},
        "options": {tool: {"type": "str"} for tool in TOOLS},
    },
    "test": {"type": "str", "choices": list(TOOLS)},
    "program": {"type": "path"},
    "timeout": {"type": "int"},
    "diag_level": {"type": "int", "default": 1},
    "minutes": {"type": "int", "default": 60},
    "thresholds": {"type": "dict", "default": {}},
    "gpus": {"type": "int", "default": 0},
    "facts": {"type": "dict", "default": {}},
    "result": {"type": "dict"},
    **STATE_ARGUMENTS,
}


def main() -> None:
    module = AnsibleModule(
        argument_spec=_ARGUMENT_SPEC,
        required_if=[
            ("step", "test", ("test", "program", "timeout")),
            ("step", "keep", ("result",)),
        ],
        supports_check_mode=True,
    )
    raise_on_signals()
    try:
        answer = _answer(module)
    except KubegpuError as error:
        fail(module, error)
    except Interrupted as interrupted:
        cause = f"Stopped by {interrupted}; the test that was started is ended."
        fail(module, KubegpuError(cause, next_step="Run again."))
    if not module._diff:
        answer.pop("diff", None)
    module.exit_json(**{"changed": False, **answer})


def _answer(module: AnsibleModule) -> dict[str, typing.Any]:
    params = module.params
    reader = NodeReader("/")
    node = Dependencies(
        run=module_runner(module),
        stream=module_stream(module),
        find_program=module.get_bin_path,
        exists=reader.exists,
        real_path=reader.real_path,
        users=lambda: find_users(reader),
        store=StateStore(params["state_path"]),
    )
    if params["step"] == "look":
        return look(node, params["programs"])
    if params["step"] == "test":
        return run_test(node, Test(**read_test(params)), dry_run=module.check_mode)
    if params["step"] == "keep":
        return keep(node.store, params["result"], dry_run=module.check_mode)
    return forget(node.store, dry_run=module.check_mode)


if __name__ == "__main__":
    main()
