# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process that has Ansible imported and forks each run of it (ansible_process.py).

It ends when nobody can ask it any more, and kills the run that is under way then.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.cli.adhoc import AdHocCLI
from ansible.cli.inventory import InventoryCLI
from ansible.cli.playbook import PlaybookCLI
from ansible.plugins import loader

# What a run imports later is imported here.
for _name in ("executor.module_common", "executor.task_executor", "plugins.strategy.linear"):
    importlib.import_module(f"ansible.{_name}")
_PROGRAMS = {
    "ansible": AdHocCLI,
    "ansible-inventory": InventoryCLI,
    "ansible-playbook": PlaybookCLI,
}


def _serve(connection: socket.socket) -> None:
    """Fork a run for each request, until nobody can ask any more."""
    _read_options_of_plugins()
    while True:
        request, files = _receive(connection)
        if not request:
            return
        argv = json.loads(request)
        child = os.fork()
        if child == 0:
            connection.close()
            _be(_PROGRAMS[Path(argv[0]).name], argv, files)
        for file in files:
            os.close(file)
        status = _wait(child, connection)
        if status is None:
            return
        connection.sendall(str(status).encode())


def _read_options_of_plugins() -> None:
    """Their options are in their documentation, whose YAML takes half a second."""
    loader.init_plugin_loader()
    # Each run would do so too, and be told that it was done.
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")
    for one in (
        *(loader.inventory_loader, loader.cache_loader),
        *(loader.connection_loader, loader.shell_loader, loader.become_loader),
    ):
        list(one.all(class_only=True))
    # Once they were listed Ansible takes those that it has made, and reads no group_vars without.
    list(loader.vars_loader.all(class_only=True))
    for name in constants.VARIABLE_PLUGINS_ENABLED:
        loader.vars_loader.get(name)
    for one, name in (
        (loader.callback_loader, os.environ.get("ANSIBLE_STDOUT_CALLBACK", "default")),
        (loader.connection_loader, "community.general.chroot"),
    ):
        one.get(name, class_only=True)


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    request, files, _flags, _address = socket.recv_fds(connection, 1 << 20, 2)
    while request and not request.endswith(b"\n"):
        request += connection.recv(1 << 20)
    return request, files


def _be(program: Any, argv: list[str], files: list[int]) -> None:
    """Be that program; what the forking process does at its end is not done here."""
    status = 250
    try:
        os.setsid()
        for file, target in zip(files, (1, 2), strict=True):
            os.dup2(file, target)
            os.close(file)
        sys.argv = argv
        program.cli_executor(argv)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _wait(child: int, connection: socket.socket) -> int | None:
    """Return its exit status; None, and it is killed, where nobody waits for it any more."""
    handle = os.pidfd_open(child)
    try:
        ready, _write, _error = select.select([handle, connection.fileno()], [], [])
        if handle not in ready:
            _kill(child)
        _pid, status = os.waitpid(child, 0)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(status) if handle in ready else None


def _kill(pid: int) -> None:
    """Kill a process and what it has started; Ansible's workers have sessions of their own."""
    with contextlib.suppress(OSError):
        # It starts nothing any more.
        os.kill(pid, signal.SIGSTOP)
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            _kill(int(child))
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
