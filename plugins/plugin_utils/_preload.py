# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Import the code of the plans once, before Ansible forks."""

from __future__ import annotations

import importlib

_PLUGINS = "ansible_collections.kubegpu.nodes.plugins"
_FOR_PLANS = (
    "module_utils._cuda.options",
    "module_utils._cuda.plan",
    "module_utils._driver.options",
    "module_utils._driver.plan.plan",
    "module_utils._mig.options",
    "module_utils._mig.plan",
    "module_utils._toolkit.options",
    "module_utils._toolkit.plan",
    "plugin_utils._report.hosts",
    # Of the actions.
    "plugin_utils._progress",
)


def preload_plans() -> None:
    """Import the modules that plans need.

    Ansible evaluates a play's hosts before it forks a process for each task and host. A module
    imported then is loaded once, instead of once in each process.
    """
    for name in _FOR_PLANS:
        importlib.import_module(f"{_PLUGINS}.{name}")
