# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module in slices, and shows in between which pods are waited for."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._slices import SlicedAction


class ActionModule(SlicedAction):
    """The action of the module of the same name."""

    module = "gpu_node_maintenance"
