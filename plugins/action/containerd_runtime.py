# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of the same name and sends the controller's tomlkit if the node needs it."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._toml_action import TomlAction


class ActionModule(TomlAction):
    """Action of the module containerd_runtime."""

    module = "kubegpu.nodes.containerd_runtime"
