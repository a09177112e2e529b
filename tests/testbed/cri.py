# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run one container through a runtime handler over CRI and print its environment.

Sent to a node on stdin of its Python: ``python3 - HANDLER IMAGE``. Debian has no crictl, so this
speaks just enough gRPC: one HTTP/2 connection a call, with fields of the CRI API v1 by number.
"""

from __future__ import annotations

import socket
import struct
import sys
import uuid

SOCKET = "/run/containerd/containerd.sock"
_DATA, _HEADERS, _RST, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_HOST_NETWORK = 2
# An exec gets its environment from containerd, so the container itself says what it was given.
_RUN = "env >/tmp/env && mv /tmp/env /tmp/given && sleep 600"
_ASK = "until [ -e /tmp/given ]; do sleep 1; done; cat /tmp/given"


def varint(number: int) -> bytes:
    """A protobuf integer."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: bytes | str | int) -> bytes:
    """One protobuf field."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def parse(data: bytes) -> dict[int, bytes | int]:
    """The fields of a message (the last of each number)."""
    fields: dict[int, bytes | int] = {}
    position = 0

    def number() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(data):
        key = number()
        value = number()
        if key & 7 == 2:
            fields[key >> 3] = data[position : position + value]
            position += value
        else:
            fields[key >> 3] = value
    return fields


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One HTTP/2 frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header(name: str, value: str) -> bytes:
    """A header as a literal, outside the compression table."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def call(method: str, request: bytes) -> dict[int, bytes | int]:
    """One unary call of the runtime service."""
    headers = b"".join(
        header(name, value)
        for name, value in (
            (":method", "POST"),
            (":scheme", "http"),
            (":path", f"/runtime.v1.RuntimeService/{method}"),
            (":authority", "localhost"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        )
    )
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(90)
        connection.connect(SOCKET)
        connection.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            + frame(_SETTINGS, 0, 0, b"")
            + frame(_HEADERS, _END_HEADERS, 1, headers)
            + frame(_DATA, _END_STREAM, 1, b"\0" + struct.pack(">I", len(request)) + request)
        )
        answer = _answer(connection)
    if len(answer) < 5:
        raise SystemExit(f"CRI refused {method}: see the journal of containerd")
    return parse(answer[5:])


def _answer(connection: socket.socket) -> bytes:
    stream = connection.makefile("rb")
    answer = b""
    while True:
        head = stream.read(9)
        if len(head) < 9:
            return answer
        length = int.from_bytes(head[:3], "big")
        kind, flags, number = struct.unpack(">BBI", head[3:])
        payload = stream.read(length)
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            reply = b"" if kind == _SETTINGS else payload
            connection.sendall(frame(kind, _ACK, 0, reply))
        if kind == _DATA:
            answer += payload
        if kind in (_RST, _GOAWAY):
            return answer
        if number == 1 and kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            return answer


def environment(handler: str, image: str) -> str:
    """Start a pod with one container on the host's network and ask it for its environment."""
    name = f"kubegpu-{uuid.uuid4().hex[:8]}"
    metadata = field(1, name) + field(2, name) + field(3, "default")
    options = field(1, field(1, _HOST_NETWORK))
    sandbox = field(1, metadata) + field(8, field(2, options))
    pod = call("RunPodSandbox", field(1, sandbox) + field(2, handler))[1]
    try:
        command = b"".join(field(3, word) for word in ("/bin/sh", "-c", _RUN))
        container = field(1, field(1, name)) + field(2, field(1, image)) + command
        made = call("CreateContainer", field(1, pod) + field(2, container) + field(3, sandbox))[1]
        call("StartContainer", field(1, made))
        ask = b"".join(field(2, word) for word in ("/bin/sh", "-c", _ASK))
        output = call("ExecSync", field(1, made) + ask + field(3, 30)).get(1, b"")
        return output.decode() if isinstance(output, bytes) else ""
    finally:
        call("StopPodSandbox", field(1, pod))
        call("RemovePodSandbox", field(1, pod))


if __name__ == "__main__":
    print(environment(sys.argv[1], sys.argv[2]))
