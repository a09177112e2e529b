# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that the action of a module sends and that nobody else sets, such as its phase.

They are not part of the module's interface, so that its argument spec and its documentation do not
have them. They travel in one argument, which is taken out before Ansible validates the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

_ARGUMENT = "_internal"


def with_internal(options: Mapping[str, Any], **internal: Any) -> dict[str, Any]:
    """Return the arguments of a module; the user's cannot set the internal ones."""
    return {**options, _ARGUMENT: internal}


class InternalOptionsModule(AnsibleModule):
    """A module whose ``params`` also have the options of ``internal``, with their defaults.

    :param internal: their argument spec. The names begin with an underscore.
    """

    def __init__(self, *, internal: Mapping[str, Mapping[str, Any]], **settings: Any) -> None:
        self._sent: Mapping[str, Any] = {}
        super().__init__(**settings)
        found = ArgumentSpecValidator(dict(internal)).validate(self._sent)
        if found.error_messages:
            self.fail_json(msg=f"{_ARGUMENT}: {'; '.join(found.error_messages)}")
        self.no_log_values.update(found._no_log_values)
        self.params.update(found.validated_parameters)

    def _load_params(self) -> None:
        super()._load_params()
        self._sent = self.params.pop(_ARGUMENT, {})
