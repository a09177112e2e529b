# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a module on a node answers: facts stay data, and texts are printed without control codes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable

from ._fact_names import FACT, refusal

# The module that reads a node.
_READS = "gpu_node_facts"
# Set by the playbook that shows refused hosts: it reads them too, for their rows.
READS_REFUSED = "__kubegpu_reads_refused"
# Those that return the fact gpu_node: the verification reads the node again.
_RETURN_FACT = (_READS, "gpu_node_verify")
# Ansible acts on these keys of a result, as if a task of the playbook said so.
_ACTED_ON = ("ansible_facts", "ansible_stats", "add_host", "add_group")
_INTERNAL = ("_ansible_facts", "_ansible_delegated_vars")
# Ansible prints these texts unchanged.
_PRINTED = (
    "msg", "cause", "evidence", "next_step", "reason", "exception",
    "module_stdout", "module_stderr", "stdout", "stderr", "warnings", "deprecations",
)  # fmt: skip


def refuse_facts(name: str, variables: Mapping[str, Any]) -> None:
    """Refuse to work for a host whose facts have names of variables of this collection.

    :param name: the module, or the file of its action.
    :raises AnsibleActionFail: the host has such a fact.
    """
    host = str(variables.get("inventory_hostname", "The host"))
    facts: Any = variables.get("ansible_facts")
    found = refusal(host, facts)
    if found is None:
        return
    # A node can return a fact of this name, too.
    shown = bool(variables.get(READS_REFUSED)) and READS_REFUSED not in facts
    if not shown or _short(name) != _READS:
        raise AnsibleActionFail(str(found))


def taken_over(name: str, result: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is left of a module's result: the fact of this collection, and no other.

    :param name: the module, or the file of its action.
    :param own: facts that Ansible itself found, as the interpreter of the node.
    """
    given = result.get("ansible_facts")
    kept = {
        key: value
        for key, value in result.items()
        if key not in _ACTED_ON and not key.startswith(_INTERNAL)
    }
    facts = dict(own)
    if _short(name) in _RETURN_FACT and isinstance(given, Mapping) and FACT in given:
        facts[FACT] = given[FACT]
    if facts:
        kept["ansible_facts"] = facts
    for key in _PRINTED:
        if key in kept:
            kept[key] = _shown(kept[key])
    return kept


def clean_output(text: str) -> str:
    """Return what a module printed, without control codes in the texts that Ansible prints.

    Ansible collects the warnings of a module while it reads this, before an action sees them.
    """
    if "\\u" not in text and text.replace("\n", "").isprintable():
        return text
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        # Ansible shows what is around an object.
        return printable(text) if "{" in text else text
    if not isinstance(answer, dict):
        return text
    texts = {key: _shown(answer[key]) for key in _PRINTED if key in answer}
    if all(answer[key] == one for key, one in texts.items()):
        return text
    return json.dumps({**answer, **texts})


def _short(name: str) -> str:
    return str(name).rpartition(".")[2]


def _shown(value: Any) -> Any:
    """Return a text without control codes, and so all texts of a mapping, list or dataclass.

    Ansible has warnings, deprecations and errors as texts, mappings or dataclasses.
    """
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {key: _shown(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_shown, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [one.name for one in dataclasses.fields(value) if one.init]
        return dataclasses.replace(value, **{one: _shown(getattr(value, one)) for one in parts})
    return value
