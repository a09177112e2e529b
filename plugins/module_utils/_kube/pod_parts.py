# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of pods that this collection's manifests have in common. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._core.checks import wrong_value

Object = dict[str, Any]


def text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def environment(pairs: Mapping[str, Any]) -> list[Object]:
    return [{"name": key, "value": text(value)} for key, value in pairs.items()]


def from_field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def unprivileged(*capabilities: str) -> Object:
    """Return the minimal context; capabilities are incompatible with denied escalation."""
    context: Object = {
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if capabilities:
        context["capabilities"]["add"] = list(capabilities)
    else:
        context["allowPrivilegeEscalation"] = False
    return context


def host_path(name: str, path: str, kind: str = "") -> Object:
    volume: Object = {"path": path}
    if kind:
        volume["type"] = kind
    return {"name": name, "hostPath": volume}


def mount(name: str, path: str, read_only: bool = False) -> Object:
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}


def max_unavailable(value: str) -> str | int:
    """Return a number or a percentage as the API takes it."""
    return int(value) if value.isdigit() else value


def check_max_unavailable(prefix: str, value: str) -> None:
    """Check on how many nodes at once pods may be replaced.

    :param prefix: of the role's variables.
    :raises InputError: it is no number or percentage above 0.
    """
    if not re.match(r"\d+%?\Z", value) or value in ("0", "0%"):
        name = f"{prefix}pods.max_unavailable"
        raise wrong_value(name, "a number or a percentage above 0", value)
