# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the record says after one edit and several."""

from __future__ import annotations

import tomllib

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.plan import plan_present
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.record import (
    HandlerRecord,
    extend_record,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import (
    Change,
    FileEdit,
    Request,
    State,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.config_file import ConfigFile

ROOT = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"
CRI = 'plugins."io.containerd.grpc.v1.cri"'
BASE = (
    "# head\nversion = 2\n\n"
    f"[{CRI}.containerd.runtimes.runc]\n"
    '  runtime_type = "io.containerd.runc.v2"\n\n'
    "[debug]\n"
    '  level = "info"\n'
)


def here(text, version=(1, 7)):
    return State(
        version=version,
        files=(ConfigFile(ROOT, text, tomllib.loads(text or "")),),
        drop_in=ConfigFile(DROP_IN, None, {}),
    )


def present(text, **options):
    (edit,) = plan_present(Request(**options), here(text), tomllib.loads).edits
    return edit


def test_record_survives_json():
    edit = present(BASE, set_default=True)
    kept = HandlerRecord.from_json(HandlerRecord(edit.before, edit.after, edit.changes).to_json())
    assert (kept.base, kept.ours, kept.changes) == (edit.before, edit.after, edit.changes)


def test_second_edit_keeps_the_first_before():
    first = present(BASE)
    past = extend_record(None, first, edited_by_others=False, reset=False)
    second = present(first.after, runtime_path="/opt/other")
    past = extend_record(past, second, edited_by_others=False, reset=False)
    assert (past.base, past.ours) == (BASE, second.after)
    (change,) = past.changes
    assert change.before == ()
    assert change.after[0]["options"] == {"BinaryName": "/opt/other"}


def test_foreign_edit_between_two_of_ours_is_part_of_the_base():
    first = present(BASE)
    past = extend_record(None, first, edited_by_others=False, reset=False)
    second = present(first.after + "# foreign\n", set_default=True)
    past = extend_record(past, second, edited_by_others=True, reset=False)
    assert past.base == BASE + "# foreign\n"


def test_file_that_was_undone_by_hand_begins_anew():
    first = present(BASE)
    past = extend_record(None, first, edited_by_others=False, reset=False)
    edit = FileEdit(ROOT, BASE, first.after, (Change(("a",), (), (1,)),))
    assert extend_record(past, edit, edited_by_others=False, reset=True).changes == edit.changes
