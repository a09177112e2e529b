# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Speak CRI to a node's containerd as a kubelet does: a pod with a runtime handler, and its words.

Debian has no ``crictl``. Only the dozen fields that a pod needs are spoken (runtime.v1 of
k8s.io/cri-api), so that no generated code has to be kept.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc

from tests.testbed.shell import TestbedError

SOCKET = "/run/containerd/containerd.sock"
LOGS = "/var/log/pods/testbed"
_NETWORK_OF_THE_NODE = 2
_EXITED = 2

# Runs on the node: carries one connection between its own stdin and stdout and the socket.
_RELAY = f"""
import os, socket, threading
s = socket.socket(socket.AF_UNIX); s.connect({SOCKET!r})
def up():
    while True:
        data = os.read(0, 65536)
        if not data: break
        s.sendall(data)
    os._exit(0)
threading.Thread(target=up, daemon=True).start()
while True:
    data = s.recv(65536)
    if not data: break
    while data: data = data[os.write(1, data):]
"""

Field = tuple[int, "int | str | bytes | Message"]
Message = list[Field]


@dataclass(frozen=True)
class PodResult:
    """How a pod's container ended, and what it printed."""

    exit_code: int
    log: str


def encode(message: Message) -> bytes:
    """A protobuf message from (field number, value) pairs."""
    out = bytearray()
    for number, value in message:
        if isinstance(value, int):
            out += _varint(number << 3) + _varint(value)
            continue
        data = value.encode() if isinstance(value, str) else value
        data = encode(data) if isinstance(data, list) else data
        out += _varint(number << 3 | 2) + _varint(len(data)) + data
    return bytes(out)


def decode(data: bytes) -> dict[int, list[int | bytes]]:
    """The fields of a protobuf message by number; nested messages stay bytes."""
    fields: dict[int, list[int | bytes]] = {}
    position = 0
    while position < len(data):
        key, position = _read_varint(data, position)
        value: int | bytes
        if key & 7 == 0:
            value, position = _read_varint(data, position)
        elif key & 7 == 2:
            size, position = _read_varint(data, position)
            value, position = data[position : position + size], position + size
        else:
            raise TestbedError(f"CRI answered with a wire type that is not known: {key & 7}")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def run_pod(
    node: Sequence[str], handler: str, image: str, command: Sequence[str], timeout: float = 60
) -> PodResult:
    """Run one container in a pod of its own through ``handler`` and clean it up.

    :param node: argv with which a command runs as root on the node, with stdin.
    """
    with _channel(node) as channel:
        call = _Caller(channel, timeout)
        name = f"testbed-{handler or 'default'}-{time.monotonic_ns()}"
        sandbox_config: Message = [
            (1, [(1, name), (2, name), (3, "testbed")]),
            (3, f"{LOGS}/{name}"),
            (8, [(2, [(1, [(1, _NETWORK_OF_THE_NODE)])])]),
        ]
        answer = call("RunPodSandbox", [(1, sandbox_config), (2, handler)])
        sandbox = _text(answer[1][0])
        try:
            config: Message = [
                (1, [(1, "main")]),
                (2, [(1, image)]),
                *[(3, word) for word in command],
                (11, "main.log"),
            ]
            answer = call("CreateContainer", [(1, sandbox), (2, config), (3, sandbox_config)])
            container = _text(answer[1][0])
            call("StartContainer", [(1, container)])
            code = _wait(call, container, timeout)
            raw = subprocess.run(
                [*node, "cat", f"{LOGS}/{name}/main.log"],
                capture_output=True,
                text=True,
                check=True,
                timeout=30,
            ).stdout
        finally:
            call("StopPodSandbox", [(1, sandbox)])
            call("RemovePodSandbox", [(1, sandbox)])
    # Each line is: time, stream, tag, words.
    words = [line.split(" ", 3)[3] for line in raw.splitlines() if line.count(" ") > 2]
    return PodResult(code, "\n".join(words))


class _Caller:
    def __init__(self, channel: grpc.Channel, timeout: float) -> None:
        self._channel = channel
        self._timeout = timeout

    def __call__(self, method: str, request: Message) -> dict[int, list[int | bytes]]:
        call = self._channel.unary_unary(
            f"/runtime.v1.RuntimeService/{method}",
            request_serializer=encode,
            response_deserializer=decode,
        )
        try:
            answer: dict[int, list[int | bytes]] = call(request, timeout=self._timeout)
        except grpc.RpcError as error:
            raise TestbedError(f"CRI {method}: {error.details()}") from error
        return answer


def _wait(call: _Caller, container: str, timeout: float) -> int:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        status = call("ContainerStatus", [(1, container)])[1][0]
        fields = decode(status) if isinstance(status, bytes) else {}
        if fields.get(3, [0])[0] == _EXITED:
            code = fields.get(7, [0])[0]
            return code if isinstance(code, int) else -1
        time.sleep(0.1)
    raise TestbedError(f"the container did not end within {timeout:.0f} s")


@contextlib.contextmanager
def _channel(node: Sequence[str]) -> Iterator[grpc.Channel]:
    """A channel to the node's containerd, carried by the command that reaches the node."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = Path(folder) / "cri.sock"
        server.bind(str(path))
        server.listen()
        relays: list[subprocess.Popen[bytes]] = []
        threading.Thread(target=_accept, args=(server, node, relays), daemon=True).start()
        # The client's own name for a socket path is no valid host name to the server.
        options = [("grpc.default_authority", "localhost")]
        channel = grpc.insecure_channel(f"unix://{path}", options=options)
        try:
            yield channel
        finally:
            channel.close()
            for relay in relays:
                relay.terminate()
                relay.wait(timeout=10)


def _accept(
    server: socket.socket, node: Sequence[str], relays: list[subprocess.Popen[bytes]]
) -> None:
    while True:
        try:
            client, _address = server.accept()
        except OSError:
            return
        relays.append(
            subprocess.Popen(
                [*node, "python3", "-u", "-c", _RELAY],
                stdin=client.fileno(),
                stdout=client.fileno(),
                stderr=subprocess.DEVNULL,
            )
        )
        client.close()


def _text(value: int | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
        shift += 7
