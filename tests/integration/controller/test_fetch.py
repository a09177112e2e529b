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
import ssl
import sys
import threading
from pathlib import Path

import pytest

from tests.integration import ansible_process
from tests.testbed.cluster_pki import Authority
from tests.tools.environments import collections

PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"
NAME = "NVIDIA-Linux-x86_64-580.95.05.run"
CONTENT = b"#!/bin/sh\necho stand-in\n" + bytes(range(256)) * 64
SHA256 = hashlib.sha256(CONTENT).hexdigest()
WRONG = "0" * 64

# An action that does nothing but fetch; its module is never run.
ACTION = """
import json
from ansible.plugins.action import ActionBase
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
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
        with open(self._task.args["answers"], "a") as handle:
            print(json.dumps({**answer, "asked": asked}), file=handle)
        # One playbook tries several files: a failure is told by the answer alone.
        return {**result, "changed": answer.get("changed", False), "msg": answer.get("msg")}
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
def files(tmp_path_factory):
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
    return folder


@contextlib.contextmanager
def serving(folder, tls=None):
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def served(files):
    with serving(files) as address:
        yield address


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority.make(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(files, authority):
    """The same files by https: no checksum is read from a server in another way."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.sign("files", "files", names=["127.0.0.1"]))
    with serving(files, tls) as address:
        yield address


@pytest.fixture(scope="module")
def settings(tmp_path_factory, authority):
    """Settings of Ansible, the same for all tests, so that one process forks all of its runs."""
    folder = tmp_path_factory.mktemp("settings")
    (folder / "ansible.cfg").write_text("")
    return folder, {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(collections()),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_NOCOWS": "1",
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "ANSIBLE_REMOTE_TEMP": str(folder / "remote"),
        "no_proxy": "127.0.0.1",
        "SSL_CERT_FILE": str(authority.certificate),
    }


