# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The answers of kubernetes.core.k8s: what it changed, and a failure in words. Pure."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import failure
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import (
    Server,
    from_answer,
)


def changed_kinds(answer: Mapping[str, Any]) -> list[str]:
    """Return the kinds of the objects that changed, or that would change in check mode.

    The answer for a list has one entry for each object, that for one object is the entry.
    """
    result = answer.get("result")
    each = result.get("results") if isinstance(result, Mapping) else None
    entries = each if isinstance(each, list) else [answer]
    kinds = {
        str((one.get("result") or {}).get("kind") or "") for one in entries if one.get("changed")
    }
    return sorted(kinds - {""})


def in_words(result: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result; if the API server refused, with cause, evidence and next step.

    :param options: of the task: the connection, and ``state``.
    """
    status = _status(str(result.get("msg") or "")) if result.get("failed") else {}
    if not status:
        return dict(result)
    details = status.get("details")
    named = details if isinstance(details, Mapping) else {}
    # A secret is among the objects, so that no answer is quoted but its message.
    error = from_answer(
        Server(str(options.get("host") or f"of {options.get('kubeconfig') or 'the kubeconfig'}")),
        "removal of" if options.get("state") == "absent" else "apply of",
        " ".join(str(named.get(name) or "") for name in ("kind", "name")).strip() or "the objects",
        _code(status),
        json.dumps(status).encode(),
        {},
    )
    # Ansible would print the first text from there.
    kept = {name: one for name, one in result.items() if name != "exception"}
    return {**kept, **failure(error)}


def _status(text: str) -> dict[str, Any]:
    """Return the Status object that a message quotes as JSON or as Python's bytes; empty if none.

    Such as: Failed to apply object: b'{"kind":"Status", ...}'
    """
    _words, brace, rest = text.partition("{")
    quoted = brace + rest.rpartition("}")[0] + "}"
    if not brace:
        return {}
    try:
        if "b'{" in text:
            quoted = ast.literal_eval(f"b'{quoted}'").decode("utf-8", "replace")
        found = json.loads(quoted)
    except (ValueError, SyntaxError, AttributeError):
        return {}
    return found if isinstance(found, dict) and found.get("kind") == "Status" else {}


def _code(status: Mapping[str, Any]) -> int:
    code = status.get("code")
    return code if isinstance(code, int) and not isinstance(code, bool) else 0
