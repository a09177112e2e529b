# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the option ``nodes`` of node_gpu_label."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._core.errors import InputError
from .desired import LONGEST, label_text
from .types import EFFECTS, TAINTS_ANNOTATION, Request, Taint

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_DOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\Z")
_REQUEST_KEYS = {"name", "machine_id", "labels", "annotations", "taints"}
_TAINT_KEYS = {"key", "value", "effect"}


def read_requests(nodes: Mapping[str, Any]) -> list[Request]:
    """Return the requests of the option ``nodes``, by host.

    :raises InputError: a value is invalid, or the API server would refuse it.
    """
    return [_read_request(str(key), value) for key, value in nodes.items()]


def _read_request(key: str, given: Any) -> Request:
    where = f"nodes.{key}"
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise InputError(
            f"The option {where} is no mapping",
            evidence=f"{given!r}",
            next_step="Give labels, annotations, taints, machine_id and name, or nothing of it.",
        )
    unknown = sorted(set(given) - _REQUEST_KEYS)
    if unknown:
        raise InputError(
            f"The option {where} has unknown keys: {', '.join(unknown)}",
            next_step=f"It may have {', '.join(sorted(_REQUEST_KEYS))}.",
        )
    request = Request(
        key=key,
        name=str(given.get("name") or key),
        machine_id=str(given["machine_id"]).strip() if given.get("machine_id") else None,
        labels=_texts(where, "labels", given.get("labels")),
        annotations=_texts(where, "annotations", given.get("annotations")),
        taints=_read_taints(where, given.get("taints")),
    )
    for name, value in request.labels.items():
        _check_key(f"{where}.labels", name)
        _check_value(f"{where}.labels", name, value)
    for name in request.annotations:
        _check_key(f"{where}.annotations", name)
    if TAINTS_ANNOTATION in request.annotations:
        raise InputError(
            f"The annotation {TAINTS_ANNOTATION} in {where}.annotations is kept by this module "
            "itself",
            next_step="Leave it out, and name taints by the key taints.",
        )
    return request


def _texts(where: str, kind: str, given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"The option {where}.{kind} is no mapping", evidence=f"{given!r}")
    found = {}
    for name, value in given.items():
        if isinstance(value, (Mapping, list, tuple)):
            raise InputError(
                f"The value of {name} in {where}.{kind} is no text", evidence=f"{value!r}"
            )
        # Null means no label, so that a template can omit one.
        if value is not None:
            found[str(name)] = label_text(value)
    return found


def _read_taints(where: str, given: Any) -> tuple[Taint, ...]:
    if given is None:
        return ()
    if not isinstance(given, (list, tuple)) or not all(isinstance(item, Mapping) for item in given):
        raise InputError(
            f"The option {where}.taints is no list of mappings",
            evidence=f"{given!r}",
            next_step="Write [{key: nvidia.com/gpu, value: present, effect: NoSchedule}].",
        )
    taints: dict[tuple[str, str], Taint] = {}
    for item in given:
        unknown = sorted(set(item) - _TAINT_KEYS)
        effect = str(item.get("effect") or "")
        if unknown or not item.get("key") or effect not in EFFECTS:
            raise InputError(
                f"A taint in {where}.taints is not valid",
                evidence=f"{dict(item)!r}",
                next_step=f"Give key, effect ({', '.join(EFFECTS)}) and, if wanted, value.",
            )
        value = item.get("value")
        taint = Taint(str(item["key"]), "" if value is None else label_text(value), effect)
        _check_key(f"{where}.taints", taint.key)
        _check_value(f"{where}.taints", taint.key, taint.value)
        if taint.identity in taints:
            raise InputError(f"{where}.taints has {taint.key} with {effect} twice")
        taints[taint.identity] = taint
    return tuple(taints.values())


def _check_key(where: str, name: str) -> None:
    domain, slash, rest = name.rpartition("/")
    valid = len(rest) <= LONGEST and bool(_NAME.match(rest))
    if slash:
        valid = valid and len(domain) <= 253 and bool(_DOMAIN.match(domain))
    if not valid:
        raise InputError(
            f"{where} has a key that Kubernetes does not take: {name!r}",
            next_step="A key is at most 63 letters, digits, '-', '_' and '.', with a letter or "
            "digit at both ends, and in front of it, if wanted, a domain and a slash.",
        )


def _check_value(where: str, name: str, value: str) -> None:
    if value and not (len(value) <= LONGEST and _NAME.match(value)):
        raise InputError(
            f"{where} has a value that Kubernetes does not take: {name} is {value!r}",
            next_step="A value is at most 63 letters, digits, '-', '_' and '.', with a letter or "
            "digit at both ends. The filter kubegpu.nodes.gpu_node_labels makes such values.",
        )
