# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run kubernetes.core.k8s, and fail with cause, evidence and next step instead of its answer."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._missing_rights import (
    with_all_rights,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._object_errors import (
    changed_kinds,
    in_words,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._phases import PhasedAction

_MODULE = "kubernetes.core.k8s"


class ActionModule(PhasedAction):
    """The options and the result are those of that module."""

    module = "cluster_objects"

    def work(
        self, options: dict[str, Any], task_vars: dict[str, Any], result: dict[str, Any]
    ) -> None:
        answer = self.other(_MODULE, options, task_vars)
        result.update(with_all_rights(self, in_words(answer, options), task_vars))
        if not answer.get("failed"):
            result["kinds"] = changed_kinds(answer)
