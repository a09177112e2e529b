# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Join what is known of the hosts into a report: the JSON, of which all forms are made. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.collection import COLLECTION

from .changes import find_changes
from .fleet import count_states, find_drift, make_actions, make_sentence
from .nodes import make_node
from .texts import Hider, text
from .types import SCHEMA, Request, Source

#: What two reports of one fleet can differ in although nothing has changed.
_OF_THE_REPORT = ("generated", "previous", "changes")


def build(sources: Sequence[Source], request: Request, previous: Any = None) -> dict[str, Any]:
    """Return the report as JSON values.

    :param previous: the JSON of the earlier report; None without one.
    """
    nodes = sorted(map(make_node, sources), key=lambda node: node.name)
    hide = Hider(request.hide, sources)
    shown = hide([_json(node) for node in nodes])
    compared, changes = find_changes(previous, shown)
    return {
        "schema": SCHEMA,
        "collection": COLLECTION,
        "title": text(request.title),
        "generated": text(request.generated),
        "hidden": sorted(request.hide),
        "summary": {
            "sentence": hide(make_sentence(nodes)),
            "nodes": len(nodes),
            "gpus": sum(len(node.gpus) for node in nodes),
            "states": count_states(nodes),
        },
        "previous": _json(compared),
        "changes": hide([_json(one) for one in changes]),
        "actions": hide([_json(one) for one in make_actions(nodes)]),
        "drift": hide([_json(one) for one in find_drift(nodes)]),
        "nodes": shown,
    }


def _json(value: Any) -> Any:
    """Return a dataclass as JSON values; dataclasses.asdict copies each text."""
    if is_dataclass(value):
        return {one.name: _json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {key: _json(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [_json(one) for one in value]
    return value


def dump(report: Mapping[str, Any]) -> str:
    """Return the text of the JSON file."""
    return json.dumps(report, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def content(report: Any) -> dict[str, Any]:
    """Return what a report says of the fleet: all but its time and what it was compared with."""
    if not isinstance(report, Mapping):
        return {}
    return {key: value for key, value in report.items() if key not in _OF_THE_REPORT}
