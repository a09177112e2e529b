# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a support bundle of all hosts on the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._controller_action import (
    ControllerAction,
)
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


class ActionModule(ControllerAction):
    """Runs on the controller only."""

    spec: Mapping[str, Any] = {
        "hosts": {"type": "list", "elements": "str", "required": True},
        "dest": {"type": "path", "required": True},
        "result": {"type": "dict", "required": True},
        "rows": {"type": "list", "elements": "dict", "default": []},
        "cluster": {"type": "dict", "default": {}},
    }

    def work(self, options: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        # Before the work: a path that may not be written is refused at once.
        form = FORMS["bundle"]
        before = check_file(trusted(options["dest"], variables), form)
        progress = Progress(self, variables)
        files = bundle_files(
            options["hosts"],
            variables["hostvars"],
            options["result"],
            options["rows"],
            options["cluster"],
            lambda text: progress.show_all([text]) if not progress.pause else None,
        )
        content = archive(files)
        if not self._task.check_mode and before != content:
            write_bytes(options["dest"], content, form)
        listed = manifest(files)
        name, names = options["dest"], "".join(f"{one['name']}\n" for one in listed)
        diff = {"before_header": name, "after_header": name, "before": "", "after": names}
        return {
            "changed": before != content,
            "dest": name,
            "size": len(content),
            "files": listed,
            "hosts": by_host(files, options["hosts"]),
            **({"diff": diff} if self._task.diff else {}),
        }
