# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: container_toolkit_plan
short_description: Decide what a node's NVIDIA Container Toolkit and runtimes need
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the facts of M(kubegpu.nodes.gpu_node_facts) and the requested options, and returns what
    would be done, with a reason for each step.
  - Nothing is read and nothing is changed. A refusal, also of a wrong value, is a result and not an
    error. Only an unknown option is an error.
  - The keyword arguments are those of the role P(kubegpu.nodes.nvidia_container_toolkit#role),
    without its prefix.
positional: _input
options:
  _input:
    description: The fact C(gpu_node).
    type: dict
    required: true
  version:
    description: Version of the toolkit, with or without packaging revision. If it is empty, an
      installed version is kept; otherwise the version that the collection pins is installed.
    type: str
    default: ""
  repository_name:
    description: Name of the repository file, without extension.
    type: str
    default: kubegpu-nvidia-container-toolkit
  settings:
    description: Settings of the toolkit's C(config.toml) by C(section.key). A value of a wrong
      type, or that the toolkit does not accept, is a refusal. An unknown name is a warning.
    type: dict
    default: {}
  cdi:
    description: Whether to generate a CDI specification.
    type: bool
    default: true
  runtime_name:
    description: Name of the handler and of the Docker runtime.
    type: str
    default: nvidia
  containerd:
    description: Whether to configure containerd. V(auto) configures it if it is installed.
    type: str
    choices: [auto, 'true', 'false']
    default: auto
  containerd_set_default:
    description: Whether the handler becomes containerd's default.
    type: bool
    default: false
  containerd_enable_cri:
    description: Whether to enable a disabled CRI plugin.
    type: bool
    default: false
  containerd_complete_runc:
    description: Whether to add a missing C(runtime_type) to the runtime C(runc).
    type: bool
    default: false
  containerd_options:
    description: Further options of containerd's handler.
    type: dict
    default: {}
  containerd_restart:
    description: Whether to restart containerd if required.
    type: bool
    default: true
  runtime_cdi:
    description: Whether to enable CDI in the container runtimes.
    type: bool
    default: false
  crio:
    description: Whether to configure CRI-O. V(auto) configures it if it is installed.
    type: str
    choices: [auto, 'true', 'false']
    default: auto
  crio_set_default:
    description: Whether the handler becomes CRI-O's default.
    type: bool
    default: false
  crio_restart:
    description: Whether CRI-O may be restarted.
    type: bool
    default: true
  driver_version:
    description: Version of the driver that an earlier step of the same run loads, for the CDI
      specification. If it is empty, the loaded driver is used.
    type: str
    default: ""
extends_documentation_fragment:
  - kubegpu.nodes.plan
  - kubegpu.nodes.plan.docker
"""

EXAMPLES = r"""
- name: See what the role would do, and why
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpu_node'] | kubegpu.nodes.container_toolkit_plan(version='1.20.0') }}"
"""

RETURN = r"""
_value:
  description: >-
    C(action) (none, install, upgrade, downgrade or refuse), C(version), C(packages), C(hold),
    C(obsolete), C(change_packages), C(repository), C(change_config), C(settings), C(cdi),
    C(containerd), C(docker), C(crio), C(fingerprints), C(converged), C(steps),
    C(reasons) and C(warnings).
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.release import __version__


def container_toolkit_plan(gpu_node: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Return the plan of :func:`plan_toolkit` as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.options import (
        ARGUMENTS,
        read_request,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.plan import (
        ToolkitPlan,
        plan_toolkit,
    )
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._plan_filters import check_call

    check_call("container_toolkit_plan", gpu_node, options, ARGUMENTS)
    options["controller"] = options.get("controller") or __version__
    try:
        request = read_request(options)
    except InputError as error:
        return ToolkitPlan("refuse", reasons=tuple(str(error).splitlines())).to_json()
    return plan_toolkit(gpu_node, request).to_json()


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"container_toolkit_plan": container_toolkit_plan}
