# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the record says after one edit and several."""

from __future__ import annotations

import tomllib

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.plan import plan_present
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.record import (
    History,
    continued,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import (
    Change,
    FileEdit,
    Node,
    Request,
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
    return Node(
        version=version,
        files=(ConfigFile(ROOT, text, tomllib.loads(text or "")),),
        drop_in=ConfigFile(DROP_IN, None, {}),
    )


def present(text, **wishes):
    (edit,) = plan_present(Request(**wishes), here(text), tomllib.loads).edits
    return edit


def test_record_survives_json():
    edit = present(BASE, set_default=True)
    kept = History.from_json(History(edit.before, edit.after, edit.changes).to_json())
    assert (kept.base, kept.ours, kept.changes) == (edit.before, edit.after, edit.changes)


def test_second_edit_keeps_the_first_before():
    first = present(BASE)
    past = continued(None, first, foreign=False, fresh=False)
    second = present(first.after, runtime_path="/opt/other")
    past = continued(past, second, foreign=False, fresh=False)
    assert (past.base, past.ours) == (BASE, second.after)
    (change,) = past.changes
    assert change.before == ()
    assert change.after[0]["options"] == {"BinaryName": "/opt/other"}


def test_foreign_edit_between_two_of_ours_is_part_of_the_base():
    first = present(BASE)
    past = continued(None, first, foreign=False, fresh=False)
    second = present(first.after + "# foreign\n", set_default=True)
    past = continued(past, second, foreign=True, fresh=False)
    assert past.base == BASE + "# foreign\n"


def test_file_that_was_undone_by_hand_begins_anew():
    first = present(BASE)
    past = continued(None, first, foreign=False, fresh=False)
    edit = FileEdit(ROOT, BASE, first.after, (Change(("a",), (), (1,)),))
    assert continued(past, edit, foreign=False, fresh=True).changes == edit.changes
