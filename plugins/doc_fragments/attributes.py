# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The attributes that the modules of this collection have in common."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended as C(kubegpu.nodes.attributes); a module says itself where it differs."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: >-
      Can run in C(check_mode) and returns the same C(changed) and the same diff as the real run,
      without changing the node.
    support: full
  diff_mode:
    description: Returns what changed, or would change, when in diff mode.
    support: full
  idempotent:
    description: A second run with the same options changes nothing.
    support: full
  platform:
    description: Nodes that the module can manage.
    platforms: linux
    support: full
"""
