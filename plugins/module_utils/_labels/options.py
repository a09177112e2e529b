# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the options of node_gpu_label and gpu_node_labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .._core.errors import InputError
from .._core.options import read_arguments
from .names import LONGEST, label_text
from .types import EFFECTS, TAINTS_ANNOTATION, Request, Taint

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_DOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\Z")
_NODE_ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str"},
    "machine_id": {"type": "str"},
    "labels": {"type": "dict"},
    "annotations": {"type": "dict"},
    "taints": {
        "type": "list",
        "elements": "dict",
        "options": {
            "key": {"type": "str", "required": True, "no_log": False},
            "value": {"type": "raw"},
            "effect": {"type": "str", "required": True, "choices": list(EFFECTS)},
        },
    },
    "drop_taints": {"type": "list", "elements": "str"},
}
#: The options of the filter gpu_node_labels.
LABEL_ARGUMENTS: dict[str, dict[str, Any]] = {
    "accelerator_key": {"type": "str", "default": "accelerator", "no_log": False},
    "details": {"type": "bool", "default": True},
    "discovery_names": {"type": "bool", "default": True},
    "device_plugin_config": {"type": "str", "default": ""},
    "extra": {"type": "dict", "default": {}},
    "mig": {"type": "list", "elements": "dict", "default": []},
}


def read_requests(nodes: Mapping[str, Any]) -> list[Request]:
    """Return the requests of the option ``nodes``, by host.

    :raises InputError: a value is invalid, or the API server would refuse it.
    """
    spec = {str(key): {"type": "dict", "options": _NODE_ARGUMENTS} for key in nodes}
    given = {str(key): {} if value is None else value for key, value in nodes.items()}
    return [_read_request(*item) for item in read_arguments(spec, given, "nodes.").items()]


def _read_request(key: str, given: Mapping[str, Any]) -> Request:
    where = f"nodes.{key}"
    request = Request(
        key=key,
        name=given["name"] or key,
        machine_id=(given["machine_id"] or "").strip() or None,
        labels=_texts(where, "labels", given["labels"] or {}),
        annotations=_texts(where, "annotations", given["annotations"] or {}),
        taints=_read_taints(where, given["taints"] or ()),
        drop_taints=tuple(given["drop_taints"] or ()),
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


def _texts(where: str, kind: str, given: Mapping[str, Any]) -> dict[str, str]:
    for name, value in given.items():
        if isinstance(value, (Mapping, list, tuple)):
            raise InputError(
                f"The value of {name} in {where}.{kind} is not text", evidence=f"{value!r}"
            )
    # Null means no label, so that a template can omit one.
    return {str(name): label_text(value) for name, value in given.items() if value is not None}


def _read_taints(where: str, given: Iterable[Mapping[str, Any]]) -> tuple[Taint, ...]:
    taints: dict[tuple[str, str], Taint] = {}
    for item in given:
        value = "" if item["value"] is None else label_text(item["value"])
        taint = Taint(item["key"], value, item["effect"])
        _check_key(f"{where}.taints", taint.key)
        _check_value(f"{where}.taints", taint.key, taint.value)
        if taint.identity in taints:
            raise InputError(f"{where}.taints has {taint.key} with {taint.effect} twice")
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
            "digit at both ends, and in front of it, optionally, a domain and a slash.",
        )


def check_label(where: str, name: str, value: str) -> None:
    """Check the value of a label.

    :raises InputError: the API server would refuse it.
    """
    if not value:
        raise InputError(f"{where} is empty", next_step=f"It is the value of the label {name}.")
    _check_value(where, name, value)


def _check_value(where: str, name: str, value: str) -> None:
    if value and not (len(value) <= LONGEST and _NAME.match(value)):
        raise InputError(
            f"{where} has a value that Kubernetes does not take: {name} is {value!r}",
            next_step="A value is at most 63 letters, digits, '-', '_' and '.', with a letter or "
            "digit at both ends. The filter kubegpu.nodes.gpu_node_labels makes such values.",
        )
