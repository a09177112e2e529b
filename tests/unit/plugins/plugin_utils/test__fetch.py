# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runfiles fetched by the real ansible-playbook, from an http server on loopback, the controller
or the node itself (local connection), with right and wrong checksums. The files are stand-ins.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[4]
PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"
NAME = "NVIDIA-Linux-x86_64-580.95.05.run"
CONTENT = b"#!/bin/sh\necho stand-in\n" + bytes(range(256)) * 64
SHA256 = hashlib.sha256(CONTENT).hexdigest()
WRONG = "0" * 64

# An action that does nothing but fetch; its module is never run.
ACTION = """
import json
from ansible.plugins.action import ActionBase
from ansible_collections.kubegpu.nodes.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fetch import fetch


class ActionModule(ActionBase):
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        asked = []
        whole = self._execute_module

        def count(**arguments):
            asked.append(arguments["module_name"].rpartition(".")[2])
            return whole(**arguments)

        self._execute_module = count
        try:
            found = fetch(
                self, self._task.args["runfile"], task_vars, folder=self._task.args["folder"]
            )
            answer = {"changed": found.changed, **vars(found)}
        except KubegpuError as error:
            answer = {"failed": True, "msg": str(error)}
        with open(self._task.args["answer"], "w") as handle:
            json.dump({**answer, "asked": asked}, handle)
        return {**result, **answer}
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_HEAD(self):
        if "signed" in self.path:
            self.send_error(403)
        else:
            super().do_HEAD()

    def do_GET(self):
        if "broken" not in self.path:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.wfile.write(CONTENT)
        return None

    def log_message(self, *_arguments):
        pass


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    (folder / NAME).write_bytes(CONTENT)
    (folder / f"{NAME}.sha256sum").write_text(f"{SHA256}  {NAME}\n")
    (folder / "wrong.sha256sum").write_text(f"{WRONG}  {NAME}\n")
    (folder / "redistrib_580.95.05.json").write_text(
        json.dumps(
            {"release_date": "2025-09-30", "nvidia_driver": {"version": "580.95.05",
             "linux-x86_64": {"relative_path": f"nvidia_driver/linux-x86_64/{NAME}",
                              "sha256": SHA256, "md5": "x", "size": "1"}}}
        )
    )  # fmt: skip
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def site(tmp_path, collections):
    """A folder with a playbook that fetches; returns what it answered."""
    (tmp_path / "action_plugins").mkdir()
    (tmp_path / "action_plugins" / "fetch_probe.py").write_text(ACTION)
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "fetch_probe.py").write_text("")

    def play(runfile, *arguments, environment=None):
        task = {
            "fetch_probe": {
                "runfile": runfile,
                "folder": str(tmp_path / "cache" / "kubegpu"),
                "answer": str(tmp_path / "answer.json"),
            },
            "environment": environment or {},
        }
        play = {"hosts": "localhost", "gather_facts": False, "tasks": [task]}
        (tmp_path / "site.yml").write_text(json.dumps([play]))
        answered = tmp_path / "answer.json"
        answered.unlink(missing_ok=True)
        done = subprocess.run(
            [str(PLAYBOOK), "-i", "localhost,", "-c", "local", "site.yml", *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
            env={
                **os.environ, "ANSIBLE_COLLECTIONS_PATH": collections,
                "ANSIBLE_PYTHON_INTERPRETER": sys.executable, "ANSIBLE_NOCOWS": "1",
                "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp"), "ANSIBLE_CONFIG": str(config),
                "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
                "no_proxy": "127.0.0.1",
            },
        )  # fmt: skip
        assert answered.exists(), done.stdout + done.stderr
        answer = json.loads(answered.read_text())
        answer["shown"] = done.stdout + done.stderr
        assert (done.returncode != 0) is bool(answer.get("failed")), answer["shown"]
        return answer

    config = tmp_path / "ansible.cfg"
    config.write_text("")
    (tmp_path / "cache").mkdir()
    play.folder = tmp_path
    play.target = tmp_path / "cache" / "kubegpu" / NAME
    return play


@pytest.fixture(scope="module")
def collections(tmp_path_factory):
    """This checkout at the place where ansible looks for a collection."""
    folder = tmp_path_factory.mktemp("collections")
    place = folder / "ansible_collections" / "kubegpu"
    place.mkdir(parents=True)
    (place / "nodes").symlink_to(CHECKOUT)
    return str(folder)


def mode(path):
    return oct(path.stat().st_mode & 0o7777)


def test_download_again_check(site, served):
    runfile = {"url": f"{served}/{NAME}", "checksum": f"sha256:{SHA256}"}
    predicted = site(runfile, "--check")
    assert (predicted["changed"], predicted["path"]) == (True, str(site.target))
    assert not site.target.parent.exists()
    first = site(runfile)
    assert (first["changed"], first["path"], first["cached"]) == (True, str(site.target), True)
    assert site.target.read_bytes() == CONTENT
    assert (mode(site.target), mode(site.target.parent)) == ("0o700", "0o700")
    for arguments in ((), ("--check",)):
        again = site({**runfile, "checksum": SHA256.upper()}, *arguments)
        # One look at the file, and no word to the server.
        assert (again["changed"], again["asked"]) == (False, ["stat"])


def test_wrong_checksum_of_a_download(site, served):
    answer = site({"url": f"{served}/{NAME}", "checksum": f"sha256:{WRONG}"})
    assert answer["failed"]
    for text in (f"{served}/{NAME} is not the file", WRONG, SHA256, "Next step: Compare"):
        assert text in answer["msg"]
    assert list(site.target.parent.iterdir()) == []


def test_a_download_that_breaks_off_leaves_nothing(site, served):
    partial = site.target.parent / "partial"
    partial.mkdir(parents=True)
    (partial / "tmp_of_a_run_that_was_killed").write_bytes(b"x")
    answer = site({"url": f"{served}/broken/{NAME}", "checksum": SHA256})
    assert "cannot be downloaded" in answer["msg"], answer["msg"]
    assert list(site.target.parent.iterdir()) == []


def test_a_link_that_is_signed_for_get_only(site, served):
    runfile = {"url": f"{served}/{NAME}?signed=secret", "checksum": SHA256}
    assert site(runfile, "--check")["changed"] is True
    answer = site(runfile)
    assert answer["path"] == str(site.target) and site.target.read_bytes() == CONTENT
    answer = site({**runfile, "checksum": WRONG})
    assert "?... is not the file" in answer["msg"] and "secret" not in answer["shown"]


def test_wrong_file_in_the_cache_is_replaced_or_removed(site, served):
    site.target.parent.mkdir()
    site.target.write_bytes(b"cut off")
    answer = site({"url": f"{served}/{NAME}", "checksum": WRONG})
    assert answer["failed"] and not site.target.exists()
    site.target.write_bytes(b"cut off")
    predicted = site({"url": f"{served}/{NAME}", "checksum": SHA256}, "--check")
    assert predicted["changed"] and site.target.read_bytes() == b"cut off"
    answer = site({"url": f"{served}/{NAME}", "checksum": SHA256})
    assert answer["changed"] and site.target.read_bytes() == CONTENT


@pytest.mark.parametrize("source", [f"{NAME}.sha256sum", "redistrib_580.95.05.json"])
def test_checksum_by_url(site, served, source):
    runfile = {"url": f"{served}/{NAME}", "checksum": f"{served}/{source}"}
    assert site(runfile, "--check")["changed"] is True
    assert site(runfile)["sha256"] == SHA256
    assert site(runfile, "--check")["changed"] is False


def test_checksum_by_url_is_another_file_s(site, served):
    answer = site({"url": f"{served}/{NAME}", "checksum": f"{served}/wrong.sha256sum"})
    assert WRONG in answer["msg"] and SHA256 in answer["msg"] and not site.target.exists()
    answer = site({"url": f"{served}/cuda.run", "checksum": f"{served}/{NAME}.sha256sum"})
    assert "has no sha256 of cuda.run" in answer["msg"]
    answer = site({"url": f"{served}/x.run", "checksum": f"{served}/redistrib_580.95.05.json"})
    assert "has no entry for x.run" in answer["msg"]


@pytest.mark.parametrize("arguments", [(), ("--check",)])
def test_not_there(site, served, arguments):
    answer = site({"url": f"{served}/gone.run?token=secret", "checksum": SHA256}, *arguments)
    assert "cannot be downloaded" in answer["msg"] and "404" in answer["msg"]
    assert "secret" not in answer["msg"]
    answer = site({"url": f"{served}/{NAME}", "checksum": f"{served}/gone.sha256sum"}, *arguments)
    assert "gone.sha256sum cannot be read from the node" in answer["msg"]
    answer = site({"url": "http://127.0.0.1:9/x.run", "checksum": SHA256}, *arguments)
    assert "http://127.0.0.1:9/x.run cannot be downloaded" in answer["msg"]


def test_the_task_s_proxy_is_used(site, served):
    """The proxy is our server: it is asked for the whole URL, and has no such file."""
    proxy = {"http_proxy": served, "no_proxy": ""}
    runfile = {"url": f"http://driver.example.invalid/{NAME}", "checksum": SHA256}
    answer = site(runfile, environment=proxy)
    assert "404" in answer["msg"], answer["msg"]
    answer = site(runfile)
    assert "404" not in answer["msg"] and "cannot be downloaded" in answer["msg"]


def test_from_the_controller(site):
    (site.folder / "files").mkdir()
    (site.folder / "files" / NAME).write_bytes(CONTENT)
    runfile = {"path": NAME, "checksum": SHA256}
    assert site(runfile, "--check")["changed"] is True and not site.target.exists()
    answer = site(runfile)
    assert (answer["changed"], site.target.read_bytes()) == (True, CONTENT)
    assert (mode(site.target), mode(site.target.parent)) == ("0o700", "0o700")
    assert site(runfile)["changed"] is False
    sums = site.folder / "SHA256SUMS"
    sums.write_text(f"{SHA256} *{NAME}\n")
    assert site({**runfile, "checksum": str(sums)})["changed"] is False
    site.target.unlink()
    answer = site({**runfile, "checksum": WRONG})
    assert f"found {SHA256}" in answer["msg"] and "Nothing was copied" in answer["msg"]
    assert not site.target.exists() and answer["asked"] == ["stat"]
    answer = site({"path": "gone.run", "checksum": SHA256})
    assert "gone.run is not on the controller" in answer["msg"]
    answer = site({**runfile, "checksum": "/no/where"})
    assert "/no/where cannot be read on the controller" in answer["msg"]


@pytest.mark.parametrize("arguments", [(), ("--check",)])
def test_on_the_node(site, arguments):
    place = site.folder / "node" / NAME
    place.parent.mkdir()
    place.write_bytes(CONTENT)
    runfile = {"path": str(place), "remote": True, "checksum": SHA256}
    answer = site(runfile, *arguments)
    assert (answer["changed"], answer["path"], answer["cached"]) == (False, str(place), False)
    (place.parent / "sums").write_text(f"{SHA256}  {NAME}\n")
    assert site({**runfile, "checksum": str(place.parent / "sums")}, *arguments)["path"]
    answer = site({**runfile, "checksum": WRONG}, *arguments)
    assert "left where it is" in answer["msg"] and place.exists()
    answer = site({**runfile, "path": f"{place}.gone"}, *arguments)
    assert "is not on the node" in answer["msg"]
    answer = site({**runfile, "checksum": f"{place}.sums"}, *arguments)
    assert "cannot be read on the node" in answer["msg"]


@pytest.mark.parametrize(
    ("runfile", "said"),
    [
        ({}, "exactly one of url and path"),
        ({"url": "http://x/y.run", "path": "/y.run"}, "exactly one of url and path"),
        ({"url": "http://u:secret@127.0.0.1/"}, "'http://127.0.0.1/' names no file"),
        ({"path": "relative.run", "remote": True}, "names no file"),
        ({"url": "http://127.0.0.1/y.run"}, "y.run has no checksum"),
        ({"url": "http://127.0.0.1/y.run", "checksum": "md5:123"}, "only sha256"),
    ],
)
def test_bad_options(site, runfile, said):
    answer = site(runfile)
    assert answer["failed"] and said in answer["msg"] and answer["asked"] == []
    assert "secret" not in answer["msg"]


def test_a_folder_that_cannot_be_made(site, served):
    site.target.parent.write_text("a file is in the way")
    answer = site({"url": f"{served}/{NAME}", "checksum": SHA256})
    assert re.search(r"cannot be (made|looked at)", answer["msg"]), answer["msg"]
    with contextlib.suppress(FileNotFoundError):
        site.target.parent.unlink()
