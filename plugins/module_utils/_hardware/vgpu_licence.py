# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The licence of a virtual GPU, as nvidia-smi and NVML report it in the guest. Pure.

nvidia-smi prints ``Licensed (Expiry: 2026-7-7 16:1:44 GMT)`` (also ``Expiry: N/A`` or
``Permanent``), ``Unlicensed (Unrestricted)`` while the performance is not reduced yet,
``Unlicensed (Restricted)`` when it is, and ``Unlicensed`` (drivers before 510, and states that have
no name). The words are those of NVIDIA's DCGM (dcgmlib, DcgmVgpu) and of outputs in public issues,
read 2026-11-27; a restricted guest was not tried on hardware.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

LICENSED = "licensed"
#: Without a licence, and not slowed down yet.
GRACE = "grace"
UNLICENSED = "unlicensed"
UNKNOWN = "unknown"

_GUEST = "vgpu"
# NVML_GPU_VIRTUALIZATION_MODE_VGPU and NVML_GRID_LICENSE_EXPIRY_* (nvml.h).
_NVML_GUEST = 2
_NVML_VALID = 2
_NVML_PERMANENT = 4
_TOKEN = re.compile(rb"(?P<header>[\w-]+)\.[\w-]+\.[\w-]+\Z", re.ASCII)
_EXPIRY = re.compile(
    r"Expiry:\s*(\d{4})-(\d{1,2})-(\d{1,2})\s+(\d{1,2}):(\d{1,2}):(\d{1,2})", re.IGNORECASE
)


def token_fault(place: str, data: bytes) -> str:
    """Return that a file has not the form of a client configuration token; empty if it has.

    NVIDIA does not document the form: a token is a signed JSON Web Token (RFC 7519) by public
    implementations of its server (the endpoint ``client-token`` of FastAPI-DLS) and by what
    nvidia-gridd logs of a wrong one, read 2026-11-28. It is therefore a warning, no refusal.

    :param place: the file, for the message; its text is never shown.
    """
    match = _TOKEN.match(data.strip())
    if match and _is_header(match["header"]):
        return ""
    return (
        f"{place} has not the form of a client configuration token, which is a JSON Web Token "
        "(three parts of base64url with dots in between): with another file nvidia-gridd gets no "
        "licence. Next step: download the client configuration token (not the instance token) "
        "from the licence portal or your DLS, and put that file there."
    )


def _is_header(text: bytes) -> bool:
    try:
        header = json.loads(base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4)))
    except ValueError:
        return False
    return isinstance(header, dict) and "alg" in header


def read_licence(
    mode: str | None, product: str | None, status: str | None
) -> dict[str, Any] | None:
    """Return the licence of a guest's GPU; None for a whole GPU, or if nothing tells it.

    :param mode: the element ``virtualization_mode`` of nvidia-smi.
    :param status: the element ``license_status``.
    """
    if (mode or "").lower() != _GUEST or not status:
        return None
    return {
        "product": product,
        "status": status,
        "state": _state(status),
        "expiry": _expiry(status),
    }


def licence_of_features(mode: Any, features: Any) -> dict[str, Any] | None:
    """Return the same from NVML's licensable features, which do not tell whether it is restricted.

    :param mode: the virtualization mode.
    :param features: ``nvmlGridLicensableFeatures_t``.
    """
    if mode != _NVML_GUEST or features is None or not features.isGridLicenseSupported:
        return None
    rows = list(features.gridLicensableFeatures)[: features.licensableFeaturesCount]
    row = next((row for row in rows if row.featureState), rows[0] if rows else None)
    if row is None:
        return None
    status = f"Licensed{_nvml_expiry(row)}" if row.featureState else "Unlicensed"
    product = row.productName
    if isinstance(product, bytes):
        product = product.decode("utf-8", "replace")
    return read_licence(_GUEST, product or None, status)


def _nvml_expiry(row: Any) -> str:
    expiry = getattr(row, "licenseExpiry", None)
    if expiry is None:
        return ""
    if expiry.status == _NVML_PERMANENT:
        return " (Expiry: Permanent)"
    if expiry.status != _NVML_VALID:
        return " (Expiry: N/A)"
    day = f"{expiry.year}-{expiry.month}-{expiry.day}"
    return f" (Expiry: {day} {expiry.hour}:{expiry.min}:{expiry.sec} GMT)"


def _state(status: str) -> str:
    text = status.lower()
    if text.startswith("licensed"):
        return LICENSED
    if text.startswith("unlicensed"):
        return GRACE if "unrestricted" in text else UNLICENSED
    return UNKNOWN


def _expiry(status: str) -> str | None:
    match = _EXPIRY.search(status)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc).isoformat()
    except ValueError:
        return None


def with_licences(
    gpus: Sequence[Mapping[str, Any]], nvml: Mapping[str, Any] | None
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the facts ``gpus`` and ``nvml``: a licence is moved to the GPU that it belongs to."""
    devices = nvml["devices"] if nvml else []
    known = {device["address"]: device["licence"] for device in devices}
    moved = [{**gpu, "vgpu": {**gpu["vgpu"], "licence": known.get(gpu["address"])}} for gpu in gpus]
    if nvml is None:
        return moved, None
    rest = [{name: one for name, one in device.items() if name != "licence"} for device in devices]
    return moved, {**nvml, "devices": rest}


def unlicensed(gpus: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the GPUs of the fact ``gpus`` that are known to have no licence."""
    return [gpu for gpu in gpus if licence_state(gpu) in (GRACE, UNLICENSED)]


def licence_state(gpu: Mapping[str, Any]) -> str | None:
    """Return the state of a GPU's licence; None for a whole GPU, or if nothing tells it."""
    # Facts of an earlier release have none.
    licence = gpu["vgpu"].get("licence")
    return licence["state"] if licence else None
