# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.diff import shown_text
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.config_files import (
    NOUVEAU,
    TOKEN,
)


def test_a_token_is_shown_by_its_checksum():
    assert "secret" not in shown_text(TOKEN, b"secret")
    assert shown_text(TOKEN, b"a") != shown_text(TOKEN, b"b")
    assert shown_text(NOUVEAU, b"text\n") == "text\n"
    assert shown_text(NOUVEAU, None) == ""
