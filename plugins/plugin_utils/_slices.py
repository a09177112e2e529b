# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base of the actions that run their module in slices, and show in between what is waited for.

A module prints nothing while it runs, and a drain may wait for hours. No process remains on the
host between two slices, so that a lost connection or an interrupt leaves nothing running. A worker
outlives a playbook that is killed, and begins no further slice.
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    with_internal,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.process import (
    is_alive,
    parent_identity,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import (
    lost_connection_fails,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._missing_rights import (
    with_all_rights,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._phases import take_over
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import (
    Progress,
    show_lines,
)

_SLICE = 30
# Seconds: the lines of a slice that ends in time are newer than those that would be shown in it.
_LATE = 10
_TEXTS = {
    "cordoned": "cordoning the nodes",
    "drained": "draining the nodes",
    "released": "releasing the nodes",
}


class SlicedAction(ActionBase):
    """One call of the module if all leave soon; otherwise one for each half minute."""

    TRANSFERS_FILES = False
    _supports_async = False
    _supports_check_mode = True
    # The module's short name.
    module = ""

    @lost_connection_fails
    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        options = {
            name: value for name, value in self._task.args.items() if not name.startswith("_")
        }
        # Of which this process is a worker.
        playbook = parent_identity()
        lease = {"_process": playbook} if options.get("lease") else {}
        progress = Progress(self, task_vars)
        doing = _TEXTS.get(str(options.get("state")), f"running {self.module}")
        first = lines = [f"{progress.host}: {doing}"]
        carry: dict[str, Any] | None = None
        requests: dict[str, int] = {}
        changed, ended = False, ""
        while True:
            if parent_identity() != playbook:
                # The next run may have the nodes by now.
                raise AnsibleError("The playbook has ended; its task is not continued.")
            internal = {"_slice": _SLICE, **lease, **({"_carry": carry} if carry else {})}
            # A slice may last longer than planned, and the other states are one call.
            late = _LATE if options.get("state") == "drained" else 0
            with show_lines(progress, lines, late):
                answer: dict[str, Any] = self._execute_module(
                    module_name=f"kubegpu.nodes.{self.module}",
                    module_args=with_internal(options, **internal),
                    task_vars=task_vars,
                )
            answer.pop("invocation", None)
            process = str(answer.get("lease_process") or "")
            if process and process != ended and is_alive(process) is False:
                # Nothing was changed. The Lease is left from a run that was killed.
                ended = process
                lease["_ended"] = ended
                continue
            take_over(answer, result)
            if "requests" in answer:
                for verb, number in answer["requests"].items():
                    requests[verb] = requests.get(verb, 0) + number
                answer["requests"] = requests
            changed = changed or bool(answer.get("changed"))
            carry = answer.pop("_carry", None)
            lines = answer.pop("_progress", ()) or first
            if not carry:
                result.update(answer, **({"changed": True} if changed else {}))
                return with_all_rights(self, result, task_vars or {})
            if not progress.pause:
                progress.show_all(lines)
