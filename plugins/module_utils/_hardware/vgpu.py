# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a PCI function's configuration space says about virtual GPUs: pure bytes."""

from __future__ import annotations

from dataclasses import dataclass

# Without root the kernel gives out the first 64 bytes only, and the capabilities lie beyond.
_WHOLE = 256
_STATUS = 0x06
_HAS_CAPABILITIES = 0x10
_FIRST_CAPABILITY = 0x34
_VENDOR_SPECIFIC = 0x09
_SIGNATURE = b"VF"
_SIGNATURE_AT = 3
_FIRST_RECORD = 5
_RECORD_HEADER = 2
_HOST_DRIVER_RECORD = 0
_FIELD = 10


@dataclass(frozen=True)
class Vgpu:
    """Whether the function is a virtual GPU given to this guest; None is 'cannot tell'."""

    guest: bool | None = None
    host_driver_version: str | None = None
    host_driver_branch: str | None = None


def read_vgpu(config: bytes | None) -> Vgpu:
    """Return what the vendor's capability in ``config`` says."""
    if config is None or len(config) < _WHOLE or config[:2] == b"\xff\xff":
        return Vgpu()
    for capability in _vendor_capabilities(config):
        if capability[_SIGNATURE_AT : _SIGNATURE_AT + 2] == _SIGNATURE:
            version, branch = _host_driver(capability)
            return Vgpu(True, version, branch)
    return Vgpu(False)


def _vendor_capabilities(config: bytes) -> list[bytes]:
    found = []
    # A broken chain can loop.
    visited: set[int] = set()
    position = config[_FIRST_CAPABILITY] if config[_STATUS] & _HAS_CAPABILITIES else 0
    while position and position not in visited and position + 2 < _WHOLE:
        visited.add(position)
        kind, following, length = config[position : position + 3]
        if kind == 0xFF:
            break
        if kind == _VENDOR_SPECIFIC:
            found.append(config[position : position + length])
        position = following
    return found


def _host_driver(capability: bytes) -> tuple[str | None, str | None]:
    position = _FIRST_RECORD
    while position + _RECORD_HEADER <= len(capability):
        kind, length = capability[position], capability[position + 1]
        if kind == _HOST_DRIVER_RECORD:
            start = position + _RECORD_HEADER
            fields = capability[start : start + 2 * _FIELD]
            return _text(fields[:_FIELD]), _text(fields[_FIELD:])
        if length < _RECORD_HEADER:
            break
        position += length
    return None, None


def _text(field: bytes) -> str | None:
    return field.split(b"\0", 1)[0].decode("ascii", "replace").strip() or None
