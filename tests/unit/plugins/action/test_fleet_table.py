# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where fleet_table writes its JSON, and what it must never replace."""

from __future__ import annotations

import json
import os
import stat
import threading
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from ansible_collections.kubegpu.nodes.plugins.action.fleet_table import ActionModule, _write_json

ROWS = [{"node": "n1"}]


def test_a_file_in_a_folder_that_is_made(tmp_path):
    dest = tmp_path / "new" / "rows.json"
    _write_json(str(dest), ROWS)
    _write_json(str(dest), ROWS)
    assert json.loads(dest.read_text()) == ROWS
    assert [path.name for path in dest.parent.iterdir()] == ["rows.json"]


def test_what_is_no_plain_file_is_written_to_and_stays(tmp_path):
    """A fifo stands for /dev/null, which a run as root would otherwise replace by a file."""
    dest = tmp_path / "pipe"
    os.mkfifo(dest)
    read = []
    reader = threading.Thread(target=lambda: read.append(dest.read_text()), daemon=True)
    reader.start()
    _write_json(str(dest), ROWS)
    reader.join(timeout=10)
    assert json.loads(read[0]) == ROWS
    assert stat.S_ISFIFO(dest.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    _write_json(str(tmp_path / "link"), ROWS)
    assert (tmp_path / "link").is_symlink() and json.loads((tmp_path / "real").read_text()) == ROWS


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(AnsibleActionFail, match="cannot be written"):
        _write_json(str(tmp_path), ROWS)


def test_the_screen_gets_text_alone(monkeypatch):
    """As a node's facts come in: the result of the task is shown with -v."""
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
