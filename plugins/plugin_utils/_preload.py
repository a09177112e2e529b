# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Import code once, before Ansible forks, instead of once in each process."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

_PLUGINS = "ansible_collections.kubegpu.nodes.plugins"
# What checks the variables of each fleet and, later, plans its nodes.
_OPTIONS = ("module_utils._driver.options", "module_utils._toolkit.options")
# By what the filter gpu_hosts selects.
_FOR_PLANS: Mapping[str, Sequence[str]] = {
    "facts": (
        "plugin_utils._report.builders",
        # Of the actions.
        "plugin_utils._progress",
    ),
    # Of the hosts of a cluster.
    "not_failed": (
        "module_utils._labels.desired",
        "module_utils._plan.cluster",
        "plugin_utils._deployed",
    ),
}


def preload_options() -> None:
    """Import the readers of options; for an action's file, which is imported before the fork."""
    _preload(_OPTIONS)


def preload_plans(select: str) -> None:
    """Import the modules that plans of the selected hosts need.

    Ansible evaluates a play's hosts before it forks a process for each task and host.

    :param select: the argument of the filter ``gpu_hosts``.
    """
    _preload(_FOR_PLANS.get(select, ()))


def _preload(names: Sequence[str]) -> None:
    for name in names:
        importlib.import_module(f"{_PLUGINS}.{name}")
