# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base class of the actions that work on the controller and connect to no node."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError, Refusal
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import failure


class ControllerAction(ActionBase):
    """Checks its options, works, and fails with cause, evidence and next step."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    #: The argument spec, and rules of several options such as ``required_one_of``.
    spec: Mapping[str, Any]
    rules: Mapping[str, Any] = {}

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec=dict(self.spec), **self.rules
        )
        try:
            return {**result, "changed": False, **self.work(options, task_vars or {})}
        except (InputError, Refusal) as error:
            told = failure(error)
            # Ansible adds the message of a cause, which has the secrets.
            raise AnsibleActionFail(told["msg"], result=told) from None

    @abstractmethod
    def work(self, options: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        """Return the values of the result.

        :param options: checked, with their defaults.
        :param variables: of the task; ``hostvars`` has those of all hosts.
        :raises InputError: the task fails.
        """
