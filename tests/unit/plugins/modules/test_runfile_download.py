# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it; what a server can do is shown by test_download.py."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import threading

import pytest

from ansible_collections.kubegpu.nodes.plugins.modules import runfile_download
from tests.unit.module_process import run_module

CONTENT = b"#!/bin/sh\n" * 999
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments):
        pass


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "x.run").write_bytes(CONTENT)
    handler = functools.partial(Handler, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://me:s3cret@127.0.0.1:{server.server_port}/x.run?sig=s1gned"
        server.shutdown()


def test_check_run_and_again(url, tmp_path):
    given = {"url": url, "dest": str(tmp_path / "x.run"), "sha256": SHA256.upper()}
    assert run_module(runfile_download.main, given, check=True)["changed"]
    assert not (tmp_path / "x.run").exists()
    answer = run_module(runfile_download.main, given)
    assert answer["changed"] and (tmp_path / "x.run").read_bytes() == CONTENT
    assert "s3cret" not in json.dumps(answer) and "s1gned" not in json.dumps(answer)
    assert not run_module(runfile_download.main, given)["changed"]
    assert not run_module(runfile_download.main, given, check=True)["changed"]


def test_text_is_returned_in_check_mode_too(url):
    for check in (True, False):
        answer = run_module(runfile_download.main, {"url": url}, check=check)
        assert (answer["changed"], answer["content"]) == (False, CONTENT.decode())


def test_another_file_is_told_with_its_sum(url, tmp_path):
    given = {"url": url, "dest": str(tmp_path / "x.run"), "sha256": "0" * 64}
    answer = run_module(runfile_download.main, given)
    assert answer["failed"] and answer["found_sha256"] == SHA256
    assert "/x.run?***" in answer["msg"] and not (tmp_path / "x.run").exists()
    assert "s3cret" not in json.dumps(answer) and "s1gned" not in json.dumps(answer)


def test_a_file_that_is_too_large_is_told(url, tmp_path):
    answer = run_module(runfile_download.main, {"url": url, "max_bytes": 100})
    assert answer["failed"] and "more than 100 bytes" in answer["msg"]
    assert "s3cret" not in json.dumps(answer) and "s1gned" not in json.dumps(answer)
