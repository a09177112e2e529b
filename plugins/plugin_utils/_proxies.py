# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pass proxy addresses, which can hold a password, to modules of other collections.

Ansible puts a task's ``environment`` in front of the command that starts the module. Every user of
the node can read it in the process list, and sudo logs it. Therefore the variables are written to a
file in Ansible's temporary directory, which only the connection's user can read. The shell reads
the file, removes it, and starts the module. Our own modules have options for it (``no_log``).
"""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.proxy_options import (
    PROXIES,
    proxies_of,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._settings import with_proxies

# Modules that have options for proxies, or use no network.
_UNPROXIED = (
    "ansible.builtin.async_status",
    "ansible.builtin.file",
    "ansible.builtin.slurp",
    "ansible.builtin.stat",
    "kubegpu.nodes.cuda_toolkit",
    "kubegpu.nodes.nvidia_driver",
    "kubegpu.nodes.package_set",
)


class ProxiedAction(ActionBase):
    """Runs other modules with the proxies of the task's options (``http_proxy``, ...)."""

    _for_this_module = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        try:
            self._task.args = with_proxies(self._task.args)
        except InputError as error:
            raise AnsibleActionFail(str(error)) from None
        result: dict[str, Any] = super().run(tmp, task_vars)
        return result

    def _execute_module(self, module_name: str | None = None, **more: Any) -> dict[str, object]:
        before, self._for_this_module = self._for_this_module, module_name not in _UNPROXIED
        try:
            answer: dict[str, object] = super()._execute_module(module_name=module_name, **more)
            return answer
        finally:
            self._for_this_module = before

    def _compute_environment_string(self, raw_environment_out: dict[str, Any] | None = None) -> str:
        text: str = super()._compute_environment_string(raw_environment_out)
        proxies = proxies_of(self._task.args)
        # Called twice for a module; the call with an argument is not for the command.
        if raw_environment_out is not None or not self._for_this_module or not proxies:
            return text
        return f"{self._from_file(proxies)} {text}"

    def _from_file(self, proxies: Mapping[str, str]) -> str:
        """Write the variables to a file on the node; return shell code to read and remove it."""
        shell = self._connection._shell
        if shell.tmpdir is None:
            self._make_tmp_path()
        path = shell.join_path(shell.tmpdir, f"environment-{uuid.uuid4().hex}")
        lines = [
            f"export {name}={shlex.quote(proxies[name])}\n" for name in PROXIES if name in proxies
        ]
        self._transfer_data(path, "".join(lines))
        # The user that the module runs as must be able to read it.
        self._fixup_perms2([shell.tmpdir, path], execute=False)
        quoted = shlex.quote(path)
        return f". {quoted}; rm -f {quoted};"
