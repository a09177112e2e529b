# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: amd_driver_plan
short_description: Decide what AMD's driver needs on a node
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the facts of M(kubegpu.nodes.gpu_node_facts) and the requested options, and returns what
    would be done, with a reason for each step.
  - Nothing is read and nothing is changed. A refusal, also of a wrong value, is a result and not an
    error. Only an unknown option is an error.
  - The keyword arguments are those of the role P(kubegpu.nodes.amd_driver#role), without its
    prefix.
positional: _input
options:
  _input:
    description: The fact C(gpu_node).
    type: dict
    required: true
  release:
    description: Release of the driver, such as V(30.30). If it is empty, an installed one is kept;
      otherwise the release that the collection pins is installed.
    type: str
    default: ""
  repository_name:
    description: Name of the repository file, without extension.
    type: str
    default: kubegpu-amd-driver
  repository_suite:
    description: Suite of the repository. If it is empty, that of the distribution is used.
    type: str
    default: ""
  key_enrolled:
    description: Whether the key with which DKMS signs is enrolled, for nodes with Secure Boot.
    type: bool
    default: false
  reboot:
    description: Whether a reboot is allowed. A pending one is work then.
    type: bool
    default: false
extends_documentation_fragment:
  - kubegpu.nodes.plan
"""

EXAMPLES = r"""
- name: See what the role would do, and why
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpu_node'] | kubegpu.nodes.amd_driver_plan }}"
"""

RETURN = r"""
_value:
  description: >-
    C(action) (none, install, upgrade, downgrade or refuse), C(work) (whether anything is to do),
    C(version), C(packages), C(optional), C(hold), C(change_packages), C(repository), C(load),
    C(reboot) (C(required) and C(reason)), C(reboot_allowed), C(steps), C(reasons) and C(warnings).
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.release import __version__


def amd_driver_plan(gpu_node: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Return the plan of :func:`plan_amd_driver` as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.amd_plan import (
        plan_amd_driver,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.amd_types import (
        ARGUMENTS,
        AmdDriverPlan,
        read_amd_driver_request,
    )
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._plan_filters import check_call

    check_call("amd_driver_plan", gpu_node, options, ARGUMENTS)
    options["controller"] = options.get("controller") or __version__
    try:
        request = read_amd_driver_request(options)
    except InputError as error:
        return AmdDriverPlan.refused(error).to_json()
    return plan_amd_driver(gpu_node, request).to_json()


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"amd_driver_plan": amd_driver_plan}
