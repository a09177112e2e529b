# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options that add rows to the built-in tables of driver branches, GPUs and repositories."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended as C(kubegpu.nodes.driver_tables) and C(kubegpu.nodes.driver_tables.repositories).

    The keys of these mappings are chosen by the user: BRANCH, GPU and FOLDER stand for them.
    """

    DOCUMENTATION = r"""
options:
  branches:
    description:
      - Rows that are merged over the built-in table of driver branches, by the number of the
        branch. A new branch can be used without a new release of this collection.
    type: dict
    default: {}
    suboptions:
      BRANCH:
        description:
          - The number of a branch in quotes, such as C("625").
        type: dict
        suboptions:
          kind:
            description: The kind of the branch, by which O(branch=auto) selects.
            type: str
            choices: [ltsb, production, new_feature, legacy]
          end:
            description: The last day of support, as C(YYYY-MM-DD).
            type: str
          supported:
            description: Whether the branch is supported, if O(branches.BRANCH.end) is not set.
            type: bool
          newest:
            description: The newest version, such as V(625.10.02).
            type: str
          modules:
            description: The kinds of kernel modules of the branch.
            type: list
            elements: str
            choices: [open, proprietary]
  gpus:
    description:
      - Rows that are merged over the built-in table of GPUs, by generation or device ID.
    type: dict
    default: {}
    suboptions:
      GPU:
        description:
          - The four hexadecimal digits of a device ID in quotes, such as C("26b9"), or a
            generation, such as C(ada).
        type: dict
        suboptions:
          first:
            description: The first branch that serves the GPU.
            type: str
          last:
            description: The last branch that serves the GPU.
            type: str
          minimum:
            description: The first version that serves the GPU, or a list with one for each branch.
            type: raw
          modules:
            description: The kinds of kernel modules that the GPU works with.
            type: list
            elements: str
            choices: [open, proprietary]
"""

    REPOSITORIES = r"""
options:
  repositories:
    description:
      - Rows that are merged over the built-in table of repositories, by the name of NVIDIA's
        folder, or that name with C(-archive) for the distribution's own archive.
    type: dict
    default: {}
    suboptions:
      FOLDER:
        description:
          - A name such as C(debian13) or C(ubuntu2404-archive).
        type: dict
        suboptions:
          url:
            description: Address of the folder that contains NVIDIA's folders.
            type: str
          folder:
            description: Name of NVIDIA's folder, if it is another one than the row's.
            type: str
          key:
            description: Name of the key's file in the folder.
            type: str
          key_fingerprints:
            description: Full fingerprints of the keys that may sign the repository.
            type: list
            elements: str
          first:
            description: The first branch in the repository.
            type: str
          last:
            description: The last branch in the repository.
            type: str
          branches:
            description: The branches in the repository, instead of a first and a last one.
            type: list
            elements: str
          architectures:
            description: Names of the folders, or of apt's architectures, by architecture.
            type: dict
          components:
            description: Components of apt's entry that the driver needs.
            type: list
            elements: str
          kernel:
            description: The kernel series with which a release of Ubuntu began.
            type: str
          multiverse:
            description: The branches that are in Ubuntu's component C(multiverse).
            type: list
            elements: str
          transitional:
            description: Branches whose packages install another branch, with that branch.
            type: dict
          modules:
            description: The kinds of kernel modules by branch, for branches without both.
            type: dict
          open_version:
            description: The newest version with open kernel modules, if libraries are newer.
            type: str
          streams:
            description: Streams of dnf's module C(nvidia-driver), by kind of kernel modules.
            type: dict
          signed:
            description: Kernel modules that are built and signed already, as in the built-in rows.
            type: dict
"""
