# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of fleet_report: written, written again, in check mode, compared."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.kubegpu.nodes.plugins.action.fleet_report import ActionModule
from tests.unit.fixtures import fleet as made

NAMES = ["report.html", "report.json", "report.md"]


def run(dest, hostvars=None, check=False, task=None, **options):
    hostvars = made.fleet() if hostvars is None else hostvars
    variables = {**(task or {}), "hostvars": hostvars}
    task = SimpleNamespace(
        args={"hosts": [*hostvars], "dest": str(dest), **options},
        async_val=0, check_mode=check, diff=True,
    )  # fmt: skip
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    action = ActionModule(task, connection, None, None, None, None)
    return action.run(task_vars=variables)


def other_driver():
    hosts = made.fleet()
    node = made.facts(3, gpus=8, driver="580.200.01")
    hosts["gpu-03"]["ansible_facts"] = {"gpu_node": node}
    return hosts


def test_a_second_report_of_the_same_fleet_is_no_change_and_has_its_own_time(tmp_path):
    dest = tmp_path / "new" / "report"
    first = run(dest, generated="one")
    assert first["changed"] and sorted(path.name for path in dest.iterdir()) == NAMES
    assert first["diff"]["before"] == "" and "### gpu-07: Failed" in first["diff"]["after"]
    second = run(dest, generated="two")
    assert not second["changed"] and second["diff"]["before"] == second["diff"]["after"]
    written = json.loads((dest / "report.json").read_text())
    assert (written["generated"], written["previous"]["generated"]) == ("two", "one")
    assert "Nothing has changed since the report of one." in (dest / "report.html").read_text()


def test_a_changed_node_is_a_change_and_is_named(tmp_path):
    run(tmp_path)
    checked = run(tmp_path, other_driver(), check=True)
    before = (tmp_path / "report.json").read_bytes()
    done = run(tmp_path, other_driver())
    assert checked == done and done["changed"]
    assert before != (tmp_path / "report.json").read_bytes()
    assert {one["node"] for one in done["changes"]} == {"gpu-03"}
    assert "580.200.01" in done["diff"]["after"] and "580.200.01" not in done["diff"]["before"]
    assert not run(tmp_path, other_driver())["changed"]


def test_check_mode_writes_nothing(tmp_path):
    assert run(tmp_path / "new", check=True)["changed"]
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_missing_is_a_change(tmp_path):
    run(tmp_path)
    (tmp_path / "report.html").unlink()
    assert run(tmp_path)["changed"] and (tmp_path / "report.html").exists()


def test_a_report_of_another_place_can_be_compared(tmp_path):
    run(tmp_path / "a")
    previous = tmp_path / "a" / "report.json"
    done = run(tmp_path / "b", other_driver(), previous=str(previous))
    assert {one["node"] for one in done["changes"]} == {"gpu-03"}
    with pytest.raises(AnsibleActionFail, match="Next step"):
        run(tmp_path / "b", previous=str(tmp_path / "none.json"))


@pytest.mark.parametrize("text", ["", '{"schema": "kubegpu.nodes/report/1", "nodes": [1]}'])
def test_a_report_that_is_empty_or_of_another_form_is_replaced(tmp_path, text):
    (tmp_path / "report.json").write_text(text)
    assert run(tmp_path)["changed"] and not run(tmp_path)["changed"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", [False, True])
def test_a_file_of_somebody_else_is_refused_before_anything_is_written(tmp_path, name, check):
    (tmp_path / name).write_text("[1]")
    with pytest.raises(
        AnsibleActionFail, match=rf"{name} is a file, and not a report.*\n.*Next step"
    ):
        run(tmp_path, check=check)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "[1]"


def test_a_node_does_not_choose_the_folder(tmp_path):
    variables = made.fleet()
    task = {"inventory_hostname": "gpu-03", "ansible_facts": {"kubegpu_report_dir": "x"}}
    with pytest.raises(AnsibleActionFail, match="gpu-03 has facts with names of variables"):
        run(tmp_path, variables, task=task)
    known = {"__kubegpu_variables": {"outputs": {"gpu_report_dir": str(tmp_path)}}}
    assert run(tmp_path, variables, task={**task, **known})["changed"]
    forged = {**task["ansible_facts"], **known}
    with pytest.raises(AnsibleActionFail, match="gpu-03 has facts with names of variables"):
        run(tmp_path, variables, task={**task, **known, "ansible_facts": forged})
