# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refusals of an API server in words. The texts are those of Kubernetes 1.20 to 1.34."""

from __future__ import annotations

import base64
import json
import ssl

import pytest
import urllib3

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import (
    Server,
    bad_certificate,
    from_answer,
    retry_after,
    token_expiry,
    unreachable,
)

SERVER = Server("https://kube:6443", "context a of /kubeconfig", "/ca.crt")


def refused(status, message="", server=SERVER, **more):
    body = json.dumps({"kind": "Status", "message": message, **more}).encode()
    return from_answer(server, "PATCH", "/api/v1/nodes/n1", status, body, {})


def test_a_missing_right_of_the_whole_cluster():
    error = refused(
        403,
        'nodes "n1" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "nodes" '
        'in API group "" at the cluster scope',
        reason="Forbidden",
    )
    assert error.cause == (
        "The right 'patch' on 'nodes' in the whole cluster is missing: the user "
        "system:serviceaccount:a:b does not have it at the API server https://kube:6443"
    )
    assert error.next_step == (
        "Add this rule to a ClusterRole of that user: "
        '{apiGroups: [""], resources: ["nodes"], verbs: ["patch"]}'
    )


def test_a_missing_right_in_a_namespace():
    error = refused(
        403,
        'daemonsets.apps is forbidden: User "u" cannot list resource "daemonsets" in API group '
        '"apps" in the namespace "kubegpu"',
    )
    assert "'list' on 'daemonsets' in the namespace kubegpu" in error.cause
    assert "a Role in the namespace kubegpu" in error.next_step
    assert '{apiGroups: ["apps"], resources: ["daemonsets"], verbs: ["list"]}' in error.next_step


def test_a_path_that_may_not_be_read():
    error = refused(403, 'forbidden: User "u" cannot get path "/version"')
    assert '{nonResourceURLs: ["/version"], verbs: ["get"]}' in error.next_step


def test_admission_speaks_for_itself():
    error = refused(403, 'pods "x" is forbidden: violates PodSecurity "restricted:latest"')
    assert "PodSecurity" in error.evidence and "right" not in error.cause
    # Another object may be let through, which a missing right would not.
    assert error.reason == "Denied"


@pytest.mark.parametrize(
    "message",
    [
        'nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" '
        "at the cluster scope",
        'forbidden: User "system:anonymous" cannot get path "/version"',
    ],
)
def test_nobody_is_told_to_give_rights_to_everybody(message):
    error = refused(403, message)
    assert error.cause == (
        "The API server https://kube:6443 was asked without credentials: context a of /kubeconfig "
        "gave neither a token nor a client certificate that it knows"
    )
    assert "rule" not in error.next_step and error.reason == "Unauthorized"


def test_tokens():
    assert "expired, revoked or of another cluster" in refused(401, "Unauthorized").cause
    server = Server("https://kube:6443", "the options", token_expired="2026-11-01 00:00:00 UTC")
    assert "expired at 2026-11-01 00:00:00 UTC" in refused(401, "Unauthorized", server).cause


def jwt(claims):
    parts = [{"alg": "ES256"}, claims]
    texts = [base64.urlsafe_b64encode(json.dumps(item).encode()).rstrip(b"=") for item in parts]
    return b".".join([*texts, b"c2lnbmF0dXJl"]).decode()


@pytest.mark.parametrize(
    ("token", "expired"),
    [
        (jwt({"exp": 1000}), "1970-01-01 00:16:40 UTC"),
        (jwt({"exp": 3000}), None),
        (jwt({}), None),
        (jwt({"exp": "soon"}), None),
        (jwt({"exp": 1e30}), None),
        (jwt([]), None),
        ("a.b.c", None),
        ("abcdef", None),
        ("", None),
    ],
)
def test_when_a_token_expired(token, expired):
    assert token_expiry(token, now=2000.0) == expired


def test_conflicts_of_field_managers():
    error = refused(
        409,
        "Apply failed with 2 conflicts",
        reason="Conflict",
        details={
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "kubectl-label" using v1 at 2026-11-21T10:00:00Z',
                    "field": ".metadata.labels.accelerator",
                },
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "argocd" with subresource "status" using v1',
                    "field": ".metadata.labels.example.com/x",
                },
            ]
        },
    )
    assert [(item.field, item.manager) for item in error.field_conflicts] == [
        ("metadata.labels.accelerator", "kubectl-label"),
        ("metadata.labels.example.com/x", "argocd"),
    ]


