# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials go to the API server alone, and never in clear text.

The client is the real one, which only the controller has: therefore these tests are not beside
those of the node's code. Small HTTP servers on loopback stand in for the API server.
"""

from __future__ import annotations

import http.server
import json
import os
import signal
import ssl
import threading
import time

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube import (
    credentials as _kube_credentials,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    Cluster,
    Connection,
    KubeError,
)
from tests.testbed.cluster_pki import Authority

TOKEN = "s3cret-token"
NODES = "/api/v1/nodes"


class StandinApiServer:
    """Gives one answer to every request and keeps what came; with an authority it speaks TLS."""

    def __init__(self, authority=None, status=200, headers=None):
        self.asked = asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                asked.append((self.command, self.path, self.headers.get("Authorization")))
                body = json.dumps({"kind": "NodeList", "items": []}).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PATCH = do_POST = do_DELETE = answer

            def log_message(self, *_arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        scheme = "http"
        if authority is not None:
            scheme = "https"
            certificate, key = authority.sign("standin", "standin", names=("127.0.0.1",))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.address = f"{scheme}://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        serve = {"poll_interval": 0.01}
        threading.Thread(target=self.server.serve_forever, kwargs=serve, daemon=True).start()
        return self

    def __exit__(self, *_error):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority.make(tmp_path_factory.mktemp("authority"))


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """The proxy of the machine that runs the tests has no part in them."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


def write_kubeconfig(path, server, user):
    data = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(data))
    return str(path)


@pytest.mark.parametrize(
    "way",
    ["option api_key", "options username and password", "token in a kubeconfig", "option host"],
)
def test_credentials_are_not_sent_over_clear_http(tmp_path, way):
    with StandinApiServer() as server:
        path = tmp_path / "kubeconfig"
        connection = {
            "option api_key": lambda: Connection(host=server.address, api_key=TOKEN),
            "options username and password": lambda: Connection(
                host=server.address, username="ops", password=TOKEN
            ),
            "token in a kubeconfig": lambda: Connection(
                kubeconfig=write_kubeconfig(path, server.address, {"token": TOKEN})
            ),
            # The kubeconfig is fine, and the option in front of it is not.
            "option host": lambda: Connection(
                kubeconfig=write_kubeconfig(path, "https://127.0.0.1:9", {"token": TOKEN}),
                host=server.address,
            ),
        }[way]()
        with pytest.raises(KubeError) as caught:
            list(Cluster.connect(connection).list(NODES))
        assert server.asked == []
    said = str(caught.value)
    assert f"A token or password would go to {server.address} in clear text" in said
    assert "Use the https address" in said
    assert TOKEN not in said


def test_clear_http_is_no_mistake_where_no_credentials_are(tmp_path):
    with StandinApiServer() as server:
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server.address, {})
        assert list(Cluster.connect(Connection(kubeconfig=kubeconfig)).list(NODES)) == []
    assert server.asked == [("GET", f"{NODES}?limit=500", None)]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_redirect_is_told_and_not_followed(authority, status, method):
    with StandinApiServer(authority) as elsewhere:
        target = f"{elsewhere.address}{NODES}"
        with StandinApiServer(authority, status, {"Location": target}) as server:
            cluster = Cluster.connect(
                Connection(host=server.address, api_key=TOKEN, ca_cert=str(authority.certificate))
            )
            with pytest.raises(KubeError) as caught:
                if method == "GET":
                    cluster.get(f"{NODES}/a")
                else:
                    cluster.patch(f"{NODES}/a", {})
    assert caught.value.status == status
    # It was asked once, with the token; nobody else was.
    assert [(verb, login) for verb, _path, login in server.asked] == [(method, f"Bearer {TOKEN}")]
    assert elsewhere.asked == []
    said = str(caught.value)
    assert "redirect is not followed" in said and target in said
    assert TOKEN not in said


def plugin(folder, script):
    """Return a kubeconfig's user whose credentials a program of these lines gives."""
    program = folder / "plugin"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": str(program), "interactiveMode": "Never"}}


CREDENTIALS = """
cat <<END
{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
 "status": {"token": "%s", "expirationTimestamp": "%s"}}
END
"""


def test_a_plugin_for_credentials_that_does_not_end_is_given_up(tmp_path, monkeypatch):
    """Such as one that waits for somebody to log in with a browser."""
    monkeypatch.setattr(_kube_credentials, "LIMIT", 1.0)
    pid = tmp_path / "pid"
    user = plugin(tmp_path, f"echo $$ > {pid}; exec sleep 60")
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:9", user)
    begin = time.monotonic()
    try:
        with pytest.raises(KubeError, match="got no credentials within 1 seconds") as caught:
            Cluster.connect(Connection(kubeconfig=kubeconfig))
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    assert time.monotonic() - begin < 20
    assert f"context x of {kubeconfig}" in caught.value.cause
    assert "no browser" in caught.value.next_step


def test_a_plugin_that_hangs_when_it_renews_a_token_is_given_up(tmp_path, monkeypatch, authority):
    """The first token is good for a moment, the second one never comes."""
    begun = tmp_path / "begun"
    pid = tmp_path / "pid"
    once = CREDENTIALS % (TOKEN, "2020-01-01T00:00:00Z")
    user = plugin(
        tmp_path, f"test -e {begun} && {{ echo $$ > {pid}; exec sleep 60; }}\ntouch {begun}\n{once}"
    )
    with StandinApiServer(authority) as server:
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server.address, user)
        connection = Connection(kubeconfig=kubeconfig, ca_cert=str(authority.certificate))
        monkeypatch.setattr(_kube_credentials, "LIMIT", 2.0)
        try:
            with pytest.raises(KubeError, match="got no credentials within 2 seconds"):
                list(Cluster.connect(connection).list(NODES))
        finally:
            os.kill(int(pid.read_text()), signal.SIGKILL)
        assert server.asked == []


def test_a_plugin_that_answers_is_used(tmp_path, authority):
    user = plugin(tmp_path, CREDENTIALS % (TOKEN, "2099-01-01T00:00:00Z"))
    with StandinApiServer(authority) as server:
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server.address, user)
        connection = Connection(kubeconfig=kubeconfig, ca_cert=str(authority.certificate))
        assert list(Cluster.connect(connection).list(NODES)) == []
        assert server.asked == [("GET", f"{NODES}?limit=500", f"Bearer {TOKEN}")]


def test_verification_stays_on_where_the_kubeconfig_switches_it_off(tmp_path, authority):
    """With a CA beside it such a kubeconfig is taken, and the client switches it off again."""
    other = Authority.make(tmp_path / "other")
    with StandinApiServer(authority) as server:
        path = tmp_path / "kubeconfig"
        write_kubeconfig(path, server.address, {"token": TOKEN})
        data = yaml.safe_load(path.read_text())
        data["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
        path.write_text(yaml.safe_dump(data))
        wrong = Connection(kubeconfig=str(path), ca_cert=str(other.certificate))
        with pytest.raises(KubeError, match="was not signed by the CA that was given"):
            list(Cluster.connect(wrong).list(NODES))
        assert server.asked == []
        right = Connection(kubeconfig=str(path), ca_cert=str(authority.certificate))
        assert list(Cluster.connect(right).list(NODES)) == []
