# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_resources_check
short_description: Check the GPU requests of a pod
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes a pod, or an object with a pod template, and returns the errors in its GPU requests,
    before a cluster rejects the pod or leaves it Pending.
  - GPUs are requested in C(limits). C(requests) may be omitted, or must be equal; C(requests)
    without C(limits) and fractions are rejected.
  - The filter does not access a cluster, so that it does not check whether a node offers the
    resource.
positional: _input
options:
  _input:
    description: >-
      A Pod, an object with a pod template (Deployment, DaemonSet, Job, CronJob, ...), a List of
      these, or a pod's C(spec).
    type: dict
    required: true
  resources:
    description: Further names of GPU resources, if the device plugin renames them.
    type: list
    elements: str
    default: []
  required:
    description: Whether a pod without any GPU request is an error.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Refuse what Kubernetes would refuse
  ansible.builtin.assert:
    that: wrong | selectattr('severity', 'eq', 'error') | length == 0
    fail_msg: "{{ wrong | map(attribute='cause') | join(' ') }}"
  vars:
    wrong: "{{ lookup('file', 'training.yaml') | from_yaml | kubegpu.nodes.gpu_resources_check }}"

# A container with requests: {nvidia.com/gpu: 1} and no limits:
# [{pod: training, severity: error, code: requests_alone, container: 'containers[main]',
#   resource: nvidia.com/gpu, cause: ..., next_step: 'Write limits: {nvidia.com/gpu: 1}; ...'}]
"""

RETURN = r"""
_value:
  description: >-
    One entry for each problem, with C(pod) (its name), C(severity) (V(error) if the pod is rejected
    or never starts, otherwise V(warning)), C(code) (V(requests_alone), V(request_differs),
    V(not_a_whole_number), V(not_a_quantity), V(wrong_name), V(gpu_at_pod_level),
    V(gpu_in_ephemeral_container), V(no_gpu), V(zero) or V(visible_devices)), C(container),
    C(resource), C(cause) and C(next_step). Empty without problems.
  type: list
  elements: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def gpu_resources_check(
    pod: Mapping[str, Any], resources: Sequence[str] = (), required: bool = False
) -> list[dict[str, Any]]:
    """Return the problems found by :func:`check`."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.gpu_requests import check

    try:
        return check(pod, resources, required)
    except KubegpuError as error:
        raise AnsibleFilterError(f"gpu_resources_check: {error}") from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_resources_check": gpu_resources_check}
