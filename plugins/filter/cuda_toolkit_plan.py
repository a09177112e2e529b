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
  - Takes the facts of M(kubegpu.nodes.gpu_node_facts) and wishes, and returns what would be done,
    with a reason for each step.
  - Nothing is read and nothing is changed. A refusal is a value, not an error, also that of an
    option whose value is wrong; only one that is not known is an error.
  - The keyword arguments are those of the role P(kubegpu.nodes.cuda_toolkit#role), without its
    prefix.
positional: _input
options:
  _input:
    description: The fact C(gpu_node).
    type: dict
    required: true
  versions:
    description: >-
      The CUDA versions that shall be there side by side, such as V(12.9) (any update of it) or
      V(12.4.1). Empty is none.
    type: list
    elements: str
    default: []
  default:
    description: >-
      The version that C(/usr/local/cuda) leads to. Empty is the newest of O(versions), V(none)
      leaves the link alone.
    type: str
    default: ""
  source:
    description: >-
      Where the toolkits come from. V(package) is NVIDIA's repository, V(distro) the
      distribution's own package, V(auto) is V(runfile) for versions that O(runfiles) has, and
      V(package) for the others.
    type: str
    choices: [auto, package, runfile, distro]
    default: auto
  runfiles:
    description: >-
      NVIDIA's C(cuda_*_linux.run) by version, each with C(url) or C(path), C(checksum), and
      C(remote) where the path is on the node. Only the toolkit in it is installed.
    type: dict
    default: {}
  libraries:
    description: >-
      Libraries beside the toolkit, C(cudnn) and C(nccl), with their version, which may be empty.
    type: dict
    default: {}
  hold:
    description: Whether the packages are held.
    type: bool
    default: true
  configure:
    description: Whether the loader and the login shells get to know the toolkits.
    type: bool
    default: true
  verify:
    description: Whether nvcc has to compile a small program after a change.
    type: bool
    default: true
  host_compiler:
    description: The host compiler of that proof. Empty is nvcc's own choice.
    type: str
    default: ""
  temporary:
    description: Where a runfile is unpacked. Empty is its own choice, C(/tmp).
    type: str
    default: ""
  driver_version:
    description: >-
      Version or branch of the driver that this run leaves on the node. Empty is the loaded one,
      else the installed one.
    type: str
    default: ""
  manage_repository:
    description: Whether the package repository is looked at.
    type: bool
    default: true
  repository_name:
    description: Stem of the file that the repository is written to.
    type: str
    default: kubegpu-nvidia-cuda
  repository_url:
    description: Address of the repository's mirror. Empty is NVIDIA's own.
    type: str
    default: ""
  repository_key_url:
    description: Where the repository's key is read. Empty is NVIDIA's own.
    type: str
    default: ""
  key_fingerprints:
    description: Full fingerprints of the keys that may sign it. Empty is NVIDIA's own.
    type: list
    elements: str
    default: []
  planned_repositories:
    description: Addresses of repositories that the same run adds before.
    type: list
    elements: str
    default: []
  data:
    description: >-
      Rows that are merged over the tables of P(kubegpu.nodes.driver_required_by#filter).
    type: dict
    default: {}
  repositories:
    description: Rows that are merged over the table of NVIDIA's repositories.
    type: dict
    default: {}
  controller:
    description: Version of the ansible-core that would install the packages. Not every one can on
      RHEL 8. Empty is this one.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: See what would be done for two versions side by side, and why
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
    C(runfiles), C(link), C(files), C(verify), C(change) (whether anything is to be done),
    C(steps), C(reasons) and C(warnings).
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.release import __version__


_TABLES = ("data", "repositories")


def cuda_toolkit_plan(gpu_node: Mapping[str, Any], **wishes: Any) -> dict[str, Any]:
    """Return the plan of :func:`plan_cuda` as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.options import read_options
    from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.plan import plan_cuda
    from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.types import (
        CudaPlan,
        CudaWish,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError

    defaults = {name: field.default for name, field in CudaWish.__dataclass_fields__.items()}

    if not isinstance(gpu_node, Mapping) or "gpus" not in gpu_node:
        raise AnsibleFilterError(
            "cuda_toolkit_plan needs the fact gpu_node. Next step: run "
            "kubegpu.nodes.gpu_node_facts on the host first."
        )
    wishes["controller"] = wishes.get("controller") or __version__
    unknown = sorted(set(wishes) - {*defaults, *_TABLES})
    if unknown:
        raise AnsibleFilterError(
            f"cuda_toolkit_plan does not know {', '.join(unknown)}. It knows "
            f"{', '.join(sorted({*defaults, *_TABLES}))}."
        )
    for name, value in wishes.items():
        if isinstance(defaults.get(name), bool):
            # `-e hold=false` and INI inventories give words.
            try:
                wishes[name] = boolean(value)
            except TypeError:
                words = f"cuda_toolkit_{name} is {value!r}, which is neither true nor false."
                return CudaPlan("refuse", reasons=(words,)).to_json()
    try:
        wish, tables = read_options(wishes)
    except KubegpuError as error:
        reasons = f"The role cuda_toolkit: {error}".splitlines()
        return CudaPlan("refuse", reasons=tuple(reasons)).to_json()
    return plan_cuda(gpu_node, wish, tables).to_json()


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cuda_toolkit_plan": cuda_toolkit_plan}
