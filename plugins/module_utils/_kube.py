# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Speak to a Kubernetes API server. Nothing else in this collection's Python does.

The ``kubernetes`` client reads kubeconfigs and keeps the connections. It is imported late, so that
nothing but a module that needs it, needs it.
"""

from __future__ import annotations

import base64
import concurrent.futures
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar
from urllib.parse import urlencode

from ansible.module_utils.basic import env_fallback

from ._kube_errors import (
    FieldConflict,
    KubeError,
    Server,
    bad_certificate,
    from_answer,
    timed_out,
    token_expiry,
    unreachable,
)

__all__ = ["KUBE_ARGUMENTS", "Answer", "Cluster", "Connection", "FieldConflict", "KubeError",
           "Server", "read_connection"]  # fmt: skip

FIELD_MANAGER = "kubegpu.nodes"
PAGE = 500
AT_ONCE = 8
_TIMEOUT = (10.0, 60.0)
_ATTEMPTS = 6
_LONGEST_PAUSE = 30.0
_LIST_RESTARTS = 3
_PATCHES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    # JSON is YAML, and every version of the API server takes it under this name.
    "apply": "application/apply-patch+yaml",
}

Item = TypeVar("Item")
Value = TypeVar("Value")
Objects = list[dict[str, Any]]


def _argument(kind: str, *variables: str, secret: bool = False) -> dict[str, Any]:
    argument: dict[str, Any] = {
        "type": kind,
        "fallback": (env_fallback, [f"K8S_AUTH_{name}" for name in variables]),
    }
    if secret:
        argument["no_log"] = True
    return argument


#: The connection options, with the names and environment variables of kubernetes.core.
KUBE_ARGUMENTS: dict[str, dict[str, Any]] = {
    "kubeconfig": _argument("path", "KUBECONFIG"),
    "context": _argument("str", "CONTEXT"),
    "host": _argument("str", "HOST"),
    "api_key": _argument("str", "API_KEY", secret=True),
    "username": _argument("str", "USERNAME"),
    "password": _argument("str", "PASSWORD", secret=True),
    "ca_cert": {**_argument("path", "CA_CERT", "SSL_CA_CERT"), "aliases": ["ssl_ca_cert"]},
    "client_cert": {**_argument("path", "CLIENT_CERT", "CERT_FILE"), "aliases": ["cert_file"]},
    # A path, no secret; sanity would take the name for one.
    "client_key": {
        **_argument("path", "CLIENT_KEY", "KEY_FILE"),
        "aliases": ["key_file"],
        "no_log": False,
    },
    "proxy": _argument("str", "PROXY"),
    "no_proxy": _argument("str", "NO_PROXY"),
}


@dataclass(frozen=True)
class Connection:
    """How to reach a cluster. Without anything, as kubectl would: in-cluster, or ~/.kube/config."""

    kubeconfig: str | None = None
    context: str | None = None
    host: str | None = None
    api_key: str | None = None
    username: str | None = None
    password: str | None = None
    ca_cert: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    proxy: str | None = None
    no_proxy: str | None = None

    def __repr__(self) -> str:
        """Leave the secrets out: a repr ends up in tracebacks."""
        return f"Connection(kubeconfig={self.kubeconfig!r}, host={self.host!r})"


def read_connection(params: Mapping[str, Any]) -> Connection:
    """Return the connection of a module's parameters; an empty text is an option not given."""
    return Connection(**{item.name: params.get(item.name) or None for item in fields(Connection)})


@dataclass(frozen=True)
class Answer:
    """What came back, read to its end."""

    status: int
    body: bytes
    headers: Mapping[str, str]


#: method, path with query, headers, body -> Answer. Raises KubeError where no answer came.
Transport = Callable[[str, str, Mapping[str, str], "bytes | None"], Answer]


