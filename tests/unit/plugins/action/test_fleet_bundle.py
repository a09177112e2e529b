# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which file on the controller a support bundle replaces."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.kubegpu.nodes.plugins.action.fleet_bundle import ActionModule


def bundle(dest, check=False, **variables):
    task = SimpleNamespace(
        args={"hosts": [], "dest": str(dest), "result": {"findings": []}},
        async_val=0, check_mode=check, diff=False, no_log=False,
    )  # fmt: skip
    shell = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    action = ActionModule(task, shell, None, None, None, None)
    return action.run(task_vars={"hostvars": {}, **variables})


def test_an_earlier_bundle_is_replaced_and_no_other_file(tmp_path):
    dest = tmp_path / "bundle.tar.gz"
    assert bundle(dest, check=True)["changed"] and not dest.exists()
    assert bundle(dest)["changed"] and not bundle(dest)["changed"]
    dest.write_bytes(b"")
    assert bundle(dest)["changed"]
    for content in (b"users: []", b"\x1f\x8bx"):
        dest.write_bytes(content)
        with pytest.raises(AnsibleActionFail, match=r"is a file, and not a support bundle"):
            bundle(dest)
        assert dest.read_bytes() == content


def test_a_node_does_not_choose_the_file(tmp_path):
    with pytest.raises(AnsibleActionFail, match="facts with names of variables"):
        bundle(tmp_path / "new", ansible_facts={"gpu_diagnose_bundle_file": "x"})
    assert list(tmp_path.iterdir()) == []
