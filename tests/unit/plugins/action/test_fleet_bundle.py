# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which file on the controller a support bundle replaces."""

from __future__ import annotations

import os

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.kubegpu.nodes.plugins.action.fleet_bundle import _read
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _files


def test_an_earlier_bundle_is_replaced_and_no_other_file(tmp_path):
    dest = tmp_path / "bundle.tar.gz"
    assert _read(str(dest)) is None
    for content in (b"", b"\x1f\x8bx"):
        dest.write_bytes(content)
        assert _read(str(dest)) == content
    dest.write_bytes(b"users: []")
    with pytest.raises(AnsibleActionFail, match=r"is another file on the controller.*Next step"):
        _read(str(dest))


def test_only_a_regular_file_is_opened(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/null"):
        with pytest.raises(AnsibleActionFail, match="no regular file"):
            _read(str(path))
    with pytest.raises(AnsibleActionFail, match=r"cannot be read|no regular file"):
        _read(str(tmp_path))


def test_a_write_that_fails_leaves_no_temporary_file(tmp_path, monkeypatch):
    def full(_source, _target):
        raise OSError("No space left on device")

    monkeypatch.setattr(_files.os, "replace", full)
    with pytest.raises(AnsibleActionFail, match="No space left"):
        _files.write_bytes(str(tmp_path / "x"), b"1")
    assert list(tmp_path.iterdir()) == []
