# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain a text that a person pasted: which known faults it shows, and what fixes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import (
    ERROR,
    LIKELY,
    SEVERITIES,
    Finding,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.message import TITLES, message
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import redact
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.fixes import find_fix
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import explain
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.kinds import rest_of

from ._forms import facts_fault

Object = Mapping[str, Any]


def explain_text(text: Any, facts: Any = None, host: str = "") -> list[dict[str, Any]]:
    """Return the known faults in a text, the worst first.

    :param text: a log, an event, or the output of a program.
    :param facts: the fact ``gpu_node`` of the node of the text; None if it is not known.
    :param host: the name of that node, for the commands that fix a fault.
    :raises InputError: a value is of another type.
    """
    if not isinstance(text, str):
        raise InputError(
            f"The text to explain is a {type(text).__name__}, not a text.",
            next_step="Give the lines as one text, such as the stdout of a registered result.",
        )
    if facts is not None:
        wrong = facts_fault(facts)
        if wrong:
            raise InputError(
                "The facts for the explanation are not a fact gpu_node.",
                evidence=f"facts{wrong}"[:300],
                next_step="Give gpu_node as kubegpu.nodes.gpu_node_facts returned it, or leave "
                "the facts out.",
            )
    found = [_shown(one, host) for one in explain(text, facts)]
    return sorted(found, key=lambda one: SEVERITIES.index(one["severity"]))


def nothing_known(text: str) -> str:
    """Return the next step for a text in which no known fault is."""
    return (
        f"give {rest_of(text)}, or run kubegpu.nodes.diagnose without gpu_diagnose_text_file, "
        "which reads the nodes."
    )


def _shown(found: Finding, host: str) -> dict[str, Any]:
    texts = {
        "code": found.code,
        "severity": found.severity or ERROR,
        "subject": str(found.subject),
        "cause": found.cause,
        "evidence": found.evidence,
        "next_step": found.next_step,
        "fix": found.fix or _fix(found, host),
        "confidence": found.confidence or LIKELY,
    }
    shown: dict[str, Any] = {name: printable(redact(one)) for name, one in texts.items()}
    return {**shown, "alternatives": list(found.alternatives)}


def _fix(found: Finding, host: str) -> str:
    """Return the command; in one for a host without a name, words in capitals stand for names."""
    if found.alternatives:
        return ""
    return str(find_fix(found.code, replace(found.subject, host=host), found.details))


def explained_rows(found: Sequence[Object]) -> list[dict[str, Any]]:
    """Return a row for each fault, with its parts as notes."""
    return [
        {
            **{name: one[name] for name in ("code", "severity", "subject", "confidence")},
            "notes": [message(one, head=f"{one['code']}: {one['cause']}", names=TITLES, flat=True)],
        }
        for one in found
    ]
