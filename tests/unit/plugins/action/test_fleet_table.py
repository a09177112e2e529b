# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where fleet_table writes its JSON, and what it must never replace."""

from __future__ import annotations

import json
import stat
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.utils.display import Display

from ansible_collections.kubegpu.nodes.plugins.action.fleet_table import ActionModule
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report import builders, stages
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.table import TABLES

ROWS = [{"node": "n1"}]


def test_a_file_in_a_folder_that_is_made(tmp_path):
    dest = tmp_path / "new" / "rows.json"
    table(dest)
    table(dest)
    assert json.loads(dest.read_text()) == ROWS
    assert [path.name for path in dest.parent.iterdir()] == ["rows.json"]


def table(dest, check=False, **options):
    columns = [{"key": "node", "title": "Node"}]
    task = SimpleNamespace(
        args={"columns": columns, "rows": ROWS, "dest": str(dest), **options},
        async_val=0, check_mode=check, diff=False,
    )  # fmt: skip
    shell = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    return ActionModule(task, shell, None, None, None, None).run(task_vars={})


def test_check_mode_writes_nothing(tmp_path):
    table(tmp_path / "new" / "rows.json", check=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("content", ['[{"name": "n1"}]', '{"node": 1}', "node: n1", "[1]"])
def test_rows_of_others_are_refused(tmp_path, content, check):
    dest = tmp_path / "rows.json"
    dest.write_text(content)
    with pytest.raises(AnsibleActionFail, match=r"is a file, and not the JSON of a table"):
        table(dest, check)
    assert dest.read_text() == content


def test_content_replaces_what_has_its_keys(tmp_path):
    dest = tmp_path / "report.json"
    report = {"began": "1", "ended": "2", "hosts": {}, "ok": True, "new": 1}
    dest.write_text('{"began": "0", "ended": "1", "hosts": {}}')
    table(dest, content=report)
    assert json.loads(dest.read_text()) == report and stat.S_IMODE(dest.stat().st_mode) == 0o644
    dest.write_text('{"hosts": {}}')
    with pytest.raises(AnsibleActionFail, match="not a report of an upgrade"):
        table(dest, content=report)
    with pytest.raises(AnsibleActionFail, match="a JSON object with the same keys"):
        table(dest, content={"other": 1})


def test_the_screen_gets_text_alone(monkeypatch):
    """Texts come from nodes, and are also in the result of the task."""
    shown = []
    monkeypatch.setattr(Display, "display", lambda _self, text, **_more: shown.append(text))
    action = ActionModule(
        SimpleNamespace(args={
            "columns": [{"key": "node", "title": "Node"}, {"key": "why", "title": "Why"}],
            "rows": [
                {"node": "gpu1", "why": "\x1b]0;x\x07 in use", "notes": ["\x1bc\x1b[8mhidden"]}
            ],
            "notes": "notes",
        }, async_val=0, check_mode=False, diff=False),
        SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)), None, None, None, None,
    )  # fmt: skip
    result = action.run(task_vars={})
    (text,) = shown
    assert text.replace("\n", "").isprintable() and all(
        line.isprintable() for line in result["table"]
    )
    assert "\\x1b]0;x\\x07 in use" in text and "gpu1: \\x1bc\\x1b[8mhidden" in text


def test_verbose_output_does_not_repeat_the_table_and_remarks_can_come_last(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(Display, "display", lambda _self, text, **_options: shown.append(text))
    rows = [
        {"node": "n1", "notes": ["a"], "notes_last": ["not checked: b"]},
        {"node": "n2", "notes": ["c"], "notes_last": ["not checked: b"]},
    ]
    result = table(tmp_path / "rows.json", rows=rows, notes="notes")
    assert result["_ansible_verbose_override"] is True
    assert result["table"][-3:] == ["n1: a", "n2: c", "n1, n2: not checked: b"]
    assert shown == ["\n" + "\n".join(result["table"]) + "\n"]


def built(table, hostvars=None, check=False, **options):
    """Return the result of a table that builds its rows."""
    given = {"hosts": [*hostvars]} if hostvars is not None else {}
    task = SimpleNamespace(
        args={"table": table, **given, **options}, async_val=0, check_mode=check, diff=False
    )
    shell = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    action = ActionModule(task, shell, None, None, None, None)
    return action.run(task_vars={"hostvars": hostvars or {}, "ansible_play_hosts": ["a"]})


def test_rows_are_built_of_hosts():
    layer = {"layer": "nvml", "ok": True, "cause": "", "node": "other"}
    shown = built("verification", {"a": {"seen": [layer]}}, key="seen")["table"]
    # Layers of which nothing is known have no column.
    assert shown == ["Node  NVML", "----  ----", "a     ok"]


def test_the_report_of_an_upgrade_is_made_shown_written_and_returned(tmp_path):
    plan = {"hosts": {}, "batches": [], "refused": False, "began": "a", "not_read": ["lost"],
            "findings": [], "run": "r1"}  # fmt: skip
    dest = tmp_path / "upgrade.json"
    for check in (True, False):
        found = built("upgrade", {"a": {"gpu_upgrade_plan": plan}}, check, dest=str(dest))
        assert dest.exists() is not check
    assert found["content"]["hosts"]["lost"]["outcome"] == "unreachable"
    assert any(line.startswith("lost") for line in found["table"])
    assert json.loads(dest.read_text()) == found["content"]


def test_rows_are_built_of_a_content():
    pod = {"pod": "a/b", "nodes": [{"name": "n1", "fits": False, "because": ["it is cordoned"]}]}
    found = built("diagnosis_nodes", content={"pods": [pod]})
    assert found["table"][-1].split() == ["a/b", "n1", "no", "it", "is", "cordoned"]
    assert "content" not in found
    with pytest.raises(AnsibleError, match="one of the following is required: rows, hosts"):
        built("plan")


def test_every_table_has_columns_and_rows():
    assert {*TABLES} == {*builders.ROWS, *stages.ROWS} >= {*stages.REPORTS}
