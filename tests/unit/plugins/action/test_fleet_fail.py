# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A task that fails with findings: what stores the failure has their parts."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from ansible.errors import AnsibleActionFail

from ansible_collections.kubegpu.nodes.plugins.action.fleet_fail import ActionModule
from ansible_collections.kubegpu.nodes.plugins.filter.rollout import rollout
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.message import TITLES

ROLES = Path(__file__).parents[4] / "roles"
FIRST = {"cause": "The plugin does not run.", "evidence": "a\nb", "next_step": "See its log.",
         "code": "plugin_down", "names": {"pod": "x/y"}, "host": "gpu1"}  # fmt: skip


def run(**options):
    task = SimpleNamespace(args=options, async_val=0, check_mode=True, diff=False)
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    return ActionModule(task, connection, None, None, None, None).run(task_vars={})


def test_a_stored_failure_has_the_parts_and_no_part_twice():
    result = run(findings=[FIRST, {"cause": "Another."}])
    assert result["failed"] and not result["changed"]
    assert result["msg"] == (
        "The plugin does not run.\nSeen: a\nb\nNext step: See its log.\n\nAnother."
    )
    stored = rollout(
        {"name": "Stop", "action": "kubegpu.nodes.fleet_fail"}, "failure", result=result
    )
    assert {name: stored[name] for name in ("cause", "evidence", "next_step", "code", "names")} == {
        name: FIRST[name] for name in ("cause", "evidence", "next_step", "code", "names")
    }
    assert stored["refused"] and stored["message"] == result["msg"]


@pytest.mark.parametrize("findings", [[], [FIRST]])
def test_the_message_can_be_another_and_has_no_secret(findings):
    result = run(findings=findings, msg="Look: https://ops:hunter2@example.com\x1b[2J")
    assert result["msg"].startswith("Look: https://") and result["msg"].endswith("\\x1b[2J")
    assert "hunter2" not in str(result)
    assert result["cause"] == (FIRST["cause"] if findings else result["msg"])


def test_a_task_that_gives_no_text_is_named_as_the_error():
    with pytest.raises(AnsibleActionFail) as error:
        run(findings=[])
    assert "has neither findings nor msg" in str(error.value)


def tasks(of):
    for task in of or ():
        yield task
        for name in ("block", "rescue", "always"):
            yield from tasks(task.get(name))


def test_no_role_fails_with_the_parts_of_a_finding_in_one_text():
    titles = re.compile(rf"(?:{'|'.join(TITLES.values())}): |\.cause\b")
    found = [
        f"{path.relative_to(ROLES)}: {task['name']}"
        for path in sorted(ROLES.glob("*/tasks/*.yml"))
        for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8")))
        if titles.search(str((task.get("ansible.builtin.fail") or {}).get("msg")))
    ]
    assert found == [], "Next step: kubegpu.nodes.fleet_fail"
