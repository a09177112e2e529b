# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option of the modules that record on the node what they changed."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended as C(kubegpu.nodes.record)."""

    DOCUMENTATION = r"""
options:
  state_path:
    description:
      - The node's record of what this collection changed, and of what stood there before. Backups
        lie beside it.
    type: path
    default: /var/lib/kubegpu/state.json
"""