class Cluster:
    """An API server, spoken to in paths and plain dictionaries. Safe to use from threads."""

    def __init__(
        self, send: Transport, server: Server, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._send = send
        self._sleep = sleep
        self._answered = False
        self.server = server
        #: Requests sent so far, by verb as in RBAC. For budgets; not exact to the last thread.
        self.requests: dict[str, int] = {}

    @classmethod
    def connect(cls, connection: Connection) -> Cluster:
        """Read the configuration. The first request is the first that reaches the server."""
        client = _Client(connection)
        return cls(client.send, client.server)

    def version(self) -> dict[str, Any]:
        """Return the server's version: ``{gitVersion: v1.34.1, major, minor, ...}``."""
        return self._json("version", "GET", "/version")

    def get(self, path: str, **params: object) -> dict[str, Any] | None:
        """Return an object; None where it does not exist."""
        try:
            return self._json("get", "GET", path, params)
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    def text(self, path: str, **params: object) -> str:
        """Return an answer that is no JSON, as a pod's log."""
        answer = self._request("get", "GET", path, params, accept="*/*")
        return answer.body.decode("utf-8", "replace")

    def list(self, path: str, **params: object) -> Iterator[dict[str, Any]]:
        """Return all objects below a path, fetched in pages (``limit``, 500 unless given)."""
        for _attempt in range(_LIST_RESTARTS):
            try:
                return iter(self._pages(path, {"limit": PAGE, **params}))
            except KubeError as error:
                # The token of a later page is too old: only a whole list is consistent.
                if error.status != 410:
                    raise
                last = error
        raise last

    def _pages(self, path: str, params: Mapping[str, object]) -> Objects:
        items: Objects = []
        token: object = None
        while True:
            page = self._json("list", "GET", path, {**params, "continue": token})
            items.extend(page.get("items") or [])
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return items

    def apply(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        field_manager: str = FIELD_MANAGER,
        force: bool = False,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Server-side apply: what we applied before and is not in ``body``, goes."""
        params = {"fieldManager": field_manager, "force": force}
        return self._write("patch", "PATCH", path, body, params, dry_run, _PATCHES["apply"])

    def patch(
        self,
        path: str,
        body: object,
        *,
        kind: str = "merge",
        field_manager: str = FIELD_MANAGER,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Patch an object; ``kind`` is merge, json or strategic."""
        params = {"fieldManager": field_manager}
        return self._write("patch", "PATCH", path, body, params, dry_run, _PATCHES[kind])

    def create(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        field_manager: str = FIELD_MANAGER,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Create an object below the path of its kind."""
        return self._write("create", "POST", path, body, {"fieldManager": field_manager}, dry_run)

    def delete(self, path: str, *, grace: int | None = None, dry_run: bool = False) -> bool:
        """Delete an object; False where it was not there."""
        params: dict[str, object] = {"propagationPolicy": "Background"}
        if grace is not None:
            params["gracePeriodSeconds"] = grace
        try:
            self._write("delete", "DELETE", path, None, params, dry_run)
        except KubeError as error:
            if error.status == 404:
                return False
            raise
        return True

    def each(
        self, function: Callable[[Item], Value], items: Sequence[Item], at_once: int = AT_ONCE
    ) -> Sequence[Value | KubeError]:
        """Return what ``function`` says of each item, or its error, in order; a few at a time.

        An item that somebody else changed in between (409) is tried again: ``function`` has to
        read it anew then. A conflict of field managers would stay one, and is not.
        """

        def guarded(item: Item) -> Value | KubeError:
            for attempt in range(_ATTEMPTS):
                try:
                    return function(item)
                except KubeError as error:
                    last = error
                    if error.status != 409 or error.field_conflicts or attempt == _ATTEMPTS - 1:
                        break
                    self._sleep(_pause(error, attempt))
            return last

        if not items:
            return []
        pool = concurrent.futures.ThreadPoolExecutor(max(1, min(at_once, len(items))))
        try:
            return list(pool.map(guarded, items))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _write(
        self,
        verb: str,
        method: str,
        path: str,
        body: object,
        params: Mapping[str, object],
        dry_run: bool,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        query = {**params, "dryRun": "All" if dry_run else None}
        return self._json(verb, method, path, query, body, content_type)

    def _json(
        self,
        verb: str,
        method: str,
        path: str,
        params: Mapping[str, object] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        answer = self._request(verb, method, path, params or {}, body, content_type)
        try:
            data = json.loads(answer.body)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise KubeError(
                f"{self.server.host} answered {method} {path} with something that is no object of "
                "Kubernetes",
                evidence=answer.body[:200].decode("utf-8", "replace"),
                next_step="Check that the address is the API server's, and no proxy or web server.",
                status=answer.status,
            )
        return data

    def _request(
        self,
        verb: str,
        method: str,
        path: str,
        params: Mapping[str, object],
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        query = {name: _text(value) for name, value in params.items() if value is not None}
        target = f"{path}?{urlencode(query)}" if query else path
        headers = {"Accept": accept}
        content = None
        if body is not None:
            content = json.dumps(body, separators=(",", ":")).encode()
            headers["Content-Type"] = content_type
        for attempt in range(_ATTEMPTS):
            self.requests[verb] = self.requests.get(verb, 0) + 1
            try:
                answer = self._send(method, target, headers, content)
            except KubeError as error:
                failure = error
                again = self._worth_another(method, error, attempt)
            else:
                self._answered = True
                if 200 <= answer.status <= 299:
                    return answer
                failure = from_answer(
                    self.server, method, path, answer.status, answer.body, answer.headers
                )
                # A pod that may not be evicted yet is 429 too, and is the caller's to wait for.
                again = not path.endswith("/eviction") and (
                    answer.status == 429
                    or (answer.status == 503 and failure.retry_after is not None)
                )
            if not again or attempt == _ATTEMPTS - 1:
                break
            self._sleep(_pause(failure, attempt))
        raise failure

    def _worth_another(self, method: str, error: KubeError, attempt: int) -> bool:
        """A server that answered before may be restarting; what may have been done, is not redone.

        A patch of ours can be: it says what is to be, not what is to be added.
        """
        if error.reason == "Unreachable":
            return self._answered and attempt < 4
        return error.reason == "Timeout" and method in ("GET", "PATCH") and attempt < 2


def _pause(error: KubeError, attempt: int) -> float:
    if error.retry_after is not None:
        return min(error.retry_after, _LONGEST_PAUSE)
    return min(0.1 * 3.0**attempt, _LONGEST_PAUSE)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class _Client:
    """The ``kubernetes`` client: it knows kubeconfigs, and has urllib3 with our TLS settings."""

    def __init__(self, connection: Connection) -> None:
        try:
            import kubernetes.client  # noqa: PLC0415
            import kubernetes.config  # noqa: PLC0415
            import urllib3  # noqa: PLC0415
        except ImportError as error:
            raise KubeError(
                "The Python library 'kubernetes' cannot be imported by the interpreter that speaks "
                "to the API server",
                evidence=str(error),
                next_step="Install it there (pip install kubernetes, or python3-kubernetes of the "
                "distribution), or set ansible_python_interpreter of the delegated task to the "
                "interpreter that has it, as '{{ ansible_playbook_python }}'.",
                reason="Configuration",
            ) from error
        self._errors: Any = urllib3.exceptions
        self._configuration: Any = kubernetes.client.Configuration()
        source = _load(kubernetes.config, self._configuration, connection)
        _override(self._configuration, connection)
        self.server = _server(self._configuration, connection, source)
        try:
            self._api: Any = kubernetes.client.ApiClient(self._configuration)
        except (OSError, ValueError) as error:
            # urllib3 reads the CA when it is first used; some versions at once.
            raise bad_certificate(self.server, str(error)) from error
        self._pool: Any = self._api.rest_client.pool_manager

    def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        """Send a request with the credentials and read the whole answer."""
        complete = {**headers, "User-Agent": FIELD_MANAGER}
        # This also renews a token that its kubeconfig lets expire.
        authorization = _authorization(self._configuration)
        if authorization:
            complete["Authorization"] = authorization
        path = target.partition("?")[0]
        try:
            answer = self._pool.request(
                method,
                f"{self.server.host}{target}",
                body=body,
                headers=complete,
                timeout=self._timeout(),
                # A redirect would take the token along; retries are ours to count.
                retries=False,
                redirect=False,
            )
        except self._errors.SSLError as error:
            raise bad_certificate(self.server, str(error)) from error
        except (self._errors.NewConnectionError, self._errors.ConnectTimeoutError) as error:
            raise unreachable(self.server, error) from error
        except self._errors.ProxyError as error:
            raise unreachable(self.server, error) from error
        except self._errors.HTTPError as error:
            raise timed_out(self.server, method, path, error) from error
        except OSError as error:
            # A CA, certificate or key that is no such thing: ssl's words name no file.
            raise bad_certificate(self.server, f"{type(error).__name__}: {error}") from error
        return Answer(answer.status, answer.data, dict(answer.headers))

    @staticmethod
    def _timeout() -> Any:
        import urllib3  # noqa: PLC0415

        return urllib3.Timeout(connect=_TIMEOUT[0], read=_TIMEOUT[1])


def _load(config: Any, configuration: Any, connection: Connection) -> str:
    """Fill the client's configuration from where the options say; return what that was."""
    if connection.host and not connection.kubeconfig and not connection.context:
        return "the options"
    if not connection.kubeconfig and not connection.context:
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException:
            pass
        else:
            return "this pod's service account"
    path = _kubeconfig(connection)
    try:
        contexts, active = config.list_kube_config_contexts(config_file=path)
        names = [context["name"] for context in contexts]
        if connection.context and connection.context not in names:
            raise _wrong_context(path, connection.context, names)
        config.load_kube_config(
            config_file=path,
            context=connection.context,
            client_configuration=configuration,
            persist_config=False,
        )
    except KubeError:
        raise
    except Exception as error:  # the client's loader lets through what yaml and base64 raise
        raise _bad_kubeconfig(path, connection.context, error) from None
    return f"context {connection.context or active['name']} of {path}"


def _kubeconfig(connection: Connection) -> str:
    """Return the kubeconfig's path, or several joined by colons; an error where none is there."""
    given = connection.kubeconfig
    path = given or os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")
    missing = "kubeconfig" if connection.context else "kubeconfig, context or host"
    origin = "" if given else f" (no {missing} was given)"
    for part in filter(None, path.split(os.pathsep)):
        try:
            with open(os.path.expanduser(part), "rb"):
                continue
        except FileNotFoundError as error:
            raise KubeError(
                f"The kubeconfig {part} does not exist{origin}",
                evidence=str(error),
                next_step="Set kubeconfig (kubegpu_kubeconfig in the roles) to a file on the host "
                "that speaks to the API server, or give host, token and CA.",
                reason="Configuration",
            ) from error
        except OSError as error:
            raise KubeError(
                f"The kubeconfig {part} cannot be read{origin}",
                evidence=str(error),
                next_step="Give the user who runs Ansible the right to read it.",
                reason="Configuration",
            ) from error
    return path


def _wrong_context(path: str, wanted: str, names: Sequence[str]) -> KubeError:
    return KubeError(
        f"The kubeconfig {path} has no context {wanted}",
        evidence=f"contexts there: {', '.join(sorted(names)) or 'none'}",
        next_step="Set context (kubegpu_context in the roles) to one of them.",
        reason="Configuration",
    )


def _bad_kubeconfig(path: str, context: str | None, error: Exception) -> KubeError:
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        # A YAML error quotes the line, and the line may hold a token.
        evidence = f"{type(error).__name__}: line {mark.line + 1}, column {mark.column + 1}"
    elif type(error).__name__ == "ConfigException":
        evidence = str(error)
    else:
        evidence = type(error).__name__
    which = f"The context {context}" if context else "The current context"
    return KubeError(
        f"{which} of the kubeconfig {path} cannot be used",
        evidence=evidence,
        next_step=f"See what is wrong with: kubectl --kubeconfig {path} config view",
        reason="Configuration",
    )


def _override(configuration: Any, connection: Connection) -> None:
    """Put the options over what the kubeconfig says."""
    if connection.host:
        configuration.host = connection.host.rstrip("/")
    if connection.api_key:
        configuration.api_key = {"authorization": f"Bearer {connection.api_key}"}
        configuration.refresh_api_key_hook = None
    elif connection.username and connection.password:
        pair = f"{connection.username}:{connection.password}".encode()
        encoded = base64.b64encode(pair).decode()
        configuration.api_key = {"authorization": f"Basic {encoded}"}
        configuration.refresh_api_key_hook = None
    for option, attribute in (
        ("ca_cert", "ssl_ca_cert"),
        ("client_cert", "cert_file"),
        ("client_key", "key_file"),
    ):
        path = getattr(connection, option)
        if path:
            _readable(option, path)
            setattr(configuration, attribute, path)
    if connection.proxy:
        configuration.proxy = connection.proxy
    if connection.no_proxy:
        configuration.no_proxy = connection.no_proxy
    configuration.connection_pool_maxsize = max(16, AT_ONCE)


def _readable(option: str, path: str) -> None:
    try:
        with open(path, "rb"):
            return
    except OSError as error:
        raise KubeError(
            f"The file {path} of the option {option} cannot be read",
            evidence=str(error),
            next_step="Name a file on the host that speaks to the API server.",
            reason="Configuration",
        ) from error


def _authorization(configuration: Any) -> str:
    """Return the header with the credentials.

    The client's own methods for it have other signatures every few releases, and the key in
    ``api_key`` another name; this stays.
    """
    for setting in configuration.auth_settings().values():
        if setting["in"] == "header" and setting["value"]:
            return str(setting["value"])
    return ""


def _server(configuration: Any, connection: Connection, source: str) -> Server:
    host = str(configuration.host or "").rstrip("/")
    authorization = _authorization(configuration)
    if not host.startswith(("https://", "http://")):
        raise KubeError(
            f"The address {host} of the API server has no scheme",
            next_step=f"Write it with one: https://{host}",
            reason="Configuration",
        )
    if host.startswith("http://") and authorization:
        raise KubeError(
            f"A token or password would go to {host} in clear text",
            next_step="Use the https address of the API server.",
            reason="Configuration",
        )
    server = Server(host, source)
    if connection.ca_cert:
        server = replace(server, ca=connection.ca_cert)
    elif configuration.ssl_ca_cert:
        server = replace(server, ca=f"the CA of {source}")
    token = authorization.partition(" ")[2] if authorization.startswith("Bearer ") else ""
    return replace(server, token_expired=token_expiry(token, time.time()))
