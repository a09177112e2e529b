# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: rollout_failure
short_description: Keep what a task of a block failed with
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes Ansible's C(ansible_failed_task) and C(ansible_failed_result), which a C(rescue) has, and
    returns what is worth being kept for the end of the run.
positional: _input, result, changed
options:
  _input:
    description: C(ansible_failed_task).
    type: dict
    required: true
  result:
    description: C(ansible_failed_result).
    type: dict
    required: true
  changed:
    description: Whether something on the node was changed before the task. What refuses a plan or a
      value is a failure then, as others are.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Keep that the node failed
  ansible.builtin.set_fact:
    kubegpu_failed: true
    kubegpu_failure: >-
      {{ ansible_failed_task | kubegpu.nodes.rollout_failure(ansible_failed_result) }}
"""

RETURN = r"""
_value:
  description: C(task), C(words), and C(refused), which is true where nothing was done since the
    plan or a value is refused.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any


def rollout_failure(
    task: Mapping[str, Any], result: Mapping[str, Any], changed: bool = False
) -> dict[str, Any]:
    """Return the answer of :func:`failure`."""
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._rollout import failure

    return failure(task, result, changed)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"rollout_failure": rollout_failure}
