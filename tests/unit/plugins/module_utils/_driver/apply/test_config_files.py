# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.config_files import (
    needs_initramfs,
    remove_lines,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.config_files import (
    NOUVEAU,
    PERSISTENCED,
    TOKEN,
)


def test_edited_files_lose_our_lines_alone():
    assert remove_lines("a\nmine\nb\n", "a\nb\n") == "mine\n"
    assert remove_lines("a\n\n", "a\n") is None


def test_which_files_need_the_initial_ram_disk():
    assert needs_initramfs([NOUVEAU])
    assert not needs_initramfs([PERSISTENCED, TOKEN])
