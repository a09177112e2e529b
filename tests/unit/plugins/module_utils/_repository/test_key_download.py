# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys from a server on loopback, which can be hostile."""

from __future__ import annotations

import base64
import http.server
import itertools
import os
import socket
import threading

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.openpgp import MAX_SIZE
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository import (
    key_download as _key_download,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.key_download import (
    download_key,
)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.asked.append((self.path, self.headers.get("Authorization"), self.headers))
        path = self.path.rpartition("/")[2]
        if path == "none":
            self.send_error(404)
            return
        if path == "elsewhere":
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        parts = {"key": [b"a key"], "large": itertools.repeat(b"x" * 65536)}
        try:
            for part in parts.get(path, itertools.repeat(b"x")):
                self.wfile.write(part)
                self.wfile.flush()
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
        made.asked = []
        made.daemon_threads = True
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


def address(server, path, login=""):
    return f"http://{login}127.0.0.1:{server.server_port}/{path}"


def test_what_is_there_is_returned(server):
    assert download_key(address(server, "key"), {}) == b"a key"


def test_the_password_of_the_address_is_used_and_never_told(server):
    assert download_key(address(server, "key", "me:s3cret@"), {}) == b"a key"
    wanted = "Basic " + base64.b64encode(b"me:s3cret").decode()
    assert server.asked[-1][1] == wanted
    with pytest.raises(KubegpuError) as caught:
        download_key(address(server, "none", "me:s3cret@"), {})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "words"),
    [("none", "404"), ("large", f"more than {MAX_SIZE} bytes"), ("elsewhere", "file")],
)
def test_what_is_no_key_is_refused(server, path, words):
    with pytest.raises(KubegpuError) as caught:
        download_key(address(server, path), {})
    assert words in str(caught.value)
    assert caught.value.next_step


def test_a_server_that_sends_byte_by_byte_is_left(server):
    with pytest.raises(KubegpuError, match="not complete after 0 seconds"):
        download_key(address(server, "drip"), {}, seconds=0.3)


def test_a_server_that_says_nothing_is_left(monkeypatch):
    monkeypatch.setattr(_key_download, "_TIMEOUT", 0.2)
    # It takes the connection, and that is all.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent_key = f"http://127.0.0.1:{silent.getsockname()[1]}/key"
        with pytest.raises(KubegpuError, match="cannot be read"):
            download_key(silent_key, {})


def test_the_proxy_is_asked_and_the_environment_is_as_before(server, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://before.invalid:1")
    before = dict(os.environ)
    proxy = address(server, "", "me:s3cret@").rstrip("/")
    wanted = {"http_proxy": proxy, "https_proxy": "http://other.invalid:1", "no_proxy": ""}
    assert download_key("http://repository.invalid/key", wanted) == b"a key"
    path, _login, headers = server.asked[-1]
    assert path == "http://repository.invalid/key"
    assert headers["Proxy-Authorization"].startswith("Basic ")
    assert dict(os.environ) == before


def test_an_authority_that_is_not_there(server):
    with pytest.raises(KubegpuError, match="certificate authority cannot be read"):
        download_key(f"https://127.0.0.1:{server.server_port}/key", {}, "/none")
