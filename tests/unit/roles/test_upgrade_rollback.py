# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the rollback of an upgrade passes to roles reaches them, whatever the extra variables."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

ROLES = Path(__file__).parents[3] / "roles"
TASKS = yaml.safe_load((ROLES / "gpu_upgrade/tasks/restore.yml").read_text(encoding="utf-8"))
INCLUDES = [task for task in TASKS[0]["block"] if task.get("ansible.builtin.include_role")]


@pytest.mark.parametrize("task", INCLUDES, ids=lambda task: task["name"])
def test_versions_of_the_rollback_have_names_of_their_own(task):
    role = task["ansible.builtin.include_role"]["name"].rpartition(".")[2]
    (back,) = (name for name in task["vars"] if name.startswith("__kubegpu_"))
    # Extra variables replace variables of an include by their name.
    assert set(task["vars"]) - {back} <= {"nvidia_driver_reboot"}
    variables = yaml.safe_load((ROLES / role / "vars/main.yml").read_text(encoding="utf-8"))
    asked = f"__{role}_asked"
    assert back in variables[asked]
    texts = [path.read_text(encoding="utf-8") for path in (ROLES / role / "tasks").glob("*.yml")]
    assert any(asked in text for text in texts)
    # What was asked for is read through it alone.
    for name in ("version", "versions", "branch"):
        assert not any(f"{{{{ {role}_{name} }}}}" in text for text in texts)
        assert not any(f"={role}_{name}," in text for text in texts)
