# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options for a proxy of modules that download, or have a package manager do so.

The address can hold a password. As options it reaches a module by its standard input or by a file
of Ansible's; in a task's ``environment`` it would stand on the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

PROXY_ARGUMENTS: dict[str, dict[str, Any]] = {
    "http_proxy": {"type": "str", "no_log": True},
    "https_proxy": {"type": "str", "no_log": True},
    "no_proxy": {"type": "str", "no_log": False},
}
#: Options, and the variables of that name that programs read.
PROXIES = tuple(PROXY_ARGUMENTS)


def proxies_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the proxies among a task's or a module's options, as far as they are given."""
    return {name: str(options[name]) for name in PROXIES if options.get(name)}


def use_proxies(options: Mapping[str, Any], environment: MutableMapping[str, str]) -> None:
    """Set the variables for this process and the commands that it starts.

    :param environment: ``os.environ``.
    """
    environment.update(proxies_of(options))
