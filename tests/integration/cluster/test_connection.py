# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ways to a real API server: kubeconfigs of all kinds, and what is said where one does not work."""

from __future__ import annotations

import base64
import datetime
import json
import socket
import threading
import time

import pytest
import yaml
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from ansible_collections.kubegpu.nodes.plugins.modules import node_gpu_label
from tests.integration.cluster.labelling import refused
from tests.testbed.cluster_pki import Authority
from tests.unit.module_process import run_module

# Ansible hides a secret wherever it stands: one letter would be a part of other words.
TOKEN = "no-such-token"

# Kubeconfigs as people have them. That a node can be listed shows that the way works.


@pytest.fixture
def kubeconfig(api, tmp_path):
    """Write a kubeconfig like the administrator's, changed; return its path."""
    original = api.authority.kubeconfig(
        tmp_path / "original", api.server, "admin", groups=("system:masters",)
    )

    def write(user=None, cluster=None, **changes):
        data = yaml.safe_load(original.read_text())
        if user is not None:
            data["users"][0]["user"] = user
        entry = {**data["clusters"][0]["cluster"], **(cluster or {})}
        data["clusters"][0]["cluster"] = {k: v for k, v in entry.items() if v is not None}
        for key, value in changes.items():
            data[key.replace("_", "-")] = value
        path = tmp_path / f"kubeconfig{len(list(tmp_path.iterdir()))}"
        path.write_text(yaml.safe_dump(data))
        return path

    return write


def works(path, **options):
    answer = run_module(node_gpu_label.main, {"kubeconfig": str(path), "nodes": {}, **options})
    assert not answer.get("failed"), answer
    return answer["requests"] == {"list": 1, "patch": 0}


def program(folder, text):
    """A plugin for credentials, as those of the clouds."""
    path = folder / "give-credentials"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(path),
            "interactiveMode": "Never",
        }
    }


def credential(**status):
    return json.dumps(
        {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": status,
        }
    )


def test_certificate_and_key_as_data_or_files(api, kubeconfig, tmp_path):
    assert works(kubeconfig())
    certificate, key = api.authority.sign("client-files", "admin", ("system:masters",))
    # Relative to the kubeconfig's folder.
    (tmp_path / "client.crt").write_bytes(certificate.read_bytes())
    (tmp_path / "client.key").write_bytes(key.read_bytes())
    assert works(kubeconfig({"client-certificate": "client.crt", "client-key": "client.key"}))
    answer = refused(
        api, kubeconfig=str(kubeconfig({"client-certificate": "none", "client-key": "client.key"}))
    )
    assert f"{tmp_path}/none" in answer["evidence"]


def test_a_token_in_the_kubeconfig_or_in_a_file(api, account, kubeconfig, tmp_path):
    assert works(kubeconfig({"token": account["api_key"]}))
    (tmp_path / "token").write_text(account["api_key"] + "\n")
    assert works(kubeconfig({"tokenFile": str(tmp_path / "token")}))
    # Two of them, or a page of a login: told, and not quoted.
    (tmp_path / "token").write_text(f"{account['api_key']}\n{account['api_key']}\n")
    answer = refused(api, kubeconfig=str(kubeconfig({"tokenFile": str(tmp_path / "token")})))
    assert "has a line break" in answer["cause"]
    assert account["api_key"] not in json.dumps(answer)
    answer = refused(api, kubeconfig=str(kubeconfig({"tokenFile": str(tmp_path / "none")})))
    assert f"{tmp_path}/none" in answer["evidence"]


def test_a_plugin_for_credentials_gives_a_token_or_a_certificate(
    api, account, kubeconfig, tmp_path
):
    given = credential(token=account["api_key"])
    assert works(kubeconfig(program(tmp_path, f"echo '{given}'")))
    certificate, key = api.authority.sign("client-exec", "admin", ("system:masters",))
    given = credential(clientCertificateData=certificate.read_text(), clientKeyData=key.read_text())
    (tmp_path / "given.json").write_text(given)
    assert works(kubeconfig(program(tmp_path, f"cat {tmp_path}/given.json")))


def test_a_plugin_that_gives_nothing_is_named_with_its_own_words(api, kubeconfig, tmp_path):
    user = program(tmp_path, "echo 'Token has expired: log in again' >&2; exit 255")
    path = kubeconfig(user)
    answer = refused(api, kubeconfig=str(path))
    command = user["exec"]["command"]
    assert answer["cause"] == (
        f"The user of context testbed of {path} has no credentials: its plugin {command} gave none"
    )
    assert "Token has expired: log in again" in answer["evidence"]
    assert command in answer["next_step"]
    user["exec"]["command"] = "no-such-plugin"
    answer = refused(api, kubeconfig=str(kubeconfig(user)))
    assert "its plugin no-such-plugin gave none" in answer["cause"]
    assert "No such file or directory" in answer["evidence"]