def test_a_node_that_changed_is_no_conflict_of_managers():
    error = refused(409, "the object has been modified", reason="Conflict")
    assert error.field_conflicts == () and error.status == 409


@pytest.mark.parametrize("status", [404, 410, 422, 429, 500, 503, 302, 418])
def test_every_other_status_has_cause_and_next_step(status):
    error = refused(status, "because")
    assert str(status) in error.cause and error.evidence == "because" and error.next_step


def test_an_answer_that_is_no_status():
    error = from_answer(SERVER, "GET", "/x", 502, b"<html>Bad Gateway</html>", {})
    assert "Bad Gateway" in error.evidence
    assert from_answer(SERVER, "GET", "/x", 500, b"", {}).evidence == "HTTP status 500"
    assert len(from_answer(SERVER, "GET", "/x", 500, b"x" * 9999, {}).evidence) < 700


class CertificateError(ValueError):
    """As urllib3's, which no version of it shares with ssl."""


def tls(reason, verify=None):
    """Return an error as OpenSSL's codes tell it, in words that no code of ours knows."""
    error = (ssl.SSLError if verify is None else ssl.SSLCertVerificationError)(1, "in other words")
    error.reason = reason
    if verify is not None:
        error.verify_code = verify
    return error


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (tls("CERTIFICATE_VERIFY_FAILED", 20), "not signed by the CA that was given: /ca.crt"),
        (tls("CERTIFICATE_VERIFY_FAILED", 62), "valid, but not for this name"),
        (tls("CERTIFICATE_VERIFY_FAILED", 64), "valid, but not for this name"),
        (tls("CERTIFICATE_VERIFY_FAILED", 10), "has expired or is not valid yet"),
        (tls("CERTIFICATE_VERIFY_FAILED", 9), "has expired or is not valid yet"),
        (tls("WRONG_VERSION_NUMBER"), "does not speak TLS"),
        (CertificateError("other words"), "valid, but not for this name"),
        (tls("PEM lib"), "The TLS connection to https://kube:6443 failed"),
        (FileNotFoundError(2, "No such file"), "The TLS connection to https://kube:6443 failed"),
    ],
)
def test_certificates(error, cause):
    """As urllib3 raises them, whatever their words are."""
    for one in (error, urllib3.exceptions.SSLError(error)):
        found = bad_certificate(SERVER, one)
        assert cause in found.cause and str(one) in found.evidence
        assert found.reason == "Certificate"


def test_a_server_without_tls_has_a_reason_that_is_known():
    """Of the OpenSSL that runs the test."""
    client, server = ssl.MemoryBIO(), ssl.MemoryBIO()
    server.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLError) as raised:
        context.wrap_bio(server, client, server_hostname="kube").do_handshake()
    assert "does not speak TLS" in bad_certificate(SERVER, raised.value).cause


def test_an_address_of_an_object_is_not_shown():
    error = unreachable(SERVER, OSError("<urllib3.Connection object at 0x7f00>: refused"))
    assert error.evidence == "refused"
    assert error.next_step.startswith("Check address and port")


@pytest.mark.parametrize(
    "host", ["https://127.0.0.1:6443", "http://localhost:8080", "https://[::1]:6443"]
)
def test_a_loopback_address_is_the_machine_that_asks(host):
    error = unreachable(Server(host), ConnectionRefusedError("Connection refused"))
    assert error.next_step.startswith(f"{host} is the machine itself that sends the request")
    other = unreachable(Server("https://localhost.example.com:6443"), OSError("refused"))
    assert other.next_step.startswith("Check address and port")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"retry-after": "0"}, 0.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"Retry-After": "-4"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers, seconds):
    assert retry_after(headers) == seconds


@pytest.mark.parametrize("status", [403, 429, 500])
def test_the_causes_of_an_answer_are_kept(status):
    causes = [{"reason": "DisruptionBudget", "message": "b1 needs 1"}, {"field": "a"}]
    error = refused(status, "no", details={"causes": causes})
    assert error.causes == (("DisruptionBudget", "b1 needs 1"), ("", ""))
    assert refused(status, "no").causes == ()
    assert refused(status, "no", details={"causes": None}).causes == ()