@pytest.fixture
def site(tmp_path, settings):
    """A folder with a playbook; returns what was answered to each runfile in one run of it."""
    (tmp_path / "action_plugins").mkdir()
    (tmp_path / "action_plugins" / "fetch_probe.py").write_text(ACTION)
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "fetch_probe.py").write_text("")
    (tmp_path / "cache").mkdir()
    answered = tmp_path / "answers.json"

    def play(*runfiles, check=False, environment=None):
        places = {"folder": str(tmp_path / "cache" / "kubegpu"), "answers": str(answered)}
        tasks = [{"fetch_probe": {"runfile": runfile, **places}} for runfile in runfiles]
        play = {
            "hosts": "localhost", "gather_facts": False, "tasks": tasks,
            "environment": environment or {},
        }  # fmt: skip
        (tmp_path / "site.yml").write_text(json.dumps([play]))
        answered.unlink(missing_ok=True)
        place, environ = settings
        done = ansible_process.run(
            [str(PLAYBOOK), "-v", "-i", "localhost,", "-c", "local", str(tmp_path / "site.yml"),
             *(["--check"] if check else [])],
            env=environ, cwd=place, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0 and answered.exists(), done.stdout + done.stderr
        answers = [json.loads(line) for line in answered.read_text().splitlines()]
        assert len(answers) == len(runfiles), done.stdout
        play_shown = done.stdout + done.stderr
        return [{**answer, "shown": play_shown} for answer in answers]

    play.folder = tmp_path
    play.target = tmp_path / "cache" / "kubegpu" / NAME
    return play


def mode(path):
    return oct(path.stat().st_mode & 0o7777)


def test_download_again_check(site, served):
    runfile = {"url": f"{served}/{NAME}", "checksum": f"sha256:{SHA256}"}
    (predicted,) = site(runfile, check=True)
    assert (predicted["changed"], predicted["path"]) == (True, str(site.target))
    assert not site.target.parent.exists()
    first, again = site(runfile, {**runfile, "checksum": SHA256.upper()})
    assert (first["changed"], first["path"], first["cached"]) == (True, str(site.target), True)
    assert site.target.read_bytes() == CONTENT
    assert (mode(site.target), mode(site.target.parent)) == ("0o700", "0o700")
    assert list(site.target.parent.iterdir()) == [site.target]
    # One look at the file, and no word to the server.
    assert (again["changed"], again["asked"]) == (False, ["stat"])
    (again,) = site(runfile, check=True)
    assert (again["changed"], again["asked"]) == (False, ["stat"])


def test_wrong_checksum(site, served):
    """Nothing is left, neither of a download nor of what lay there from before."""
    partial = site.target.parent / "partial"
    partial.mkdir(parents=True)
    (partial / "tmp_of_a_run_that_was_killed").write_bytes(b"x")
    site.target.write_bytes(b"cut off")
    wrong, broken = site(
        {"url": f"{served}/{NAME}", "checksum": f"sha256:{WRONG}"},
        {"url": f"{served}/broken/{NAME}", "checksum": SHA256},
    )
    for text in (f"{served}/{NAME} is not the file", WRONG, SHA256, "Next step: Compare"):
        assert text in wrong["msg"]
    assert "cannot be downloaded" in broken["msg"]
    assert list(site.target.parent.iterdir()) == []


@pytest.mark.full(why="another fault than test_wrong_checksum")
def test_a_file_that_was_cut_off_is_replaced(site, served):
    site.target.parent.mkdir()
    site.target.write_bytes(b"cut off")
    runfile = {"url": f"{served}/{NAME}", "checksum": SHA256}
    (predicted,) = site(runfile, check=True)
    assert predicted["changed"] and site.target.read_bytes() == b"cut off"
    (answer,) = site(runfile)
    assert answer["changed"] and site.target.read_bytes() == CONTENT


@pytest.mark.full(why="another kind of link than test_download_again_check")
def test_a_link_that_is_signed_for_get_only(site, served):
    runfile = {"url": f"{served}/{NAME}?signed=secret", "checksum": SHA256}
    (predicted,) = site(runfile, check=True)
    assert predicted["changed"] is True
    wrong, answer = site({**runfile, "checksum": WRONG}, runfile)
    assert "?*** is not the file" in wrong["msg"] and "secret" not in wrong["shown"]
    assert answer["path"] == str(site.target) and site.target.read_bytes() == CONTENT


@pytest.mark.full(why="from where the checksum comes: test_wrong_checksum has what it is for")
def test_checksum_by_url(site, served, secure):
    runfile = {"url": f"{served}/{NAME}"}
    sums = {**runfile, "checksum": f"{secure}/{NAME}.sha256sum"}
    redistrib = {**runfile, "checksum": f"{secure}/redistrib_580.95.05.json"}
    for predicted in site(sums, redistrib, check=True):
        assert (predicted["changed"], predicted["sha256"]) == (True, SHA256)
    first, second, wrong, other, absent = site(
        sums,
        redistrib,
        {**runfile, "checksum": f"{secure}/wrong.sha256sum"},
        {"url": f"{served}/cuda.run", "checksum": f"{secure}/{NAME}.sha256sum"},
        {"url": f"{served}/x.run", "checksum": f"{secure}/redistrib_580.95.05.json"},
    )
    assert (first["changed"], second["changed"]) == (True, False)
    assert WRONG in wrong["msg"] and SHA256 in wrong["msg"] and not site.target.exists()
    assert "has no sha256 of cuda.run" in other["msg"]
    assert "has no entry for x.run" in absent["msg"]


@pytest.mark.full(why="another fault than test_wrong_checksum")
@pytest.mark.parametrize("check", [False, True])
def test_not_there(site, served, secure, check):
    gone, sums, closed = site(
        {"url": f"{served}/gone.run?token=secret", "checksum": SHA256},
        {"url": f"{served}/{NAME}", "checksum": f"{secure}/gone.sha256sum"},
        {"url": "http://127.0.0.1:9/x.run", "checksum": SHA256},
        check=check,
    )
    assert "gone.run?*** cannot be downloaded" in gone["msg"] and "404" in gone["msg"]
    assert "secret" not in gone["shown"]
    assert "gone.sha256sum cannot be read from the node" in sums["msg"]
    assert "http://127.0.0.1:9/x.run cannot be downloaded" in closed["msg"]
    assert "refused" in closed["msg"]


@pytest.mark.full(why="through a proxy")
def test_the_task_s_proxy_is_used(site, served):
    """The proxy is our server: it is asked for the whole URL, and has no such file."""
    runfile = {"url": f"http://driver.example.invalid/{NAME}", "checksum": SHA256}
    (answer,) = site(runfile, environment={"http_proxy": served, "no_proxy": ""})
    assert "404" in answer["msg"], answer["msg"]
    (answer,) = site(runfile)
    assert "404" not in answer["msg"] and "cannot be downloaded" in answer["msg"]


@pytest.mark.full(why="another source than test_download_again_check")
def test_from_the_controller(site):
    (site.folder / "files").mkdir()
    (site.folder / "files" / NAME).write_bytes(CONTENT)
    sums = site.folder / "SHA256SUMS"
    sums.write_text(f"{SHA256} *{NAME}\n")
    runfile = {"path": NAME, "checksum": SHA256}
    (predicted,) = site(runfile, check=True)
    assert predicted["changed"] is True and not site.target.parent.exists()
    wrong, first, again, by_file, gone, no_sums = site(
        {**runfile, "checksum": WRONG},
        runfile,
        runfile,
        {**runfile, "checksum": str(sums)},
        {"path": "gone.run", "checksum": SHA256},
        {**runfile, "checksum": "/no/where"},
    )
    assert f"found {SHA256}" in wrong["msg"] and "was not copied to the node" in wrong["msg"]
    assert wrong["asked"] == ["stat"]
    assert (first["changed"], site.target.read_bytes()) == (True, CONTENT)
    assert (mode(site.target), mode(site.target.parent)) == ("0o700", "0o700")
    assert (again["changed"], by_file["changed"]) == (False, False)
    assert "gone.run is not on the controller" in gone["msg"]
    assert "/no/where cannot be read on the controller" in no_sums["msg"]


@pytest.mark.full("True", why="check mode")
@pytest.mark.parametrize("check", [False, True])
def test_on_the_node(site, check):
    place = site.folder / "node" / NAME
    place.parent.mkdir()
    place.write_bytes(CONTENT)
    # Others may exchange the file, so that a copy is verified and run.
    place.parent.chmod(0o777)
    (place.parent / "sums").write_text(f"{SHA256}  {NAME}\n")
    runfile = {"path": str(place), "remote": True, "checksum": SHA256}
    right, by_file, wrong, gone, no_sums = site(
        runfile,
        {**runfile, "checksum": str(place.parent / "sums")},
        {**runfile, "checksum": WRONG},
        {**runfile, "path": f"{place}.gone"},
        {**runfile, "checksum": f"{place}.sums"},
        check=check,
    )
    assert (right["changed"], right["path"], right["cached"]) == (True, str(site.target), True)
    assert (by_file["changed"], by_file["path"]) == (check, str(site.target))
    assert site.target.exists() is not check
    if not check:
        assert site.target.read_bytes() == CONTENT and mode(site.target) == "0o700"
    assert "left where it is" in wrong["msg"] and place.exists()
    assert "is not on the node" in gone["msg"]
    assert "cannot be read on the node" in no_sums["msg"]


BAD = [
    ({}, "exactly one of url and path"),
    ({"url": "http://x/y.run", "path": "/y.run"}, "exactly one of url and path"),
    ({"url": "http://u:secret@127.0.0.1/"}, "'http://***@127.0.0.1/' names no file"),
    ({"url": "http://127.0.0.1/%2e%2e", "checksum": SHA256}, "names no file"),
    ({"url": "http://127.0.0.1/x.run", "checksum": "http://127.0.0.1/sums"}, "on the way"),
    ({"path": "relative.run", "remote": True}, "names no file"),
    ({"url": "http://127.0.0.1/y.run"}, "y.run has no checksum"),
    ({"url": "http://127.0.0.1/y.run", "checksum": "md5:123"}, "only sha256"),
]


def test_bad_options(site):
    answers = site(*(runfile for runfile, _said in BAD))
    for answer, (_runfile, said) in zip(answers, BAD):
        assert answer["failed"] and said in answer["msg"] and answer["asked"] == []
        assert "secret" not in answer["msg"]


def test_a_folder_that_cannot_be_made(site, served):
    site.target.parent.write_text("a file is in the way")
    (answer,) = site({"url": f"{served}/{NAME}", "checksum": SHA256})
    assert re.search(r"cannot be (made|looked at)", answer["msg"]), answer["msg"]