def test_a_user_without_credentials_is_told_to_give_some(api, kubeconfig):
    path = kubeconfig({})
    answer = refused(api, kubeconfig=str(path))
    assert "was asked without credentials" in answer["cause"] or "401" in answer["msg"]
    assert "Add this rule" not in answer["msg"]


def test_no_current_context_is_needed_where_one_is_given(api, kubeconfig):
    path = kubeconfig(current_context="")
    assert works(path, context="testbed")
    answer = refused(api, kubeconfig=str(path))
    assert answer["cause"] == f"The kubeconfig {path} has no current context, and none was given"
    assert answer["evidence"] == "contexts there: testbed"
    stale = kubeconfig(current_context="gone")
    assert works(stale, context="testbed")
    answer = refused(api, kubeconfig=str(stale))
    assert answer["cause"] == f"The current context gone of the kubeconfig {stale} is not in it"


def test_of_several_kubeconfigs_those_count_that_are_there(api, kubeconfig, tmp_path):
    assert works(f"{tmp_path}/none:{kubeconfig()}")
    answer = refused(api, kubeconfig=f"{tmp_path}/none:{tmp_path}/neither")
    assert answer["cause"] == f"The kubeconfig {tmp_path}/none, {tmp_path}/neither does not exist"


def test_the_proxy_of_a_kubeconfig_is_used_as_kubectl_does(api, kubeconfig):
    with Proxy() as proxy:
        assert works(kubeconfig(cluster={"proxy-url": proxy.address}))
        assert proxy.asked == [f"CONNECT {api.server.removeprefix('https://')}"]
        assert proxy.logins == [None]
        # An option goes before it, and its user is told to the proxy.
        login = proxy.address.replace("http://", "http://ops:s3cret@")
        assert works(kubeconfig(cluster={"proxy-url": "http://127.0.0.1:9"}), proxy=login)
        assert base64.b64decode(proxy.logins[1].split()[1]) == b"ops:s3cret"
    answer = refused(api, kubeconfig=str(kubeconfig(cluster={"proxy-url": proxy.address})))
    assert "cannot be reached" in answer["cause"]
    # The second one can be used by newer clients with a library that is not installed here.
    for scheme in ("ftp", "socks5"):
        address = f"{scheme}://ops:s3cret@127.0.0.1:1"
        answer = refused(api, kubeconfig=str(kubeconfig(cluster={"proxy-url": address})))
        assert answer["cause"] == (
            "The address of the proxy on the way to the API server cannot be used"
        )
        assert "s3cret" not in json.dumps(answer)


