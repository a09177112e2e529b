# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the module of the same name with the options that the settings of a role stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import failure
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._answers import refuse_facts
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import ModuleAction
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._paths import find_file
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._settings import with_repository


class ActionModule(ModuleAction):
    """Reads the key's file, and adds the passwords that a plan does not have."""

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        variables = task_vars or {}
        # With facts as variables, a node could choose the file.
        refuse_facts("package_repository", variables)
        settings = self._task.args.get("settings") or {}
        try:
            key = self._key(settings, variables)
            self._task.args = with_repository(self._task.args, key)
        except InputError as error:
            told = failure(error)
            raise AnsibleActionFail(told["msg"], result=told) from None
        return super().run(tmp, task_vars)

    def _key(self, settings: Mapping[str, Any], variables: Mapping[str, Any]) -> str | None:
        path = settings.get("key_file")
        if not path or self._task.args.get("keyring"):
            return None
        role = self._task._role
        name = f"{role.get_name(include_role_fqcn=False)}_repository" if role else "settings"
        found = find_file(f"{name}.key_file", str(path), variables, self._search)
        # Ansible decrypts a file of its vault.
        text: str = self._loader.get_text_file_contents(found)
        return text.rstrip()

    def _search(self, path: str) -> str:
        return str(self._find_needle("files", path))
