# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests to a socket on which a stand-in of dockerd answers."""

from __future__ import annotations

import re
import socket
import threading

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.api import call, read_info


@pytest.fixture
def standin(tmp_path, monkeypatch):
    """Answer one request with these bytes; the function returns the request."""
    # The path of a socket has at most 107 characters.
    monkeypatch.chdir(tmp_path)
    seen = []

    def answer(response):
        server = socket.socket(socket.AF_UNIX)
        server.bind(f"{len(seen)}.sock")
        server.listen(1)

        def serve():
            connection, _address = server.accept()
            with server, connection:
                seen.append(read_request(connection))
                connection.sendall(response)

        threading.Thread(target=serve, daemon=True).start()
        return server.getsockname()

    answer.seen = seen
    return answer


def read_request(connection):
    """Return the whole request: http.client sends the body by itself."""
    data = connection.recv(65536)
    while True:
        head, end, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if end and len(body) >= (int(length.group(1)) if length else 0):
            return data
        data += connection.recv(65536)


def response(status, body=b""):
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def test_a_request_with_a_body_and_an_answer_without_one(standin):
    path = standin(response(204))
    body = {"RestartPolicy": {"Name": "no"}}
    assert call(path, "POST", "/containers/a/update", body) == (204, None)
    assert standin.seen[0].startswith(b"POST /containers/a/update HTTP/1.1\r\n")
    assert standin.seen[0].endswith(b'{"RestartPolicy": {"Name": "no"}}')
    assert b"Content-Type: application/json" in standin.seen[0]


def test_a_refusal_has_its_document(standin):
    path = standin(response(500, b'{"message": "no"}\n'))
    assert call(path, "POST", "/containers/a/start") == (500, {"message": "no"})


@pytest.mark.parametrize("bad", [b"", b"nonsense\r\n\r\n", response(200, b"{")])
def test_what_is_no_answer_is_an_error(standin, bad):
    with pytest.raises(KubegpuError, match="does not answer") as caught:
        call(standin(bad), "GET", "/info")
    assert caught.value.code == "docker_not_asked"


def test_the_info_is_a_mapping_or_none(standin, tmp_path):
    assert read_info(standin(response(200, b'{"Runtimes": {}}'))) == {"Runtimes": {}}
    assert read_info(standin(response(200, b"[]"))) is None
    assert read_info(str(tmp_path / "none")) is None
