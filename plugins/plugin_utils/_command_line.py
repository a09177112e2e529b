# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that a person can paste: with the inventory and the questions of the run.

Extra variables are left out, as they may hold secrets; a file of them is a path only.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ansible import constants, context

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.commands import with_arguments

_BECOME = "-b"
# Options of ansible and of ansible-playbook, by their names in Ansible's parsed arguments.
_QUESTIONS = {
    "become": _BECOME,
    "ask_pass": "-k",
    "become_ask_pass": "-K",
    "ask_vault_pass": "-J",
}
_VALUES = {
    "connection": ("-c", "DEFAULT_TRANSPORT"),
    "remote_user": ("-u", "DEFAULT_REMOTE_USER"),
    "private_key_file": ("--private-key", "DEFAULT_PRIVATE_KEY_FILE"),
    "become_method": ("--become-method", "DEFAULT_BECOME_METHOD"),
    "become_user": ("--become-user", "DEFAULT_BECOME_USER"),
}
_FILES = {
    "connection_password_file": ("--connection-password-file", "CONNECTION_PASSWORD_FILE"),
    "become_password_file": ("--become-password-file", "BECOME_PASSWORD_FILE"),
    "vault_password_files": ("--vault-password-file", "DEFAULT_VAULT_PASSWORD_FILE"),
}


def complete(value: Any, arguments: Sequence[str] | None = None) -> Any:
    """Return a text, or a list or mapping of texts, with complete commands of the playbooks.

    :param arguments: those of this run by default.
    """
    if isinstance(value, Mapping):
        return {key: complete(one, arguments) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [complete(one, arguments) for one in value]
    if not isinstance(value, str) or "ansible" not in value:
        return value
    words = run_arguments() if arguments is None else list(arguments)
    return with_arguments(value, words, _without_become(words))


def ping(host: str) -> str:
    """Return the command that tries the connection to a host and becoming root."""
    words = _without_become(run_arguments())
    return shlex.join(["ansible", host, *words, _BECOME, "-m", "ansible.builtin.ping"])


def copy_key(host: str, variables: Mapping[str, Any]) -> str:
    """Return the command that copies the user's key of ssh to a host."""
    user = variables.get("ansible_user") or context.CLIARGS.get("remote_user")
    name = str(variables.get("ansible_host") or host)
    port = variables.get("ansible_port")
    words = ["ssh-copy-id", *(["-p", str(port)] if port else [])]
    return shlex.join([*words, f"{user}@{name}" if user else name])


def run_arguments(given: Mapping[str, Any] | None = None) -> list[str]:
    """Return the arguments by which another run finds the same hosts and may do the same.

    :param given: Ansible's parsed arguments, those of this run by default.
    """
    given = context.CLIARGS if given is None else given
    found = [word for one in _inventories(given) for word in ("-i", one)]
    for name, (option, setting) in _VALUES.items():
        if given.get(name) not in (None, "", getattr(constants, setting, None)):
            found += [option, str(given[name])]
    found += [option for name, option in _QUESTIONS.items() if given.get(name)]
    for name, (option, setting) in _FILES.items():
        values = given.get(name) or ()
        for one in [values] if isinstance(values, str) else values:
            if one != getattr(constants, setting, None):
                found += [option, _short(str(one))]
    found += [word for one in given.get("vault_ids") or () for word in ("--vault-id", str(one))]
    for one in given.get("extra_vars") or ():
        if str(one).startswith("@"):
            found += ["-e", f"@{_short(str(one)[1:])}"]
    return found


def _without_become(words: Sequence[str]) -> list[str]:
    return [word for word in words if word != _BECOME]


def inventories() -> list[str]:
    """Return the inventories of this run."""
    return [str(one) for one in context.CLIARGS.get("inventory") or ()]


def _inventories(given: Mapping[str, Any]) -> list[str]:
    """Return the inventories as a person would write them; none if ansible.cfg names them."""
    inventories = [str(one) for one in given.get("inventory") or ()]
    if inventories == [str(one) for one in constants.DEFAULT_HOST_LIST or ()]:
        return []
    return [one if "," in one else _short(one) for one in inventories]


def _short(path: str) -> str:
    """Return a path below the current folder without it."""
    here = os.path.join(os.getcwd(), "")
    return path[len(here) :] if path.startswith(here) else path
