# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: cuda_toolkit_plan
short_description: Decide which CUDA toolkits a node needs
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the facts of M(kubegpu.nodes.gpu_node_facts) and the requested toolkits, and returns the
    necessary changes with a reason for each step.
  - Reads and changes nothing. An unsatisfiable request and an invalid value of an option are
    returned as refusals; only an unknown option is an error.
  - The keyword arguments are the variables of the role P(kubegpu.nodes.cuda_toolkit#role), without
    its prefix.
positional: _input
options:
  _input:
    description: The fact C(gpu_node).
    type: dict
    required: true
  versions:
    description: >-
      The CUDA versions to install side by side, such as V(12.9) (any update of it) or V(12.4.1).
      A list of texts, so put each in quotes; YAML reads 12.10 as the number 12.1.
    type: raw
    default: []
  default:
    description: >-
      The version that C(/usr/local/cuda) points to. If empty, the newest of O(versions). V(none)
      leaves the link unchanged.
    type: raw
    default: ""
  source:
    description: >-
      Where the toolkits come from. V(package) is NVIDIA's repository, V(distro) is the
      distribution's own package. V(auto) is V(runfile) for versions listed in O(runfiles), and
      V(package) for the others.
    type: str
    choices: [auto, package, runfile, distro]
    default: auto
  runfiles:
    description: >-
      NVIDIA's C(cuda_*_linux.run) by version, each with C(url) or C(path), C(checksum), and
      C(remote=true) if the path is on the node. Only the toolkit in it is installed.
    type: dict
    default: {}
  libraries:
    description: >-
      Libraries for the default version. Keys are C(cudnn) and C(nccl), values their versions; an
      empty value is the newest version.
    type: dict
    default: {}
  hold:
    description: Hold the packages and their dependencies at their versions.
    type: bool
    default: true
  configure:
    description: Configure the loader and the login shells for the toolkits.
    type: bool
    default: true
  verify:
    description: Compile a small program with nvcc after a change.
    type: bool
    default: true
  host_compiler:
    description: The host compiler of that test. If empty, nvcc chooses one.
    type: str
    default: ""
  temporary:
    description: The directory to unpack a runfile in. If empty, C(/tmp).
    type: str
    default: ""
  driver_version:
    description: >-
      Version or branch of the driver that the same run installs first. If empty, the loaded
      driver, or else the installed one.
    type: str
    default: ""
  manage_repository:
    description: Include the package repository in the plan.
    type: bool
    default: true
  repository_name:
    description: Name of the repository's file without its ending.
    type: str
    default: kubegpu-nvidia-cuda
  repository_url:
    description: Address of the repository's mirror. If empty, NVIDIA's repository.
    type: str
    default: ""
  repository_key_url:
    description: Address of the repository's key. If empty, NVIDIA's key.
    type: str
    default: ""
  key_fingerprints:
    description: Full fingerprints of the keys that may sign it. If empty, those of NVIDIA's keys.
    type: list
    elements: str
    default: []
  planned_repositories:
    description: Addresses of repositories that the same run adds first.
    type: list
    elements: str
    default: []
  data:
    description: >-
      Rows to merge over the tables of P(kubegpu.nodes.driver_required_by#filter).
    type: dict
    default: {}
  controller:
    description: Version of the ansible-core that would install the packages; not every version
      can on RHEL 8. If empty, the running one.
    type: str
    default: ""
extends_documentation_fragment:
  - kubegpu.nodes.driver_tables.repositories
"""

EXAMPLES = r"""
- name: Show the changes for two versions side by side, and their reasons
  ansible.builtin.debug:
    msg: >-
      {{ ansible_facts['gpu_node'] | kubegpu.nodes.cuda_toolkit_plan(
           versions=['12.9', '13.0'], default='12.9') }}
"""

RETURN = r"""
_value:
  description: >-
    C(action) (none, install, upgrade, downgrade or refuse), C(versions) (C(version), C(path),
    C(source), C(action) and C(architecture) of each), C(default), C(packages),
    C(optional_packages), C(obsolete), C(lock), C(hold), C(change_packages), C(repository),
    C(runfiles), C(link), C(files), C(verify), C(change) (whether anything has to be changed),
    C(steps), C(reasons) and C(warnings).
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.release import __version__


def cuda_toolkit_plan(gpu_node: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Return the plan of :func:`plan_cuda` as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.options import (
        ARGUMENTS,
        read_options,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.plan import plan_cuda
    from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.types import Plan
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._plan_filters import check_call

    check_call("cuda_toolkit_plan", gpu_node, options, ARGUMENTS)
    options["controller"] = options.get("controller") or __version__
    try:
        request, tables = read_options(options)
    except InputError as error:
        return Plan("refuse", reasons=tuple(str(error).splitlines())).to_json()
    return plan_cuda(gpu_node, request, tables).to_json()


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cuda_toolkit_plan": cuda_toolkit_plan}
