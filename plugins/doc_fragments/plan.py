# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options that the filters of plans of packages have in common."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended as C(kubegpu.nodes.plan), and for Docker also C(kubegpu.nodes.plan.docker)."""

    DOCUMENTATION = r"""
options:
  manage_repository:
    description: Whether to manage the package repository.
    type: bool
    default: true
  repository_url:
    description: Address of the repository or a mirror of it. If it is empty, the vendor's is used.
    type: str
    default: ""
  key_fingerprints:
    description: Full fingerprints of the keys that may sign the repository. If it is empty, the
      vendor's are used.
    type: list
    elements: str
    default: []
  hold:
    description: Whether to hold the packages at their version.
    type: bool
    default: true
  controller:
    description: Version of ansible-core that would install the packages; not every version supports
      RHEL 8. The default is the running version.
    type: str
"""

    DOCKER = r"""
options:
  docker:
    description: Whether to configure Docker. V(auto) configures it if it is installed.
    type: str
    choices: [auto, 'true', 'false']
    default: auto
  docker_set_default:
    description: Whether the runtime becomes Docker's default.
    type: bool
    default: false
  docker_restart:
    description: Whether Docker may be restarted where a reload is not enough.
    type: str
    choices: [never, if_idle, always]
    default: if_idle
"""
