# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files from a server on loopback, which can be hostile."""

from __future__ import annotations

import contextlib
import email.message
import hashlib
import http.server
import io
import itertools
import os
import signal
import socket
import stat
import threading
import time
from urllib.error import HTTPError
from urllib.parse import urljoin

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host import download as _download
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.download import (
    WrongChecksum,
    check_exists,
    read_text,
    save,
)

CONTENT = b"#!/bin/sh\n" + bytes(range(256)) * 999
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_error(int(self.path.rpartition("-")[2]))

    def do_GET(self):
        self.server.asked.append(self.path)
        path = self.path.partition("?")[0].rpartition("/")[2]
        if path == "none":
            self.send_error(404)
            return
        self.send_response(302 if path == "elsewhere" else 200)
        if path == "elsewhere":
            self.send_header("Location", "file:///etc/passwd")
        if path == "cut":
            self.send_header("Content-Length", "9999999")
        self.end_headers()
        parts = {"file": [CONTENT], "cut": [CONTENT], "text": [b"a sum\n\xff"], "elsewhere": []}
        try:
            for part in parts.get(path, itertools.repeat(b"x" * 65536)):
                self.wfile.write(part)
                self.server.sent += len(part)
        except OSError:
            # The client has had enough.
            pass

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        made.asked, made.sent = [], 0
        made.daemon_threads = True
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture
def dripping():
    """Servers that send a beginning, and then a byte now and then."""
    with contextlib.ExitStack() as stack:

        def start(beginning):
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            threading.Thread(target=drip, args=(listening, beginning), daemon=True).start()
            return f"http://127.0.0.1:{listening.getsockname()[1]}/x"

        yield start


def drip(listening, beginning):
    with contextlib.suppress(OSError):
        connection, _address = listening.accept()
        with connection:
            connection.sendall(beginning or b"HTTP/1.1 200 OK\r\nX: ")
            for _number in range(200):
                connection.sendall(b"x")
                time.sleep(0.05)


def address(server, path, login=""):
    return f"http://{login}127.0.0.1:{server.server_port}/{path}"


def test_text(server):
    assert read_text(address(server, "text"), 100, 60) == "a sum\n\ufffd"


def test_a_text_without_end_is_not_read_to_its_end(server):
    """300 MB of a checksum file were read before."""
    with pytest.raises(KubegpuError, match="more than 100000 bytes"):
        read_text(address(server, "endless"), 100_000, 60)
    assert server.sent < 20_000_000


@pytest.mark.parametrize("sends", [b"", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["headers", "body"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_time_is_limited_in_all(dripping, sends, method):
    """A timeout of the socket is for one read: each of these bytes comes in time."""
    url = dripping(sends)
    if method == "HEAD" and sends:
        check_exists(url, 5)
        return
    with pytest.raises(KubegpuError, match="not complete after 0 seconds"):
        check_exists(url, 0.3) if method == "HEAD" else read_text(url, 1 << 20, 0.3)
    # What comes later is not interrupted.
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize(("code", "there"), [(403, True), (405, True), (501, True), (404, False)])
def test_a_server_that_answers_no_head_may_have_the_file(server, code, there):
    """Links that are signed allow GET alone."""
    url = address(server, f"head-{code}")
    if there:
        check_exists(url, 60)
    else:
        with pytest.raises(KubegpuError, match="404"):
            check_exists(url, 60)


@pytest.mark.parametrize("path", ["elsewhere", "none"])
def test_failures_name_the_address_without_its_secrets(server, path):
    with pytest.raises(KubegpuError) as caught:
        read_text(address(server, f"{path}?s3cret", "me:s3cret@"), 100, 60)
    assert "s3cret" not in str(caught.value)
    assert f"{server.server_port}/{path}?***" in caught.value.cause and caught.value.next_step


class Answer(io.BytesIO):
    def __init__(self, url, content):
        super().__init__(content)
        self.url = url

    def geturl(self):
        return self.url


class Redirecting:
    """Addresses that redirect to the next one, as open_url answers for each."""

    def __init__(self, *places):
        self.places = list(places)
        self.asked = []

    def __call__(self, url, follow_redirects="urllib2", **_options):
        self.asked.append(url)
        while self.places:
            place = self.places.pop(0)
            if follow_redirects == "none":
                headers = email.message.Message()
                headers["Location"] = place
                raise HTTPError(url, 302, "Found", headers, io.BytesIO())
            url = urljoin(url, place)
        return Answer(url, b"a sum")


@pytest.mark.parametrize(
    ("places", "scheme"),
    [
        (["http://h/sums"], "http"),
        (["http://h/sums", "https://h/sums"], "http"),
        (["//h/a", "HTTP://h/b", "https://h/c", "https://h/d"], "http"),
        (["file:///etc/shadow", "https://h/d"], "file"),
    ],
)
def test_a_redirection_to_another_scheme_is_no_answer(monkeypatch, places, scheme):
    """A checksum over https that comes by plain http can be anybody's, at any step."""
    standin = Redirecting(*places)
    monkeypatch.setattr(_download, "open_url", standin)
    with pytest.raises(KubegpuError, match=f"redirected to {scheme}://"):
        read_text("https://h/sums", 100, 60)
    assert not [url for url in standin.asked if not url.startswith("https://")]


def test_redirections_within_a_scheme_are_followed_and_end(monkeypatch):
    standin = Redirecting("/b", "//other/c", "d")
    monkeypatch.setattr(_download, "open_url", standin)
    assert read_text("https://h/a", 100, 60) == "a sum"
    assert standin.asked == ["https://h/a", "https://h/b", "https://other/c", "https://other/d"]
    monkeypatch.setattr(_download, "open_url", Redirecting(*["/again"] * 50))
    with pytest.raises(KubegpuError, match="redirected more than 10 times"):
        read_text("https://h/a", 100, 60)


def test_a_file_is_saved_for_its_owner_alone(server, tmp_path):
    path = tmp_path / "x.run"
    path.write_text("an earlier one")
    save(address(server, "file"), str(path), SHA256, 1 << 20, 60, str(tmp_path))
    assert path.read_bytes() == CONTENT
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert os.listdir(tmp_path) == ["x.run"]


@pytest.mark.parametrize(
    ("path", "limit", "said"),
    [
        ("file", 1000, "more than 1000 bytes"),
        ("endless", 1 << 20, "more than 1048576 bytes"),
        ("cut", 1 << 24, "bytes of it did not come"),
        ("none", 1000, "404"),
    ],
)
def test_what_cannot_be_had_whole_leaves_nothing(server, tmp_path, path, limit, said):
    (tmp_path / "x.run").write_text("an earlier one")
    with pytest.raises(KubegpuError, match=said):
        save(address(server, path), str(tmp_path / "x.run"), SHA256, limit, 60, str(tmp_path))
    assert os.listdir(tmp_path) == ["x.run"]
    assert (tmp_path / "x.run").read_text() == "an earlier one"


def test_another_file_is_not_put_there(server, tmp_path):
    wrong = "0" * 64
    with pytest.raises(WrongChecksum) as caught:
        save(address(server, "file"), str(tmp_path / "x"), wrong, 1 << 20, 60, str(tmp_path))
    assert caught.value.found == SHA256
    assert os.listdir(tmp_path) == []
