# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute a result from the variables of several hosts, once for all of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._controller_action import (
    ControllerAction,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._results import RESULTS

_STAGES = ("diagnosis", "upgrade_draft", "upgrade_plan", "upgrade_stop")
_STAGES_FILE = "ansible_collections.kubegpu.nodes.plugins.plugin_utils._stage_results"


class ActionModule(ControllerAction):
    """Runs on the controller only."""

    spec: Mapping[str, Any] = {
        "of": {"type": "str", "choices": [*RESULTS, *_STAGES], "required": True},
        "hosts": {"type": "list", "elements": "str", "required": True},
        "given": {"type": "dict", "default": {}},
    }

    def work(self, options: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        of = options["of"]
        table = importlib.import_module(_STAGES_FILE).RESULTS if of in _STAGES else RESULTS
        result = table[of](options["hosts"], variables["hostvars"], **options["given"])
        return {"result": result}
