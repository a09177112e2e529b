# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_explain
short_description: Explain a log or an error about GPUs
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Returns the known faults in a text, such as lines of the kernel's log, the error of a container,
    the log of a device plugin, the events of a pod, the output of a package manager, or that of
    C(dcgmi diag). The page of findings has all faults that are known.
  - With the facts of the node, these decide between several causes of one message. Without, a
    message that several causes can have is a finding with C(confidence) V(possible) that names all
    of them.
  - Reads nothing from a node, and needs no host.
positional: _input, facts
options:
  _input:
    description: The text. Of one of more than 256 KiB the lines about GPUs, containers, packages
      and builds are searched, up to 256 KiB of them from its end; equal lines count once or twice.
    type: str
    required: true
  facts:
    description: The fact C(gpu_node) of the node of the text, as M(kubegpu.nodes.gpu_node_facts)
      returns it.
    type: dict
  host:
    description: The name of that node in the inventory, for the commands in C(fix). Without, they
      have the word C(HOST).
    type: str
    default: ""
seealso:
  - module: kubegpu.nodes.gpu_node_facts
  - module: kubegpu.nodes.gpu_node_health
"""

EXAMPLES = r"""
- name: Explain the kernel's log of each node
  hosts: gpus
  tasks:
    - name: Read the facts
      kubegpu.nodes.gpu_node_facts:

    - name: Read the kernel's log
      ansible.builtin.command: dmesg
      register: kernel_log
      changed_when: false

    - name: Show what it says about GPUs
      ansible.builtin.debug:
        msg: >-
          {{ kernel_log.stdout
             | kubegpu.nodes.gpu_explain(ansible_facts.gpu_node, host=inventory_hostname) }}

- name: Tell why a container has not started
  hosts: localhost
  tasks:
    - name: Show causes and next steps
      ansible.builtin.debug:
        msg: "{{ item.severity }}: {{ item.cause }} {{ item.next_step }}"
      loop: "{{ lookup('ansible.builtin.file', 'error.txt') | kubegpu.nodes.gpu_explain }}"
      loop_control:
        label: "{{ item.code }}"

- name: Open a ticket for faults of hardware only
  ansible.builtin.debug:
    msg: "{{ inventory_hostname }}: {{ item.cause }}"
  loop: >-
    {{ kernel_log.stdout | kubegpu.nodes.gpu_explain | selectattr('code', 'eq', 'gpu_lost') }}
  loop_control:
    label: "{{ item.code }}"
"""

RETURN = r"""
_value:
  description:
    - The faults, the worst first; an empty list if none is known in the text.
  type: list
  elements: dict
  contains:
    code:
      description: Identifies the fault, see the page of findings.
      type: str
    severity:
      description: V(error), V(warning) or V(info).
      type: str
    subject:
      description: What the fault is about, such as the address of a GPU; empty if the text does not
        tell.
      type: str
    cause:
      description: What is wrong.
      type: str
    evidence:
      description: The line that shows it, without secrets.
      type: str
    next_step:
      description: What to do.
      type: str
    fix:
      description: A command or variables; empty if none is known.
      type: str
    confidence:
      description: V(proven), V(likely) or V(possible).
      type: str
    alternatives:
      description: The codes of other possible causes.
      type: list
      elements: str
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def gpu_explain(
    value: Any, facts: Mapping[str, Any] | None = None, *, host: str = ""
) -> list[dict[str, Any]]:
    """Return the known faults in a text."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._explain import explain_text

    try:
        return explain_text(value, facts, host)
    except InputError as error:
        raise AnsibleFilterError(f"gpu_explain: {error}") from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_explain": gpu_explain}
