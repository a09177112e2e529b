# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option of modules that record their changes on the node."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended as C(kubegpu.nodes.record)."""

    DOCUMENTATION = r"""
options:
  state_path:
    description:
      - The node's record of the changes of this collection, with the previous states. Backups are
        stored in the same folder.
    type: path
    default: /var/lib/kubegpu/state.json
"""
