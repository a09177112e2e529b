# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: rollout_stop
short_description: Say why no further batch of hosts is begun
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the hosts of a batch, and says whether more of them failed than is allowed. A host that
    was refused before anything was done does not count.
  - Ansible's own C(max_fail_percentage) ends the whole run, with what would have told about it.
positional: _input, hostvars, limit
options:
  _input:
    description: The hosts of the batch, C(ansible_play_batch).
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars). A host that failed has C(kubegpu_failure), as from
      P(kubegpu.nodes.rollout_failure#filter).
    type: dict
    required: true
  limit:
    description: The percentage of the batch that may fail. It has to be exceeded.
    type: float
    default: 0
"""

EXAMPLES = r"""
- name: Begin no other batch after one that failed
  ansible.builtin.meta: end_play
  when: ansible_play_batch | kubegpu.nodes.rollout_stop(hostvars) != ''
"""

RETURN = r"""
_value:
  description: What is said of the hosts of later batches, with the reason. Empty where the next
    batch may begin.
  type: str
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def rollout_stop(
    batch: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], limit: Any = 0
) -> str:
    """Return the answer of :func:`stop_message`."""
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._rollout import stop_message

    failures = {host: hostvars[host].get("kubegpu_failure") for host in batch}
    return stop_message(failures, float(limit))


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"rollout_stop": rollout_stop}
