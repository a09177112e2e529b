# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible sends each file that a module imports to the node, also one inside of a function."""

from __future__ import annotations

from tests.tools.changed import imports_of


def test_the_tables_of_messages_are_not_sent_with_the_facts():
    sent = imports_of("plugins/modules/gpu_node_facts.py")
    folder = "plugins/module_utils/_diagnosis"
    assert f"{folder}/matching.py" in sent
    assert not sent & {f"{folder}/known_errors.py", f"{folder}/known_errors_data.py"}
