# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A runfile is never given out unverified, wherever it comes from.

Ansible's modules are stand-ins; with the real ones: tests/integration/controller/test_fetch.py.
"""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fetch import CACHE, fetch

GOOD, BAD = b"the file\n", b"another one\n"
URL = "https://example.com/x.run"
WANTED = hashlib.sha256(GOOD).hexdigest()


class StandinAction:
    """A controller and a node whose files are in memory."""

    def __init__(self, folder):
        self.folder = folder
        self.node = {}
        # What is not root's alone, by its path.
        self.others = {}
        self.server = {URL: GOOD}
        self.calls = []
        self.brought = []
        # What a copy makes of a file on its way.
        self.copied = bytes
        self._task = SimpleNamespace(
            check_mode=False, no_log=False, copy=SimpleNamespace, args=None
        )
        self._connection = self._play_context = self._loader = self._templar = None
        self._shared_loader_obj = SimpleNamespace(action_loader=SimpleNamespace(get=self._copy))

    def _copy(self, _name, *, task, **_more):
        def run(task_vars):
            self.brought.append(task.args["src"])
            with open(task.args["src"], "rb") as handle:
                self.node[task.args["dest"]] = self.copied(handle.read())
            return {}

        return SimpleNamespace(run=run)

    def _find_needle(self, _folder, path):
        return str(self.folder / path)

    def _execute_module(self, module_name, module_args, task_vars):
        name = module_name.rpartition(".")[2]
        self.calls.append((name, module_args))
        return getattr(self, name)(module_args)

    def stat(self, given):
        if given.get("get_checksum") is False:
            assert given["follow"] is False
            kind = "isreg" if given["path"] in self.node else "isdir"
            root = {"uid": 0, "gid": 0, "islnk": False, "woth": False, "wgrp": False, kind: True}
            return {"stat": {**root, **self.others.get(given["path"], {})}}
        assert given["checksum_algorithm"] == "sha256"
        content = self.node.get(given["path"])
        found = {} if content is None else {"checksum": hashlib.sha256(content).hexdigest()}
        return {"stat": found}

    def copy(self, given):
        assert given["remote_src"] is True and given["mode"] == "0700"
        self.node[given["dest"]] = self.copied(self.node[given["src"]])
        return {}

    def file(self, given):
        if given["state"] == "absent":
            self.node.pop(given["path"], None)
        return {}

    def runfile_download(self, given):
        """As our module: a file with another checksum is not put there, and that is said."""
        content = self.server[given["url"]]
        if "dest" not in given:
            return {"content": content[: given["max_bytes"]].decode()}
        seen = hashlib.sha256(content).hexdigest()
        if given["sha256"] != seen:
            return {"failed": True, "msg": "another file", "found_sha256": seen}
        self.node[given["dest"]] = content
        return {}


@pytest.fixture
def action(tmp_path):
    (tmp_path / "x.run").write_bytes(GOOD)
    return StandinAction(tmp_path)


def fetched(action, **runfile):
    return fetch(action, {"checksum": f"sha256:{WANTED}", **runfile}, {})


WAYS = [{"url": URL}, {"path": "x.run"}, {"path": "/opt/x.run", "remote": True}]


@pytest.mark.parametrize("way", WAYS, ids=["url", "controller", "node"])
@pytest.mark.parametrize("content", [GOOD, BAD], ids=["good", "bad"])
def test_only_the_file_that_was_meant_is_given_out(action, way, content):
    action.server[URL] = content
    (action.folder / "x.run").write_bytes(content)
    action.node["/opt/x.run"] = content
    before = dict(action.node)
    if content == GOOD:
        found = fetched(action, **way)
        assert action.node[found.path] == GOOD
        assert found.sha256 == WANTED
        return
    with pytest.raises(KubegpuError, match="not the file that was meant") as caught:
        fetched(action, **way)
    seen = hashlib.sha256(BAD).hexdigest()
    assert caught.value.evidence == f"expected {WANTED}, found {seen}"
    assert action.node == before
    # Not even brought to the node from here.
    assert not action.brought


@pytest.mark.parametrize("way", WAYS[:2], ids=["url", "controller"])
def test_a_copy_of_an_earlier_run_is_compared_before_it_is_taken(action, way):
    action.node[f"{CACHE}/x.run"] = BAD
    found = fetched(action, **way)
    assert found.changed
    assert action.node[found.path] == GOOD
    assert not fetched(action, **way).changed


def test_what_changed_on_its_way_is_removed(action):
    action.copied = lambda content: content + b"x"
    with pytest.raises(KubegpuError, match="changed on its way and was removed"):
        fetched(action, path="x.run")
    assert action.node == {}


def test_a_download_is_verified_by_checksum_and_by_certificates(action):
    fetched(action, url=URL)
    (given,) = [given for name, given in action.calls if name == "runfile_download"]
    assert given["sha256"] == WANTED
    for _name, given in action.calls:
        assert given.get("validate_certs", True) is True


def test_a_checksum_file_is_read_within_a_limit(action):
    action.server["https://example.com/sums"] = f"{WANTED}  x.run\n".encode()
    assert fetched(action, url=URL, checksum="https://example.com/sums").sha256 == WANTED
    (given,) = [given for _name, given in action.calls if given.get("max_bytes")]
    assert given == {"url": "https://example.com/sums", "max_bytes": 4 << 20, "max_seconds": 600}


@pytest.mark.parametrize("checksum", ["http://example.com/sums", "ftp://example.com/sums"])
@pytest.mark.parametrize("url", [URL, URL.replace("https", "http")])
def test_a_checksum_that_anybody_can_change_is_refused(action, url, checksum):
    with pytest.raises(KubegpuError, match="whoever is on the way"):
        fetched(action, url=url, checksum=checksum)
    assert action.calls == []


@pytest.mark.parametrize("name", ["..", "%2e%2e", "a%2F..", "%2e", "a%0a"])
def test_a_name_that_leads_out_of_the_folder_is_refused(action, name):
    with pytest.raises(KubegpuError, match="names no file"):
        fetched(action, url=f"https://example.com/{name}")
    assert action.calls == []


REMOTE = {"path": "/opt/in/x.run", "remote": True}


def test_a_file_of_the_node_is_run_in_its_place_if_only_root_can_change_it(action):
    action.node["/opt/in/x.run"] = GOOD
    found = fetched(action, **REMOTE)
    assert (found.path, found.cached, found.changed) == ("/opt/in/x.run", False, False)
    looked = [given["path"] for name, given in action.calls if name == "stat"]
    assert looked == ["/opt/in/x.run", "/", "/opt", "/opt/in", "/opt/in/x.run"]
    assert {name for name, _given in action.calls} == {"stat"}


@pytest.mark.parametrize("place", ["/", "/opt", "/opt/in", "/opt/in/x.run"])
@pytest.mark.parametrize(
    "other", [{"uid": 1000}, {"islnk": True}, {"woth": True}, {"gid": 7, "wgrp": True}]
)
def test_a_file_that_others_can_change_is_copied_and_the_copy_is_run(action, place, other):
    """It was verified by its path and run by its path later: they change it in between."""
    action.node["/opt/in/x.run"] = GOOD
    action.others[place] = other
    found = fetched(action, **REMOTE)
    assert (found.path, found.cached, found.changed) == (f"{CACHE}/x.run", True, True)
    assert action.node[f"{CACHE}/x.run"] == GOOD
    folders = [given for name, given in action.calls if name == "file"]
    assert folders == [{"path": CACHE, "state": "directory", "mode": "0700"}]


def test_a_copy_that_is_another_file_is_not_run(action):
    action.node["/opt/in/x.run"] = GOOD
    action.others["/opt/in"] = {"woth": True}
    action.copied = lambda _content: BAD
    with pytest.raises(KubegpuError, match="not the file that was meant") as caught:
        fetched(action, **REMOTE)
    assert "changed meanwhile" in caught.value.cause and f"{CACHE}/x.run" not in action.node


def test_in_check_mode_no_file_of_the_node_is_copied(action):
    action.node["/opt/in/x.run"] = GOOD
    action.others["/opt/in"] = {"woth": True}
    action._task.check_mode = True
    found = fetched(action, **REMOTE)
    assert (found.path, found.changed) == (f"{CACHE}/x.run", True)
    assert {name for name, _given in action.calls} == {"stat"}
