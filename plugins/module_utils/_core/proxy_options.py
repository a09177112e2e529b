# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proxy options of modules that download, or run a package manager that does.

The address can contain a password. Ansible passes options to a module by stdin or a file, but a
task's ``environment`` on the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

#: Options, and the variables of that name that programs read.
PROXIES = ("http_proxy", "https_proxy", "no_proxy")
#: Mappings of several variables, which the action merges into the other options.
MERGED: dict[str, Any] = {"type": "list", "elements": "dict", "no_log": True}
PROXY_ARGUMENTS: dict[str, dict[str, Any]] = {
    "http_proxy": {"type": "str", "no_log": True},
    "https_proxy": {"type": "str", "no_log": True},
    "no_proxy": {"type": "str", "no_log": False},
    "proxies": MERGED,
}


def proxies_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the proxies that are set in the options of a task or a module."""
    return {name: str(options[name]) for name in PROXIES if options.get(name)}


def use_proxies(options: Mapping[str, Any], environment: MutableMapping[str, str]) -> None:
    """Set the proxy variables for this process and its child processes.

    :param environment: ``os.environ``.
    """
    environment.update(proxies_of(options))
