# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option of all modules that names the record on the node."""

from __future__ import annotations

from typing import Any

# Also in plugins/doc_fragments/record.py.
STATE_PATH = "/var/lib/kubegpu/state.json"
STATE_ARGUMENTS: dict[str, dict[str, Any]] = {"state_path": {"type": "path", "default": STATE_PATH}}
