# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the upgrade and the acceptance of a host ended, as causes. Pure."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.commands import playbook
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import (
    ERROR,
    INFO,
    WARNING,
    Finding,
    Subject,
    read_finding,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.types import (
    BAD,
    BLOCKED,
    KEPT,
    NOT_STARTED,
    REFUSED,
    ROLLED_BACK,
    UNREACHABLE,
)

from .texts import mapping, sequence, text, texts
from .types import FAILED, Object, Source

_UPGRADE = playbook("upgrade")
_ACCEPT = playbook("accept")
#: Outcomes of an acceptance that say nothing of the GPUs. A lost connection is none of them: the
#: tests may have begun, and the node may be out of service.
_UNTESTED = (BLOCKED, REFUSED, NOT_STARTED)
#: How the upgrade of a node ended, where it is not as requested.
_ENDED = {
    FAILED: "The upgrade of the node failed, and the node remains drained.",
    UNREACHABLE: "The connection to the node was lost during its upgrade, and the node remains "
    "drained.",
    ROLLED_BACK: "The upgrade of the node failed, and the node has its earlier versions again.",
    BLOCKED: "The node could not be drained for its upgrade.",
    REFUSED: "The upgrade of the node is refused.",
    NOT_STARTED: "The upgrade of the node was not started.",
}
#: The findings of these do not say how the upgrade ended.
_TOLD = (UNREACHABLE, ROLLED_BACK, NOT_STARTED)


def _found(one: Object, run: str) -> Finding:
    """Return the finding of a run."""
    subject = Subject(part=text(one.get("subject")) or run)
    return read_finding(one, text, subject, ERROR, f"{run}_failed")


def upgrade_causes(source: Source) -> list[Finding]:
    """Return why the upgrade left the node otherwise than requested."""
    outcome = text(source.upgrade.get("outcome"))
    if outcome not in BAD:
        return []
    # Pods do not come back to a node that remains out of service.
    severity = ERROR if outcome in KEPT else WARNING
    found = [
        replace(_found(one, "upgrade"), severity=severity)
        for one in sequence(source.upgrade.get("findings"))
    ]
    if found and outcome not in _TOLD:
        return found
    because = "rolled_back_because" if outcome == ROLLED_BACK else "stopped"
    ended = Finding(
        f"upgrade_{outcome}",
        _ENDED[outcome],
        text(source.upgrade.get(because)),
        "Repair what the evidence or the other findings name, then run upgrade again.",
        severity=severity,
        subject=Subject(part="upgrade"),
        fix=_UPGRADE,
    )
    return [ended, *found]


def acceptance_causes(source: Source) -> list[Finding]:
    """Return what the tests of this run found, and that the node failed its last ones."""
    return [*_tested(source.acceptance), *_not_accepted(source)]


def _tested(result: Object) -> list[Finding]:
    untested = text(result.get("outcome")) in _UNTESTED
    found = [_found(one, "acceptance") for one in sequence(result.get("findings"))]
    found = [one for one in found if one.severity != INFO]
    if untested:
        found = [replace(one, severity=WARNING) for one in found]
    if untested and not found:
        found.append(
            Finding(
                "not_tested",
                "The node was not tested.",
                next_step="Run accept again.",
                severity=WARNING,
                subject=Subject(part="acceptance"),
                fix=_ACCEPT,
            )
        )
    return found


def _not_accepted(source: Source) -> list[Finding]:
    done = mapping((source.facts or {}).get("acceptance"))
    if not done or done.get("passed"):
        return []
    return [
        Finding(
            "not_accepted",
            f"The node failed the acceptance at the level {text(done.get('level'))} on "
            f"{text(done.get('at'))}.",
            "; ".join(texts(sequence(done.get("causes")))),
            "Repair what the tests found, and run accept again.",
            severity=ERROR,
            subject=Subject(part="acceptance"),
            fix=_ACCEPT,
        )
    ]


def accepted(source: Source) -> tuple[str, ...]:
    """Return as a remark that the node has passed its last tests."""
    done = mapping((source.facts or {}).get("acceptance"))
    if not done.get("passed"):
        return ()
    return (
        f"accepted {text(done.get('at'))} at the level {text(done.get('level'))}, with driver "
        f"{text(done.get('driver'))}",
    )
