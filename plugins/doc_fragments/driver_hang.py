# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option of modules that do not ask a driver again that hangs."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended as C(kubegpu.nodes.driver_hang)."""

    DOCUMENTATION = r"""
options:
  driver_hang:
    description: >-
      C(gpu_node.driver_hang) of facts that were read shortly before. A driver that hangs is not
      queried again, neither by C(nvidia-smi) nor by a container.
    type: dict
    suboptions:
      program:
        description: The program that did not answer.
        type: str
        required: true
      pid:
        description: Its process ID; 0 if it is not known.
        type: int
        default: 0
      seconds:
        description: Seconds for which the module waited.
        type: float
        default: 0.0
      state:
        description: Its state in the kernel. V(D) cannot be interrupted.
        type: str
      wchan:
        description: The function of the kernel in which it waited.
        type: str
      left:
        description: Whether it still exists after SIGKILL.
        type: bool
        default: false
"""
