# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.diff import describe_file
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.config_files import (
    NOUVEAU,
    TOKEN,
)


def test_a_token_is_shown_by_its_checksum():
    assert "secret" not in describe_file(TOKEN, b"secret")
    assert describe_file(TOKEN, b"a") != describe_file(TOKEN, b"b")
    assert describe_file(NOUVEAU, b"text\n") == "text\n"
    assert describe_file(NOUVEAU, None) == ""
