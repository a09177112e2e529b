# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nvidia_driver_plan
short_description: Decide which NVIDIA driver a node needs, and how to install it
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the facts of M(kubegpu.nodes.gpu_node_facts) and options, and returns branch, kind of
    kernel modules, source, packages and steps, with a reason for each.
  - Reads and changes nothing. A request that cannot be met is not an error, but a plan whose
    C(action) is V(refuse); so is an option with a wrong value. An unknown option is an error.
  - The keyword arguments are the options of M(kubegpu.nodes.nvidia_driver) and the variables of
    the role P(kubegpu.nodes.nvidia_driver#role) without its prefix.
positional: _input
options:
  _input:
    description: The fact C(gpu_node).
    type: dict
    required: true
  state:
    description: Whether a driver must be installed. V(absent) removes what this collection
      installed.
    type: str
    choices: [present, absent]
    default: present
  branch:
    description:
      - The number of a driver branch, or V(auto). Any version of the branch is accepted.
      - V(auto) keeps any working driver that serves all GPUs, and never upgrades it.
    type: str
    default: auto
  version:
    description: An exact version, or V(previous) for the driver before the last change.
    type: str
    default: ""
  kernel_module:
    description: Kind of kernel modules. V(auto) selects those that the GPUs need, or NVIDIA's
      default.
    type: str
    choices: [auto, open, proprietary]
    default: auto
  source:
    description:
      - The source of the driver. V(auto) selects Ubuntu's archive if it has the branch, and
        NVIDIA's repository otherwise; on Debian the other way round.
    type: str
    choices: [auto, distro, nvidia, runfile]
    default: auto
  runfile:
    description:
      - NVIDIA's installer, with C(url) or C(path), C(checksum), and C(version) if the name does not
        contain it. C(remote) is whether the path is on the node.
      - If given with O(source=auto), it is the source.
    type: dict
  hold:
    description: Whether the whole set of packages is held.
    type: bool
    default: true
  load:
    description: Whether the kernel module is loaded after a change.
    type: bool
    default: true
  replace_source:
    description: Whether a driver from another source may be replaced.
    type: bool
    default: false
  dkms:
    description:
      - Whether the modules are built on the node. V(auto) prefers Ubuntu's prebuilt, signed
        modules.
      - V(true) is also the consent to Secure Boot with a key that must be enrolled manually.
    type: str
    choices: [auto, 'true', 'false']
    default: auto
  compute_only:
    description: Whether packages for graphics and video are left out.
    type: bool
    default: false
  module_options:
    description: Options of the kernel modules, as C(OPTION) of the module nvidia or
      C(MODULE.OPTION).
    type: dict
    default: {}
  coherent_memory:
    description:
      - Who manages the GPUs' memory on boards with a Grace CPU (GH200, GB200, GB300), the driver
        or, with V(numa), the kernel. V(auto) keeps the driver's default.
    type: str
    choices: [auto, driver, numa]
    default: auto
  persistence:
    description: Whether the persistence daemon is enabled.
    type: bool
    default: true
  fabric:
    description:
      - Whether the fabric manager is required. V(auto) requires it if the node has NVSwitches, or
        GPUs of a board that has them.
    type: str
    choices: [auto, 'true', 'false']
    default: auto
  imex:
    description:
      - Whether the package of NVIDIA's IMEX service is required. V(auto) requires it for GPUs of a
        rack with NVLink between nodes.
    type: str
    choices: [auto, 'true', 'false']
    default: auto
  imex_nodes:
    description:
      - Addresses or names of all nodes of the IMEX domain. If empty, the service is not changed.
    type: list
    elements: str
    default: []
  licence:
    description:
      - Licence (license) of a vGPU guest, for C(/etc/nvidia/gridd.conf) and the token.
    type: dict
    default: {}
    suboptions:
      token_path:
        description:
          - Path on the controller of the client configuration token of NVIDIA's License System,
            which names the server. It is copied to the node and never displayed.
        type: str
      token_sha256:
        description:
          - SHA-256 of the token, by which a plan sees whether the node has this one.
        type: str
      server:
        description:
          - Address of a legacy licence server, for guests without a token.
        type: str
      port:
        description:
          - Port of O(licence.server).
        type: int
      feature_type:
        description:
          - C(FeatureType) of C(gridd.conf). V(1) is the licence that the type of the vGPU needs,
            V(2) RTX Virtual Workstation, V(4) Virtual Compute Server.
        type: int
        choices: [1, 2, 4]
      timeout:
        description:
          - Seconds to wait for the licence after a change, at most 1800; V(0) does not wait.
        type: int
        default: 120
  manage_repository:
    description: Whether the plan includes the package repository.
    type: bool
    default: true
  repository_name:
    description: Name of the repository's file, without its suffix.
    type: str
    default: kubegpu-nvidia-driver
  repository_url:
    description:
      - Address of a mirror of NVIDIA's repository. V({distribution}) and V({architecture}) stand
        for the names of NVIDIA's folders, such as C(ubuntu2404) and C(x86_64).
    type: str
    default: ""
  repository_key_url:
    description: Address of its key. If empty, NVIDIA's file below the repository's address.
    type: str
    default: ""
  key_fingerprints:
    description: Full fingerprints of the keys that may sign it. If empty, NVIDIA's own.
    type: list
    elements: str
    default: []
  today:
    description: The date against which support ends are compared, as C(YYYY-MM-DD). If empty, the
      controller's date.
    type: str
    default: ""
  controller:
    description: Version of the ansible-core that would install the packages. Not every one can on
      RHEL 8. If empty, the one that runs the filter.
    type: str
    default: ""
extends_documentation_fragment:
  - kubegpu.nodes.driver_tables
  - kubegpu.nodes.driver_tables.repositories
"""

EXAMPLES = r"""
- name: Show which driver this node would get, and why
  ansible.builtin.debug:
    msg: "{{ (ansible_facts['gpu_node'] | kubegpu.nodes.nvidia_driver_plan).reasons }}"

- name: Add a branch that is newer than this release
  ansible.builtin.debug:
    msg: >-
      {{ ansible_facts['gpu_node'] | kubegpu.nodes.nvidia_driver_plan(
           branch='625', branches={'625': {'kind': 'production', 'end': '2027-12-31'}}) }}
"""

RETURN = r"""
_value:
  description:
    - C(action) (none, install, upgrade, downgrade, remove or refuse), C(branch), C(version) (null
      is what the source has of the branch), C(kernel_module), C(source), C(packages),
      C(optional_packages), C(pinning), C(streams) (of dnf's modules, by module), C(obsolete),
      C(lock), C(hold), C(repository), C(runfile), C(uninstall), C(files), C(licence_token),
      C(services), C(initramfs), C(load), C(change), C(reboot), C(steps), C(reasons) and
      C(warnings). All keys are always present.
  type: dict
"""

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.release import __version__


def nvidia_driver_plan(gpu_node: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Return the plan of :func:`plan_driver` as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import (
        ARGUMENTS,
        read_options,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import (
        Plan,
        plan_driver,
    )
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._plan_filters import check_call

    check_call("nvidia_driver_plan", gpu_node, options, ARGUMENTS)
    options["controller"] = options.get("controller") or __version__
    if not options.get("today"):
        options["today"] = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    try:
        request, data = read_options(options)
        return plan_driver(gpu_node, request, data).to_json()
    except InputError as error:
        return Plan("refuse", reasons=tuple(str(error).splitlines())).to_json()
    except KeyError as error:
        # A cache can hold the facts of an earlier release.
        raise AnsibleFilterError(
            f"nvidia_driver_plan: the fact gpu_node has no {error}: it is of another release, from "
            "a fact cache. Next step: run kubegpu.nodes.gpu_node_facts on the host again."
        ) from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"nvidia_driver_plan": nvidia_driver_plan}
