# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fail a host with findings, so that what stores or reports the failure has their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.message import message
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import redact
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.results import (
    result_parts,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._controller_action import (
    ControllerAction,
)


class ActionModule(ControllerAction):
    """Runs on the controller only."""

    spec: Mapping[str, Any] = {
        "findings": {"type": "list", "elements": "dict", "required": True},
        "msg": {"type": "str", "default": ""},
    }

    def work(self, options: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        findings = options["findings"]
        if not findings and not options["msg"]:
            raise InputError(
                "fleet_fail has neither findings nor msg: the failure would have no message.",
                next_step="This is an error of the task that calls it: report its name.",
            )
        text = options["msg"] or "\n\n".join(map(message, findings))
        first = findings[0] if findings else {"msg": text}
        return {"failed": True, "msg": printable(redact(text)), **result_parts(first)}
