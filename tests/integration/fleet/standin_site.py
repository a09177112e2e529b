# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-ins for what a site has: a mirror, and a proxy that opens TLS with the site's authority.

Both listen on one address of the fleet's bridge, and serve the test bed's own signed repository.
"""

from __future__ import annotations

import socket
import ssl
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.testbed.cluster_pki import Authority

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class _Handler(SimpleHTTPRequestHandler):
    """Remembers what it was asked for."""

    def log_message(self, *_arguments):
        self.server.asked.append((self.client_address[0], self.path))


class _Server(ThreadingHTTPServer):
    """Has a list of who asked for what."""

    def __init__(self, address: tuple[str, int], handler: partial[_Handler]):
        super().__init__(address, handler)
        self.asked: list[tuple[str, str]] = []


class Mirror:
    """A web server of one folder; with ``tls`` it speaks HTTPS."""

    def __init__(self, folder: Path, address: str, tls: ssl.SSLContext | None = None):
        handler = partial(_Handler, directory=str(folder))
        self.server = _Server((address, 0), handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"http://{address}:{self.port}"

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Who asked for what."""
        return self.server.asked

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error):
        self.server.shutdown()
        self.server.server_close()


class OpeningProxy:
    """A proxy behind which every host is ours, with a certificate of the site's authority.

    A name that is asked for is never looked up: nothing leaves this machine.
    """

    def __init__(self, folder: Path, address: str, host: str, authority: Authority):
        certificate, key = authority.sign("opened", host, names=[host])
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        self.behind = Mirror(folder, "127.0.0.1", tls)
        self.socket = socket.create_server((address, 0))
        self.url = f"http://{address}:{self.socket.getsockname()[1]}"
        self.asked: list[str] = []

    def __enter__(self):
        self.behind.__enter__()
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.behind.__exit__(*error)

    def _serve(self) -> None:
        while True:
            try:
                client, _address = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(4096)
            if not more:
                client.close()
                return
            head += more
        method, target, _version = head.decode().split("\r\n")[0].split()
        self.asked.append(f"{method} {target}")
        if method != "CONNECT":
            client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            client.close()
            return
        server = socket.create_connection(("127.0.0.1", self.behind.port))
        client.sendall(_ESTABLISHED)
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=_pump, args=(one, other), daemon=True).start()


def _pump(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        one.close()
        other.close()
