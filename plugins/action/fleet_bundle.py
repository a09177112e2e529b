# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a support bundle of all hosts on the controller."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._bundle import (
    archive,
    bundle_files,
    by_host,
    manifest,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._files import (
    FORMS,
    check_file,
    trusted,
    write_bytes,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import Progress


class ActionModule(ActionBase):
    """Runs on the controller only and connects to no node."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec={
                "hosts": {"type": "list", "elements": "str", "required": True},
                "dest": {"type": "path", "required": True},
                "result": {"type": "dict", "required": True},
                "rows": {"type": "list", "elements": "dict", "default": []},
                "cluster": {"type": "dict", "default": {}},
            }
        )
        # Before the work: a path that may not be written is refused at once.
        form = FORMS["bundle"]
        try:
            before = check_file(trusted(options["dest"], task_vars or {}), form)
        except InputError as error:
            raise AnsibleActionFail(str(error)) from error
        progress = Progress(self, task_vars)
        files = bundle_files(
            options["hosts"],
            (task_vars or {})["hostvars"],
            options["result"],
            options["rows"],
            options["cluster"],
            lambda text: progress.show_all([text]) if not progress.pause else None,
        )
        content = archive(files)
        if not self._task.check_mode and before != content:
            write_bytes(options["dest"], content, form)
        listed = manifest(files)
        if self._task.diff:
            name = options["dest"]
            result["diff"] = {"before_header": name, "after_header": name, "before": "",
                              "after": "".join(f"{one['name']}\n" for one in listed)}  # fmt: skip
        result.update(
            changed=before != content,
            dest=options["dest"],
            size=len(content),
            files=listed,
            hosts=by_host(files, options["hosts"]),
        )
        return result
