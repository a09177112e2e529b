# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an API server answers when it refuses, in words of cause, evidence and next step."""

from __future__ import annotations

import base64
import datetime
import email.utils
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._core.errors import KubegpuError
from .._core.redact import redact
from .._known_faults.answers import field_owner, missing_right

# Of X509_verify_cert(3).
_NOT_ITS_NAME = frozenset({62, 64})
_NOT_NOW = frozenset({9, 10})
# OpenSSL's reasons where the other side answers in plain text.
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"})
# Of urllib3, which compares the names itself where it is given one.
_OF_URLLIB3 = "CertificateError"
_LONGEST_EVIDENCE = 600
_LOOPBACK = re.compile(r"https?://(?:127\.|localhost(?:[:/]|$)|\[::1\])", re.I)


@dataclass(frozen=True)
class FieldConflict:
    """A requested field of a server-side apply that belongs to another field manager."""

    field: str
    manager: str


class KubeError(KubegpuError):
    """The API server refused, or could not be asked.

    :param status: the HTTP status; None where no answer came.
    :param reason: Kubernetes' word for it (``Forbidden``), or ours (``Unreachable``,
        ``Certificate``, ``Timeout``, ``Configuration``, and ``Denied`` for what not a missing
        right but an admission rule forbids, which may let other objects through).
    :param retry_after: seconds that the server wants to be left alone.
    :param field_conflicts: the owners of the fields that blocked a server-side apply.
    :param causes: reason and message of each cause that the answer gives, as of a budget that
        forbids an eviction.
    """

    def __init__(
        self,
        cause: str,
        *,
        evidence: str = "",
        next_step: str = "",
        status: int | None = None,
        reason: str = "",
        retry_after: float | None = None,
        field_conflicts: tuple[FieldConflict, ...] = (),
        causes: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(cause, evidence=evidence, next_step=next_step)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        self.field_conflicts = field_conflicts
        self.causes = causes


@dataclass(frozen=True)
class Server:
    """Who is asked, and with what: for messages, and free of secrets."""

    host: str
    #: Where address and credentials came from: 'context prod of /home/ops/.kube/config'.
    source: str = "the options"
    ca: str = "the system's certificates"
    token_expired: str | None = None


def from_answer(
    server: Server, method: str, path: str, status: int, body: bytes, headers: Mapping[str, str]
) -> KubeError:
    """Return the error for an answer that is none of 200 to 299."""
    data = _status_object(body)
    message = str(data.get("message") or body.decode("utf-8", "replace")).strip()
    evidence = shorten(message) or f"HTTP status {status}"
    reason = str(data.get("reason") or "")
    request = f"{method} {path}"
    pause = retry_after(headers)
    if status == 401:
        return _unauthorized(server, evidence)
    if status == 403:
        error = _forbidden(server, request, message, evidence)
        error.causes = _causes(data)
        return error
    if status == 409:
        return _conflict(server, request, data, evidence)
    if 300 <= status <= 399:
        return _redirect(server, request, status, headers, evidence)
    causes = {
        404: (
            "has nothing there",
            "Check the names, and that the cluster's version has this kind of object.",
        ),
        410: ("no longer has the version that was requested", "Run it again."),
        422: ("finds the object not valid", "Correct what it names."),
        429: (
            "is overloaded and requested a pause" + (f" of {pause:.0f} s" if pause else ""),
            "Run it again when it is less busy.",
        ),
    }
    words, next_step = causes.get(
        status, ("failed", "Check the API server's log, and run it again.")
    )
    return KubeError(
        f"The API server {server.host} {words}: {request} was answered with status {status}",
        evidence=evidence,
        next_step=next_step,
        status=status,
        reason=reason,
        retry_after=pause,
        causes=_causes(data),
    )


def _causes(data: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return reason and message of the causes that a Status object gives."""
    details = data.get("details")
    found = details.get("causes") if isinstance(details, Mapping) else None
    return tuple(
        (str(cause.get("reason") or ""), str(cause.get("message") or "")) for cause in found or ()
    )


def _redirect(
    server: Server, request: str, status: int, headers: Mapping[str, str], evidence: str
) -> KubeError:
    location = next((value for name, value in headers.items() if name.lower() == "location"), "")
    # Behind the question mark a login page is told who comes.
    where = shorten(location.partition("?")[0]) or "another address"
    return KubeError(
        f"{server.host} answered {request} with status {status}, a redirect to {where}",
        evidence=evidence,
        next_step="Give the address of the API server itself: a redirect is not followed, as the "
        "credentials would go along.",
        status=status,
        reason="Redirect",
    )


def _unauthorized(server: Server, evidence: str) -> KubeError:
    if server.token_expired:
        return KubeError(
            f"The token of {server.source} expired at {server.token_expired}: the API server "
            f"{server.host} does not accept it",
            evidence=evidence,
            next_step="Get a new token, or a new kubeconfig.",
            status=401,
            reason="Expired",
        )
    return KubeError(
        f"The API server {server.host} does not accept the credentials of {server.source}: "
        "the token or client certificate is expired, revoked or of another cluster",
        evidence=evidence,
        next_step="Get a new token or kubeconfig of this cluster; 'kubectl get --raw /api' with "
        "the same kubeconfig shows whether it is good.",
        status=401,
        reason="Unauthorized",
    )


def _forbidden(server: Server, request: str, message: str, evidence: str) -> KubeError:
    found = missing_right(message)
    if found and found["user"] == "system:anonymous":
        # The next step must not be to give rights to everybody.
        return KubeError(
            f"The API server {server.host} was asked without credentials: {server.source} gave "
            "neither a token nor a client certificate that it knows",
            evidence=evidence,
            next_step="Give a token, a client certificate, or a kubeconfig whose user has one.",
            status=403,
            reason="Unauthorized",
        )
    if found and found["path"]:
        rule = f'{{nonResourceURLs: ["{found["path"]}"], verbs: ["{found["verb"]}"]}}'
        return KubeError(
            f"The user {found['user']} may not {found['verb']} {found['path']} at the API server "
            f"{server.host}",
            evidence=evidence,
            next_step=f"Add this rule to a ClusterRole of that user: {rule}",
            status=403,
            reason="Forbidden",
        )
    if found is None:
        # Quota, Pod Security and other admission speak in their own words.
        return KubeError(
            f"The API server {server.host} does not allow {request}",
            evidence=evidence,
            next_step="Change what the message names, or the policy that it names.",
            status=403,
            reason="Denied",
        )
    namespace = found["namespace"]
    where = f"in the namespace {namespace}" if namespace else "in the whole cluster"
    role = f"a Role in the namespace {namespace}" if namespace else "a ClusterRole"
    rule = (
        f'{{apiGroups: ["{found["group"]}"], resources: ["{found["resource"]}"], '
        f'verbs: ["{found["verb"]}"]}}'
    )
    return KubeError(
        f"The right '{found['verb']}' on '{found['resource']}' {where} is missing: the user "
        f"{found['user']} does not have it at the API server {server.host}",
        evidence=evidence,
        next_step=f"Add this rule to {role} of that user: {rule}",
        status=403,
        reason="Forbidden",
    )


def _conflict(server: Server, request: str, data: Mapping[str, Any], evidence: str) -> KubeError:
    conflicts = field_conflicts(data)
    if conflicts:
        owned = ", ".join(f"{item.field} (owner: {item.manager})" for item in conflicts)
        return KubeError(
            f"{request} sets fields that belong to other owners: {owned}",
            evidence=evidence,
            next_step="Leave the field to its owner, or take it over by forcing conflicts.",
            status=409,
            reason="Conflict",
            field_conflicts=conflicts,
        )
    return KubeError(
        f"{request} was refused by the API server {server.host} because of what is there now",
        evidence=evidence,
        next_step="Run it again.",
        status=409,
        reason=str(data.get("reason") or "Conflict"),
    )


def field_conflicts(data: Mapping[str, Any]) -> tuple[FieldConflict, ...]:
    """Return the conflicts that a Status object reports, by field and owner."""
    details = data.get("details")
    causes = details.get("causes") if isinstance(details, Mapping) else None
    conflicts = []
    for cause in causes or ():
        if cause.get("reason") == "FieldManagerConflict":
            field = str(cause.get("field") or "").lstrip(".")
            owner = field_owner(str(cause.get("message") or ""))
            conflicts.append(FieldConflict(field, owner))
    return tuple(conflicts)


def unreachable(server: Server, error: BaseException) -> KubeError:
    """Return the error for a connection that did not come about."""
    loopback = (
        f"{server.host} is the machine itself that sends the request: if the API server runs on "
        "another one, replace the address by that of the server. "
        if _LOOPBACK.match(server.host)
        else ""
    )
    return KubeError(
        f"The API server {server.host} of {server.source} cannot be reached",
        evidence=shorten(_without_object(error)),
        next_step=f"{loopback}Check address and port, the network and firewall between here and "
        "there, the proxy settings, and that the API server runs. The machine that runs this "
        "task sends the request: the controller, unless kubegpu_kube.delegate names another host.",
        reason="Unreachable",
    )


def timed_out(server: Server, method: str, path: str, error: BaseException) -> KubeError:
    """Return the error for a request that was sent and not answered."""
    return KubeError(
        f"The API server {server.host} did not answer {method} {path} in time, or broke off",
        evidence=shorten(_without_object(error)),
        next_step="Check the API server's load and log, and run it again.",
        reason="Timeout",
    )


def bad_certificate(server: Server, error: BaseException) -> KubeError:
    """Return the error for a TLS handshake that failed, told by OpenSSL's codes."""
    found = _tls_error(error)
    code = getattr(found, "verify_code", None)
    reason = str(getattr(found, "reason", None) or "")
    host = server.host
    if code in _NOT_ITS_NAME or type(found).__name__ == _OF_URLLIB3:
        cause = f"The certificate of {host} is valid, but not for this name"
        step = "Use an address that the certificate names, or add this one to the certificate."
    elif code in _NOT_NOW:
        cause = f"The certificate of {host} has expired or is not valid yet"
        step = "Renew it (kubeadm certs renew), and check the clocks of both machines."
    elif reason in _NO_TLS:
        cause = f"{host} does not speak TLS"
        step = "Check the port: the API server's is usually 6443."
    elif reason == "CERTIFICATE_VERIFY_FAILED" or code:
        cause = f"The certificate of {host} was not signed by the CA that was given: {server.ca}"
        step = (
            "Give this cluster's CA (/etc/kubernetes/pki/ca.crt on a kubeadm control plane) by "
            "ca_cert, or by certificate-authority in the kubeconfig. Verification is not switched "
            "off here."
        )
    else:
        cause = f"The TLS connection to {host} failed"
        step = "Check CA, client certificate and key."
    # A file that is no certificate: the words of ssl name no file.
    text = str(error) if found is not error else f"{type(error).__name__}: {error}"
    return KubeError(cause, evidence=shorten(text), next_step=step, reason="Certificate")


def _tls_error(error: BaseException) -> BaseException:
    """Return the error of the ssl module in one of urllib3's; the error itself without one."""
    # urllib3 wraps it several times; the list grows by what each error holds, once each.
    chain: list[BaseException] = [error]
    for one in chain:
        if isinstance(one, ssl.SSLError) or type(one).__name__ == _OF_URLLIB3:
            return one
        chain += [
            inner
            for inner in (*one.args, getattr(one, "reason", None), one.__cause__, one.__context__)
            if isinstance(inner, BaseException) and inner not in chain
        ]
    return error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header; a date or nonsense is None."""
    for name, value in headers.items():
        if name.lower() == "retry-after":
            try:
                return max(0.0, float(value))
            except ValueError:
                return None
    return None


def server_time(headers: Mapping[str, str]) -> float | None:
    """Return when an answer was made, by the server's clock, in seconds since 1970.

    Every answer of an API server has a Date header; None where a proxy took it out.
    """
    for name, value in headers.items():
        if name.lower() == "date":
            try:
                return email.utils.parsedate_to_datetime(value).timestamp()
            except (TypeError, ValueError, OverflowError):
                return None
    return None


def token_expiry(token: str, now: float) -> str | None:
    """Return since when a JSON Web Token is expired; None where it is not, or is no such token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        payload = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        expires = float(payload["exp"])
        if expires > now:
            return None
        moment = datetime.datetime.fromtimestamp(expires, datetime.timezone.utc)
    except (ValueError, TypeError, KeyError, OverflowError, OSError):
        return None
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def shorten(text: str) -> str:
    """Return a text in one line, cut where it is too long for a message."""
    # Redacted before it is cut: half an address does not show its password.
    text = redact(" ".join(text.split()))
    return text if len(text) <= _LONGEST_EVIDENCE else f"{text[:_LONGEST_EVIDENCE]} ..."


def _without_object(error: BaseException) -> str:
    """Return an error's words without the address of a Python object in front."""
    return re.sub(r"<\S+ object at 0x[0-9a-f]+>:?\s*", "", str(error)) or type(error).__name__
