# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands of Ansible in fixes: written here, and here only found again. Pure.

What shows a fix adds the arguments of its own run, such as the inventory.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

#: The reboot of one host.
REBOOT = "ansible {host} --become -m ansible.builtin.reboot"
_PLAYBOOK = "ansible-playbook kubegpu.nodes."
_PLAYBOOKS = re.compile(rf"\b{re.escape(_PLAYBOOK)}\w+")
_MODULES = re.compile(r"\bansible \S+(?= --become -m )")


def playbook(name: str) -> str:
    """Return the command that runs a playbook of this collection."""
    return f"{_PLAYBOOK}{name}"


def with_arguments(text: str, of_playbooks: Sequence[str], of_modules: Sequence[str]) -> str:
    """Return a text in which each command has the arguments that another run needs."""
    return _added(_MODULES, _added(_PLAYBOOKS, text, of_playbooks), of_modules)


def _added(pattern: re.Pattern[str], text: str, words: Sequence[str]) -> str:
    more = [shlex.quote(word) for word in words]
    return pattern.sub(lambda found: " ".join([found[0], *more]), text)
