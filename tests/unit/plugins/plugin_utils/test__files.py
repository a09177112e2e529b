# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is replaced on the controller, what is refused, and what killed runs leave."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.process import own_identity
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _files
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._bundle import archive
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report import html, markdown
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.build import build, dump
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.types import Request

FORM = _files.FORMS["upgrade"]
OURS = b'{"began": "1", "ended": "2", "hosts": {}}'
REPORT = build([], Request("Fleet", "now", ()), None)
VALID = {
    "rows": b'[{"node": "gpu1"}]',
    "upgrade": OURS,
    "acceptance": b'{"ended": "1", "ok": true, "hosts": {}}',
    "diagnosis": b'{"findings": [], "hosts": {}, "unseen": []}',
    "report.json": dump(REPORT).encode(),
    "report.html": html.render(REPORT).encode(),
    "report.md": markdown.render(REPORT).encode(),
    "bundle": archive([]),
}
FOREIGN = (
    b"users: []",
    b"{}",
    b"[1]",
    b'{"hosts": 1}',
    b"<html>",
    b"# Notes",
    b"\x1f\x8bx",
    b"[" * 9999,
)


def make(path, kind):
    """Make what is not a regular file; return what shows that it is still the same."""
    if kind == "a folder":
        (path / "in").mkdir(parents=True)
    elif kind == "a symbolic link":
        path.with_name("target").write_bytes(OURS)
        path.symlink_to("target")
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    return path.lstat()


@pytest.mark.parametrize("name", VALID)
def test_a_file_of_its_own_form_is_replaced_and_no_other(tmp_path, name):
    form, dest = _files.FORMS[name], tmp_path / "file"
    assert _files.check_file(str(dest), form) is None
    for content in (b"", VALID[name]):
        dest.write_bytes(content)
        assert _files.check_file(str(dest), form) == content
    others = [one for other, one in VALID.items() if other != name]
    for content in (*FOREIGN, *others):
        # A report of an upgrade has what that of an acceptance has.
        if not form.fits(content):
            dest.write_bytes(content)
            with pytest.raises(InputError, match=r"is a file, and not [\s\S]*Next step: "):
                _files.check_file(str(dest), form)
    assert not any(form.fits(content) for content in FOREIGN)


@pytest.mark.parametrize("kind", ["a folder", "a symbolic link", "a pipe", "a socket"])
def test_what_is_no_regular_file_is_refused_by_name_and_stays(tmp_path, kind):
    dest = tmp_path / "dest"
    before = make(dest, kind)
    names = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(InputError, match=rf"gpu_upgrade_file: .*dest is {kind}\. It is left"):
        _files.check_file(str(dest), FORM, "gpu_upgrade_file")
    with pytest.raises(AnsibleActionFail, match=f"is {kind}"):
        _files.write_bytes(str(dest), OURS, FORM)
    assert dest.lstat() == before and sorted(path.name for path in tmp_path.iterdir()) == names


def test_the_null_device_takes_all_and_stays():
    before = os.stat(os.devnull)
    assert _files.check_file(os.devnull, FORM) is None
    _files.write_bytes(os.devnull, OURS, FORM)
    assert os.stat(os.devnull).st_ino == before.st_ino
    with pytest.raises(InputError, match="is a device"):
        _files.check_file("/dev/zero", FORM)


def test_a_folder_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    _files.check_file(str(tmp_path / "new" / "er" / "file"), FORM)
    for path in ("file/below", "file/far/below"):
        with pytest.raises(InputError, match=r"below cannot be made .*/file is not a folder"):
            _files.check_file(str(tmp_path / path), FORM)
    with pytest.raises(InputError, match="is not a folder"):
        _files.check_report(str(tmp_path / "file"), "kubegpu_report_dir")
    # A link to a folder is the user's own choice of a place.
    (tmp_path / "link").symlink_to(tmp_path)
    _files.check_report(str(tmp_path / "link" / "new"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_a_file_is_whole_and_has_the_mode_of_its_form(tmp_path):
    dest = tmp_path / "new" / "report.json"
    for name, mode in (("upgrade", 0o644), ("diagnosis", 0o600)):
        _files.write_bytes(str(dest), VALID[name], _files.FORMS[name])
        assert dest.read_bytes() == VALID[name] and stat.S_IMODE(dest.stat().st_mode) == mode
        assert [path.name for path in dest.parent.iterdir()] == ["report.json"]
        dest.unlink()


def test_a_write_that_fails_leaves_no_temporary_file(tmp_path, monkeypatch):
    def full(_source, _target):
        raise OSError("No space left on device")

    monkeypatch.setattr(_files.os, "replace", full)
    with pytest.raises(AnsibleActionFail, match="No space left"):
        _files.write_bytes(str(tmp_path / "x"), b"1", FORM)
    assert list(tmp_path.iterdir()) == []


def temporary(folder, identity, ending="abc"):
    path = folder / f".kubegpu-tmp-{identity.encode().hex()}-{ending}"
    path.write_text("half")
    return path


def test_temporary_files_of_killed_runs_are_cleared_and_of_living_ones_not(tmp_path):
    child = [sys.executable, "-c", "import os; print(os.getpid())"]
    gone = int(subprocess.run(child, capture_output=True, text=True, check=True).stdout)
    machine = own_identity().split(" ")[0]
    killed = temporary(tmp_path, f"{machine} {gone} 1")
    kept = [
        temporary(tmp_path, own_identity()),
        temporary(tmp_path, "elsewhere/pid:[1] 1 1", "new"),
        tmp_path / ".kubegpu-tmp-notes",
        tmp_path / "tmpabcdefgh",
    ]
    old = temporary(tmp_path, "elsewhere/pid:[1] 1 1", "old")
    os.utime(old, (1, 1))
    folder = tmp_path / killed.name.replace("abc", "folder")
    folder.mkdir()
    for path in kept[2:]:
        path.write_text("of a person")
    _files.write_bytes(str(tmp_path / "report.json"), OURS, FORM)
    assert not killed.exists() and not old.exists()
    assert all(path.exists() for path in [*kept, folder])


def test_a_run_that_is_killed_while_it_writes_is_cleared_by_the_next(tmp_path):
    dest = str(tmp_path / "x.json")
    child = os.fork()
    if not child:
        _files.os.replace = lambda *_paths: os.kill(os.getpid(), signal.SIGKILL)
        _files.write_bytes(dest, OURS, FORM)
        os._exit(1)
    _pid, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL and len(list(tmp_path.iterdir())) == 1
    _files.write_bytes(str(tmp_path / "x.json"), OURS, FORM)
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert json.loads((tmp_path / "x.json").read_text())["began"] == "1"
