# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read files of the controller that variables name, such as keys and tokens."""

from __future__ import annotations

DOCUMENTATION = r"""
name: controller_file
short_description: A file of the controller that a variable names
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - A relative path begins at the folder of the host's inventory, then at the folder in which
    C(ansible-playbook) was started, and then where P(ansible.builtin.file#lookup) searches.
  - Refuses to work for a host whose facts have names of variables of this collection. With
    C(inject_facts_as_vars) a node could otherwise choose the file by such a fact.
options:
  _terms:
    description: Paths. An empty one gives an empty text.
    type: list
    elements: str
    required: true
  option:
    description: The variable that has the path, for messages.
    type: str
    default: path
  returns:
    description: V(text) is the content without line breaks at its end, V(exact) the content as it
      is, and V(path) the absolute path.
    type: str
    choices: [text, exact, path]
    default: text
seealso:
  - plugin: ansible.builtin.file
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Set up a repository with a key next to the inventory
  kubegpu.nodes.package_repository:
    name: example
    url: https://mirror.example.org/example
    key: "{{ lookup('kubegpu.nodes.controller_file', 'files/example.asc', option='example_key') }}"
    key_fingerprints: [2BA4A2A2F3C46D7A1C3C1B6F4A0E8C5D9B7E6F10]
"""

RETURN = r"""
_list:
  description: Content or path of each file.
  type: list
  elements: str
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fact_names import refusal
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._paths import find_file


class LookupModule(LookupBase):
    """Reads what the variables of the task's host name."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[str]:
        self.set_options(var_options=variables, direct=kwargs)
        given = variables or {}
        found = refusal(str(given.get("inventory_hostname", "")), given.get("ansible_facts"))
        try:
            if found is not None:
                raise found
            return [self._one(str(term), given) if term else "" for term in terms]
        except InputError as error:
            raise AnsibleError(str(error)) from error

    def _one(self, path: str, variables: Mapping[str, Any]) -> str:
        search: Callable[[str], str] = _search(self, dict(variables))
        found = find_file(self.get_option("option"), path, variables, search)
        returns = self.get_option("returns")
        if returns == "path":
            return found
        # Ansible decrypts a file of its vault.
        text: str = self._loader.get_text_file_contents(found)
        return text if returns == "exact" else text.rstrip()


def _search(lookup: LookupBase, variables: dict[str, Any]) -> Callable[[str], str]:
    def search(path: str) -> str:
        found = lookup.find_file_in_search_path(variables, "files", path, ignore_missing=True)
        if not found:
            raise AnsibleError(f"{path} was not found.")
        return str(found)

    return search