class Proxy:
    """An HTTP proxy that connects to what it is asked for."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.asked, self.logins = [], []

    def serve(self):
        while True:
            try:
                client, _address = self.socket.accept()
            except OSError:
                return
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            lines = head.decode().split("\r\n")
            method, target, _version = lines[0].split()
            self.asked.append(f"{method} {target}")
            logins = [line for line in lines if line.lower().startswith("proxy-authorization:")]
            self.logins.append(logins[0].partition(": ")[2] if logins else None)
            host, _colon, port = target.rpartition(":")
            server = socket.create_connection((host, int(port)))
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=Forwarder.pump, args=(one, other), daemon=True).start()

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_error):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


# Connections that do not come about, each with its own words


def test_another_authority(api, tmp_path):
    other = Authority.make(tmp_path / "other")
    answer = refused(api, host=api.server, ca_cert=str(other.certificate), api_key=TOKEN)
    assert answer["cause"] == (
        f"The certificate of {api.server} was not signed by the CA that was given: "
        f"{other.certificate}"
    )
    assert "CERTIFICATE_VERIFY_FAILED" in answer["evidence"]


def test_no_authority_at_all(api):
    answer = refused(api, host=api.server, api_key=TOKEN)
    assert "the system's certificates" in answer["cause"]


def test_a_kubeconfig_that_switches_verification_off(api, kubeconfig):
    path = kubeconfig(
        cluster={"insecure-skip-tls-verify": True, "certificate-authority-data": None}
    )
    answer = refused(api, kubeconfig=str(path))
    assert f"of the kubeconfig {path} switches off the verification" in answer["cause"]
    assert "kubegpu_kube.ca_file" in answer["next_step"]
    # With a CA beside it the certificate is verified.
    assert works(path, ca_cert=str(api.ca_file))
    other = Authority.make(path.parent / "other")
    answer = refused(api, kubeconfig=str(path), ca_cert=str(other.certificate))
    assert "was not signed by the CA that was given" in answer["cause"]


def test_a_file_that_is_no_authority(api, tmp_path):
    (tmp_path / "ca.crt").write_text("no certificate\n")
    answer = refused(api, host=api.server, ca_cert=str(tmp_path / "ca.crt"), api_key=TOKEN)
    assert "TLS" in answer["cause"] or "CA" in answer["cause"]
    missing = refused(api, host=api.server, ca_cert=str(tmp_path / "none"), api_key=TOKEN)
    assert missing["cause"] == f"The file {tmp_path}/none of the option ca_cert cannot be read"


def test_a_name_that_the_certificate_does_not_have(api):
    host = api.server.replace("127.0.0.1", "127.0.0.2")
    # Somebody listens there who passes everything on to the API server.
    port = int(api.server.rpartition(":")[2])
    with Forwarder("127.0.0.2", port):
        answer = refused(api, host=host, ca_cert=str(api.ca_file), api_key=TOKEN)
    assert answer["cause"] == f"The certificate of {host} is valid, but not for this name"


def test_a_wrong_token(api):
    answer = refused(api, host=api.server, ca_cert=str(api.ca_file), api_key="s3cret-and-wrong")
    assert answer["cause"].startswith(f"The API server {api.server} does not accept the credent")
    assert "s3cret-and-wrong" not in json.dumps(answer)


def test_an_expired_token(api, account):
    """A token as the API server makes them, with its own key, but for an hour ago."""
    claims = json.loads(decoded(account["api_key"].split(".")[1]))
    header = json.loads(decoded(account["api_key"].split(".")[0]))
    hour_ago = int(time.time()) - 3600
    claims.update(exp=hour_ago, iat=hour_ago - 600, nbf=hour_ago - 600)
    token = signed(header, claims, api.home / "pki" / "accounts.key")
    answer = refused(api, host=api.server, ca_cert=str(api.ca_file), api_key=token)
    moment = datetime.datetime.fromtimestamp(hour_ago, datetime.timezone.utc)
    assert answer["cause"] == (
        f"The token of the options expired at {moment:%Y-%m-%d %H:%M:%S} UTC: the API server "
        f"{api.server} does not accept it"
    )
    # The same with a later end is taken: it is the time and nothing else.
    claims.update(exp=int(time.time()) + 600)
    token = signed(header, claims, api.home / "pki" / "accounts.key")
    options = {"host": api.server, "ca_cert": str(api.ca_file), "api_key": token}
    assert not run_module(node_gpu_label.main, {"nodes": {}, **options}).get("failed")


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def signed(header, claims, key_file):
    key = serialization.load_pem_private_key(key_file.read_bytes(), None)
    texts = [json.dumps(item).encode() for item in (header, claims)]
    parts = [base64.urlsafe_b64encode(text).rstrip(b"=") for text in texts]
    first, second = decode_dss_signature(key.sign(b".".join(parts), ec.ECDSA(hashes.SHA256())))
    signature = first.to_bytes(32, "big") + second.to_bytes(32, "big")
    parts.append(base64.urlsafe_b64encode(signature).rstrip(b"="))
    return b".".join(parts).decode()


def test_a_context_that_is_not_there(api):
    answer = refused(api, kubeconfig=str(api.kubeconfig), context="production")
    assert answer["cause"] == f"The kubeconfig {api.kubeconfig} has no context production"
    assert answer["evidence"] == "contexts there: testbed"


def test_a_kubeconfig_that_is_not_there_or_is_none(api, tmp_path):
    answer = refused(api, kubeconfig=str(tmp_path / "none"))
    assert answer["cause"] == f"The kubeconfig {tmp_path}/none does not exist"
    (tmp_path / "bad").write_text("users: [{token: s3cret\n  x: [\n")
    answer = refused(api, kubeconfig=str(tmp_path / "bad"))
    assert str(tmp_path / "bad") in answer["cause"]
    assert "s3cret" not in json.dumps(answer)


def test_a_server_that_is_not_there(api):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"https://127.0.0.1:{free.getsockname()[1]}"
        answer = refused(api, host=host, ca_cert=str(api.ca_file), api_key=TOKEN)
    assert answer["cause"] == f"The API server {host} of the options cannot be reached"
    assert "Connection refused" in answer["evidence"]


class Forwarder:
    """Passes connections on, byte by byte."""

    def __init__(self, address, port):
        self.socket = socket.create_server((address, port))
        self.port = port
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self):
        while True:
            try:
                client, _address = self.socket.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(one, other), daemon=True).start()

    @staticmethod
    def pump(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
