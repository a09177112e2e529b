# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the files that people name on the controller: tokens, keys, runfiles, hooks.

A relative path begins at the folder of the inventory, then at the current folder. Only then is it
searched as Ansible does, which for the playbooks of a collection means inside the collection.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleError

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError

Search = Callable[[str], str]


def find_file(
    option: str, path: str, variables: Mapping[str, Any], search: Search | None = None
) -> str:
    """Return the absolute path of a regular file of the controller.

    :param option: the variable that names it, for messages.
    :param variables: those of the host; ``inventory_dir`` is the folder of its inventory.
    :param search: Ansible's own search, which raises if it finds nothing.
    :raises InputError: the file does not exist.
    """
    expanded = os.path.expandvars(os.path.expanduser(path))
    places = _places(expanded, variables)
    for place in places:
        if os.path.exists(place):
            return _regular(option, place)
    if search is not None and not os.path.isabs(expanded):
        try:
            return _regular(option, search(expanded))
        except AnsibleError:
            # It lists every folder of the collection. The places above are those to use.
            pass
    raise InputError(
        f"{option}: {path} is not on the controller.",
        evidence=f"there is no {' and no '.join(places)}",
        next_step="Put the file there, or give its path: absolute, or relative to the folder of "
        "the inventory or to the folder in which ansible-playbook is started.",
    )


def file_digest(path: str) -> str:
    """Return the SHA-256 of a file, which may be large.

    :raises OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for part in iter(lambda: handle.read(1024 * 1024), b""):
            digest.update(part)
    return digest.hexdigest()


def _places(path: str, variables: Mapping[str, Any]) -> list[str]:
    folder = variables.get("inventory_dir")
    # An inventory on the command line, such as "gpu1,", has none.
    folders = [folder] if isinstance(folder, str) and folder else []
    found = [os.path.abspath(os.path.join(one, path)) for one in (*folders, os.getcwd())]
    return list(dict.fromkeys(found))


def _regular(option: str, path: str) -> str:
    if os.path.isfile(path):
        return path
    raise InputError(
        f"{option}: {path} is not a regular file on the controller.",
        next_step="Give the path of the file itself.",
    )
