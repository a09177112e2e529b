# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How to reach a Kubernetes API server: options, kubeconfig, TLS, and the client that sends.

The ``kubernetes`` client reads kubeconfigs and keeps the connections. It is imported late, so that
nothing but a module that needs it, needs it.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import unquote

from ansible.module_utils.basic import env_fallback

from .credentials import Refresh, in_time
from .errors import (
    KubeError,
    Server,
    bad_certificate,
    shorten,
    timed_out,
    token_expiry,
    unreachable,
)

_USER_AGENT = "kubegpu.nodes"
_TIMEOUT = (10.0, 60.0)
#: Kept open: as many as threads may ask at once, or each request opens one of its own.
_CONNECTIONS = 64


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
class Response:
    """A response of the API server, read to its end."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class Client:
    """The ``kubernetes`` client: it knows kubeconfigs, and has urllib3 with our TLS settings."""

    def __init__(self, connection: Connection) -> None:
        try:
            # Not above: modules that import this for its options run without the library, and
            # one that needs it says so in words of its own.
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
        self._timeout: Any = urllib3.Timeout(connect=_TIMEOUT[0], read=_TIMEOUT[1])
        self._configuration: Any = kubernetes.client.Configuration()
        source, plugin_user = _load(kubernetes.config, self._configuration, connection)
        _override(self._configuration, connection, plugin_user)
        _log_in_to_proxy(self._configuration, urllib3)
        self.server = _server(self._configuration, connection, source)
        try:
            self._api: Any = kubernetes.client.ApiClient(self._configuration)
        except (urllib3.exceptions.URLSchemeUnknown, ImportError) as error:
            # For a SOCKS proxy some releases of the client import a library that may not be there.
            raise KubeError(
                "The address of the proxy on the way to the API server cannot be used",
                evidence=_without_password(str(error), self._configuration.proxy or ""),
                next_step="Give http://HOST:PORT or https://HOST:PORT: by the option proxy, by "
                "proxy-url in the kubeconfig or by the variable HTTPS_PROXY. socks5:// works with "
                "newer releases of the library 'kubernetes', together with PySocks.",
                reason="Configuration",
            ) from None
        except (OSError, ValueError) as error:
            # urllib3 reads the CA when it is first used; some versions at once.
            raise bad_certificate(self.server, error) from error
        self._pool: Any = self._api.rest_client.pool_manager

    def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        """Send a request with the credentials and read the whole answer."""
        complete = {**headers, "User-Agent": _USER_AGENT}
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
                timeout=self._timeout,
                # A redirect would take the token along; retries are ours to count.
                retries=False,
                redirect=False,
            )
        except self._errors.SSLError as error:
            raise bad_certificate(self.server, error) from error
        except (self._errors.NewConnectionError, self._errors.ConnectTimeoutError) as error:
            raise unreachable(self.server, error) from error
        except self._errors.ProxyError as error:
            raise unreachable(self.server, error) from error
        except self._errors.HTTPError as error:
            raise timed_out(self.server, method, path, error) from error
        except OSError as error:
            # The file of a CA, certificate or key has other content.
            raise bad_certificate(self.server, error) from error
        return Response(answer.status, answer.data, dict(answer.headers))


def _load(config: Any, configuration: Any, connection: Connection) -> tuple[str, str]:
    """Fill the client's configuration from where the options say; return what that was.

    The second text is whose credentials a plugin gives; empty where none does.
    """
    if connection.host and not connection.kubeconfig and not connection.context:
        return "the options", ""
    if not connection.kubeconfig and not connection.context:
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException:
            pass
        else:
            return "this pod's service account", ""
    path = _kubeconfig(connection)
    try:
        context, cluster, user = _context(config, path, connection.context)
        who = f"The user of the context {context} of {path}"
        if cluster.get("insecure-skip-tls-verify") and not connection.ca_cert:
            raise _not_verified(path, context)
        with _logged_errors() as words:
            in_time(
                lambda: config.load_kube_config(
                    config_file=path,
                    context=context,
                    client_configuration=configuration,
                    persist_config=False,
                ),
                who,
            )
    except KubeError:
        raise
    except Exception as error:  # the client's loader lets through what yaml and base64 raise
        raise _bad_kubeconfig(path, connection.context, error) from None
    source = f"context {context} of {path}"
    if words and not (_authorization(configuration) or configuration.cert_file):
        # The loader continues without credentials, and the server would report missing rights.
        raise _no_credentials(source, user, words)
    if cluster.get("proxy-url"):
        # As kubectl does; the loader does not read it.
        configuration.proxy, configuration.no_proxy = str(cluster["proxy-url"]), None
    return source, who if user.get("exec") or user.get("auth-provider") else ""


def _context(
    config: Any, path: str, wanted: str | None
) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
    """Return the name of the context, its cluster and its user."""
    merged = config.kube_config.KubeConfigMerger(path).config.value
    found = {str(one["name"]): one["context"] for one in merged["contexts"]}
    name = wanted or merged.get("current-context")
    if not name or name not in found:
        raise _wrong_context(path, wanted, name, list(found))
    context = found[name]
    parts = []
    for kind, key in (("clusters", "cluster"), ("users", "user")):
        named = {one["name"]: one.value.get(key) for one in merged[kind]}
        parts.append(named.get(context.value.get(key)) or {})
    return str(name), parts[0], parts[1]


@contextlib.contextmanager
def _logged_errors() -> Iterator[list[str]]:
    """Keep what the client logs: why a plugin for credentials gave none is said nowhere else."""
    words: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            words.append(record.getMessage())

    handler = Keep(logging.ERROR)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield words
    finally:
        root.removeHandler(handler)


def _not_verified(path: str, context: str) -> KubeError:
    return KubeError(
        f"The context {context} of the kubeconfig {path} switches off the verification of the API "
        "server's certificate: an attacker on the network could read the credentials",
        evidence="insecure-skip-tls-verify: true",
        next_step="Take that line out of the kubeconfig and give the cluster's CA there "
        "(certificate-authority-data), or as ca_cert (kubegpu_kube.ca_file in the roles).",
        reason="Configuration",
    )


def _no_credentials(source: str, user: Mapping[str, Any], words: Sequence[str]) -> KubeError:
    command = str((user.get("exec") or {}).get("command") or "")
    return KubeError(
        f"The user of {source} has no credentials: its plugin {command} gave none"
        if command
        else f"The user of {source} has no credentials that can be used",
        evidence=shorten(" ".join(words)),
        next_step=f"Run {command or 'kubectl'} as the user who runs the task, on the host "
        "that speaks to the API server: it has to be there, in the PATH, and logged in.",
        reason="Configuration",
    )


def _kubeconfig(connection: Connection) -> str:
    """Return the kubeconfig's path, or several joined by colons; an error where none is there."""
    given = connection.kubeconfig
    path = given or os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")
    missing = "kubeconfig" if connection.context else "kubeconfig, context or host"
    origin = "" if given else f" (no {missing} was given)"
    missing_files = []
    parts = [part for part in path.split(os.pathsep) if part]
    for part in parts:
        try:
            with open(os.path.expanduser(part), "rb"):
                continue
        except FileNotFoundError as error:
            missing_files.append(part)
            if len(missing_files) < len(parts):
                # Of several files kubectl too takes those that are there.
                continue
            raise KubeError(
                f"The kubeconfig {', '.join(missing_files)} does not exist{origin}",
                evidence=str(error),
                next_step="Set kubeconfig (kubegpu_kube.kubeconfig in the roles) to a file on the "
                "host that speaks to the API server, or give host, token and CA.",
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


def _wrong_context(path: str, wanted: str | None, name: object, names: Sequence[str]) -> KubeError:
    if wanted:
        cause = f"The kubeconfig {path} has no context {wanted}"
    elif name:
        cause = f"The current context {name} of the kubeconfig {path} is not in it"
    else:
        cause = f"The kubeconfig {path} has no current context, and none was given"
    return KubeError(
        cause,
        evidence=f"contexts there: {', '.join(sorted(names)) or 'none'}",
        next_step="Set context (kubegpu_kube.context in the roles) to one of them.",
        reason="Configuration",
    )


def _bad_kubeconfig(path: str, context: str | None, error: Exception) -> KubeError:
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        # A YAML error quotes the line, and the line may hold a token.
        evidence = f"{type(error).__name__}: line {mark.line + 1}, column {mark.column + 1}"
    elif isinstance(error, OSError) or type(error).__name__ == "ConfigException":
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


def _override(configuration: Any, connection: Connection, plugin_user: str) -> None:
    """Put the options over what the kubeconfig says.

    :param plugin_user: as :func:`_load` returns it.
    """
    if connection.api_key:
        configuration.api_key = {"authorization": f"Bearer {connection.api_key}"}
        configuration.refresh_api_key_hook = None
    elif connection.username and connection.password:
        pair = f"{connection.username}:{connection.password}".encode()
        encoded = base64.b64encode(pair).decode()
        configuration.api_key = {"authorization": f"Basic {encoded}"}
        configuration.refresh_api_key_hook = None
    for option in ("ca_cert", "client_cert", "client_key"):
        path = getattr(connection, option)
        if path:
            _readable(option, path)

    def pin(pinned: Any) -> None:
        if connection.host:
            pinned.host = connection.host.rstrip("/")
        for option, attribute in (
            ("ca_cert", "ssl_ca_cert"),
            ("client_cert", "cert_file"),
            ("client_key", "key_file"),
        ):
            if getattr(connection, option):
                setattr(pinned, attribute, getattr(connection, option))
        # A kubeconfig may switch it off; one that does comes here only with a CA next to it.
        pinned.verify_ssl = True

    pin(configuration)
    hook = getattr(configuration, "refresh_api_key_hook", None)
    if hook is not None:
        configuration.refresh_api_key_hook = Refresh(hook, pin, plugin_user)
    if connection.proxy:
        configuration.proxy = connection.proxy
    if connection.no_proxy:
        configuration.no_proxy = connection.no_proxy
    configuration.connection_pool_maxsize = _CONNECTIONS


def _log_in_to_proxy(configuration: Any, urllib3: Any) -> None:
    """Put the user of a proxy's address into the header; urllib3 would leave it out."""
    if configuration.proxy and not configuration.proxy_headers:
        login = urllib3.util.parse_url(configuration.proxy).auth
        if login:
            configuration.proxy_headers = urllib3.util.make_headers(proxy_basic_auth=unquote(login))


def _without_password(text: str, proxy: str) -> str:
    login, at, _host = proxy.rpartition("@")
    return text.replace(login.rpartition("//")[2], "***") if at else text


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
    ``api_key`` another name; this remains.
    """
    for setting in configuration.auth_settings().values():
        if setting["in"] == "header" and setting["value"]:
            # A token file ends with a line break where it was written by an editor or by echo.
            value = str(setting["value"]).strip()
            if not (value.isascii() and value.isprintable()):
                # The HTTP library would quote it.
                raise KubeError(
                    "The token or password for the API server has a line break or another "
                    "character that cannot be sent",
                    next_step="See that it is one line of the token and nothing else.",
                    reason="Configuration",
                )
            return value
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
