# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a support bundle of all hosts on the controller."""

from __future__ import annotations

import os
import stat
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._bundle import (
    archive,
    bundle_files,
    by_host,
    manifest,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._files import write_bytes
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import Progress

_GZIP = b"\x1f\x8b"
_OTHER = (
    "dest {} is {} on the controller, which a support bundle does not replace. Next step: give "
    "the path of a new file, or of an earlier bundle."
)


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
        before = _read(options["dest"])
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
            write_bytes(options["dest"], content)
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


def _read(path: str) -> bytes | None:
    """Return the earlier bundle; None if there is none.

    :raises AnsibleActionFail: it cannot be read, or is no archive that could be a bundle.
    """
    try:
        with open(path, "rb", opener=_open) as handle:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise AnsibleActionFail(_OTHER.format(path, "no regular file"))
            content = handle.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AnsibleActionFail(
            f"{path} cannot be read on the controller: {error}. Next step: give a path that you "
            "may read."
        ) from error
    if content and not content.startswith(_GZIP):
        raise AnsibleActionFail(_OTHER.format(path, "another file"))
    return content


def _open(path: str, flags: int) -> int:
    # Opening a pipe without a writer would block.
    return os.open(path, flags | os.O_NONBLOCK)
