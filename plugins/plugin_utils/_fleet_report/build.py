# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Join what is known of the hosts into a report: the JSON, of which all forms are made. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.collection import COLLECTION
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding

from .actions import make_actions
from .changes import find_changes
from .fleet import count_models, count_states, find_drift, make_sentence
from .judge import diagnosed
from .nodes import make_node
from .texts import Hider, text
from .types import SCHEMA, Action, Others, Request, Source, Unseen

#: What two reports of one fleet can differ in although nothing has changed.
_OF_THE_REPORT = ("generated", "previous", "changes")
#: Texts of a finding in the JSON.
_TEXTS = ("severity", "cause", "evidence", "next_step", "fix", "confidence")


def build(
    sources: Sequence[Source], request: Request, previous: Any = None, others: Others | None = None
) -> dict[str, Any]:
    """Return the report as JSON values.

    :param previous: the JSON of the earlier report; None without one.
    :param others: what a diagnosis found that is not about a node.
    """
    nodes = sorted(map(make_node, sources), key=lambda node: node.name)
    hide = Hider(request.hide, sources)
    others = others or Others()
    more = [diagnosed(one) for one in others.findings]
    found = [_of(node.name, cause) for node in nodes for cause in node.causes] + more
    unseen = [Unseen(text(one.get("what")), text(one.get("why"))) for one in others.unseen]
    places = {text(source.name): source.node for source in sources}
    shown = hide([_json(node) for node in nodes])
    compared, changes = find_changes(previous, shown)
    return {
        "schema": SCHEMA,
        "collection": COLLECTION,
        "title": text(request.title),
        "generated": text(request.generated),
        "hidden": sorted(request.hide),
        "summary": {
            "sentence": hide(make_sentence(nodes, more)),
            "nodes": len(nodes),
            "gpus": sum(len(node.gpus) for node in nodes),
            "models": count_models(nodes),
            "states": count_states(nodes),
        },
        "previous": _json(compared),
        "changes": hide([_json(one) for one in changes]),
        "actions": hide([_action(one) for one in make_actions(found, places)]),
        "drift": hide([_json(one) for one in find_drift(nodes)]),
        "nodes": shown,
        "unseen": hide([_json(one) for one in unseen]),
    }


def _of(host: str, cause: Finding) -> Finding:
    return replace(cause, subject=replace(cause.subject, host=host))


def _action(action: Action) -> dict[str, Any]:
    """Return an action with its nodes; without one, it is for no node."""
    nodes = [
        {
            "node": one.subject.host,
            "subject": one.subject.place,
            "cause": one.cause,
            "evidence": one.evidence,
        }
        for one in action.found
    ]
    shown = {**_json(action.finding), "nodes": nodes}
    return {name: one for name, one in shown.items() if name not in ("subject", "evidence")}


def _json(value: Any) -> Any:
    """Return a dataclass as JSON values; dataclasses.asdict copies each text."""
    if isinstance(value, Finding):
        texts = {name: getattr(value, name) for name in _TEXTS}
        place = value.subject.place
        return {"id": value.code, "subject": place, **texts, "follows": list(value.follows)}
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
