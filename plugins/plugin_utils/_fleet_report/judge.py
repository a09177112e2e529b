# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The causes of a host, and its state. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.commands import playbook
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import (
    ERROR,
    INFO,
    SEVERITIES,
    WARNING,
    Finding,
    Subject,
    read_finding,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.data import VERIFIED
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.join import roots_of
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.observe import observe
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.switches import (
    reason,
    switched_off,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.types import RUNTIME, Host
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vendors import gpu_vendor

from .._report.drivers import RESTART, pending_text
from .ended import acceptance_causes, accepted, upgrade_causes
from .texts import mapping, sequence, text, texts
from .types import (
    ATTENTION,
    FAILED,
    NO_GPU,
    PARTLY,
    READY,
    UNKNOWN,
    Object,
    Source,
)

_SITE = playbook("site")
#: Of a diagnosis that found nothing on a host of which not all was read.
_PARTLY = "partly read"


def find_causes(source: Source) -> list[Finding]:
    """Return why a host is not as it should be, the worst first; what follows is folded in."""
    if source.facts is None:
        # The cluster may know of the node.
        return [_not_read(source), *map(diagnosed, source.diagnosis or ())]
    found = [
        *_failure(source),
        *_node_causes(source),
        *upgrade_causes(source),
        *_plan(source),
        *_left(source),
    ]
    # The tests read layers and health, too.
    told = {(one.code, one.cause) for one in found}
    found += [one for one in acceptance_causes(source) if (one.code, one.cause) not in told]
    unique: dict[tuple[str, str, str], Finding] = {}
    for one in found:
        unique.setdefault((one.code, one.subject.place, one.cause), one)
    return sorted(unique.values(), key=lambda one: SEVERITIES.index(one.severity))


def state(source: Source, causes: Sequence[Finding]) -> str:
    """Return the state of a host: one of ``STATES``."""
    if source.facts is None:
        return UNKNOWN
    severities = {one.severity for one in causes}
    if ERROR in severities:
        return FAILED
    if source.verdict == _PARTLY or (source.verdict and source.failure):
        return PARTLY
    if not source.facts["gpus"] or gpu_vendor(source.facts["gpus"]) == "none":
        return NO_GPU
    return ATTENTION if WARNING in severities else READY


def _not_read(source: Source) -> Finding:
    told = _told(source.failure)
    return Finding(
        "not_read",
        "The node could not be read.",
        " ".join(filter(None, (told.cause, told.evidence))) if told else "",
        (told.next_step if told else "")
        or "See that it runs and that Ansible reaches it (ansible NODE -m ping), then run again.",
        severity=ERROR,
    )


def _told(failure: Object) -> Finding | None:
    """Return the cause of a failed task."""
    if not failure:
        return None
    refused = bool(failure.get("refused"))
    found = read_finding(failure, text, Subject(part=text(failure.get("task"))))
    code, severity = ("refused", WARNING) if refused else ("run_failed", ERROR)
    return replace(found, code=code, severity=severity)


def _failure(source: Source) -> list[Finding]:
    told = _told(source.failure)
    refusals = sequence(source.failure.get("refusals")) or sequence(source.plan.get("refusals"))
    if told and source.failure.get("refused") and refusals:
        # The task has joined their texts to one message.
        return [_refusal(one, told.code, told.subject) for one in refusals]
    if told and source.verdict:
        # A diagnosis changes nothing: a part of the node was not read.
        told = replace(told, severity=WARNING)
    return [told] if told else []


def _refusal(one: Object, code: str, whole: Subject) -> Finding:
    """Return the cause of a refused part or variable, whose severity is a warning.

    :param whole: what is refused if no part of it is named.
    """
    part = text(one.get("part"))
    found = read_finding(one, text, Subject(part=part) if part else whole)
    step = found.next_step or "Change the variables of this part, then plan again."
    return replace(found, code=code, severity=WARNING, next_step=step)


def _node_causes(source: Source) -> list[Finding]:
    """Return what is wrong with the node itself: by its diagnosis, or by what was read."""
    if source.diagnosis is not None:
        # It has looked at layers, health and facts, and has left out what is no fault.
        return [*map(diagnosed, source.diagnosis), *_partly(source)]
    return _judged(source)


def _judged(source: Source) -> list[Finding]:
    """Return the root causes as a diagnosis finds them, with what a node without one needs."""
    facts = source.facts or {}
    layers = source.layers or ()
    name = text(source.name)
    host = Host(
        *(name, facts, layers, source.health),
        node=source.node,
        root=source.root,
        switches=source.switches,
    )
    tested = observe([replace(host, facts=None)], ())
    told = {one.code for one in tested}
    # Layers are not tried where their module finds no GPU: the facts are of another time or place.
    tried = any(one.get("ok") is not None for one in layers)
    blind = bool(facts["gpus"]) and not tried and not _driver_loaded(facts)
    works = not blind and all(one.severity != ERROR for one in tested)
    found = []
    for root in roots_of([host]):
        cause = diagnosed(root.to_json())
        if cause.code not in told and not facts["gpus"]:
            continue
        if cause.code not in told and cause.severity == ERROR and works:
            # Only the facts say so, and the GPUs work anyway.
            cause = replace(cause, severity=WARNING)
        found.append(replace(cause, follows=texts(one.cause for one in root.folded)))
    if blind and not any(one.severity == ERROR for one in found):
        found += _no_driver(facts, source.switches)
    return found


def _no_driver(facts: Object, switches: Mapping[str, bool]) -> list[Finding]:
    """Return that no driver is loaded, where nothing says why."""
    if gpu_vendor(facts["gpus"]) == "none":
        return []
    name = switched_off("driver_not_loaded", facts, switches)
    step = "Run the playbook site, which installs it where it is asked to."
    return [
        Finding(
            "driver_not_loaded",
            "No driver is loaded for the GPUs.",
            next_step=f"{reason(name)} {step}" if name else step,
            severity=ERROR,
            fix=f"{name}: true, then: {_SITE}" if name else _SITE,
        )
    ]


def _partly(source: Source) -> list[Finding]:
    """Return that not all of a host was read in which a diagnosis found nothing."""
    if source.verdict != _PARTLY or source.failure:
        return []
    unseen = (f"{text(one.get('what'))} ({text(one.get('why'))})" for one in source.unseen)
    return [
        Finding(
            "partly_read",
            "A part of the node could not be read, so that it is unknown whether it is ready.",
            "; ".join(texts(unseen)),
            "Give the run the rights or the connection that the evidence names, then run diagnose "
            "again.",
            severity=WARNING,
        )
    ]


def diagnosed(one: Object) -> Finding:
    """Return a root cause of a diagnosis."""
    subject = Subject(text(one.get("host")), text(one.get("gpu")), text(one.get("pod")))
    return read_finding({**one, "code": one.get("id")}, text, subject, ERROR, "diagnosed")


def needs_root(layer: Object, root: bool) -> bool:
    """Return whether a runtime denied another user than root an answer, which is no fault."""
    return not root and VERIFIED.get(text(layer["layer"])) == RUNTIME


def layer_name(layer: Object) -> str:
    """Return the name of a layer, with the runtime or vendor that it is of."""
    subject = text(layer.get("subject"))
    return f"{text(layer['layer'])} ({subject})" if subject else text(layer["layer"])


def _driver_loaded(facts: Mapping[str, Any]) -> bool:
    return bool(mapping(facts.get("driver")).get("loaded") or facts.get("kernel_drivers"))


def _plan(source: Source) -> list[Finding]:
    """Return what the plan refuses, and that site would change the node."""
    plan = source.plan
    refused = () if source.failure.get("refused") else sequence(plan.get("refusals"))
    found = [_refusal(one, "plan_refused", Subject()) for one in refused]
    changes = [
        change
        for step, change in zip(sequence(plan.get("steps")), sequence(plan.get("changes")))
        if step.get("action") != "refused"
    ]
    if changes and not source.applied:
        found.append(
            Finding(
                "plan_differs",
                "The node differs from what its variables ask for.",
                "; ".join(texts(changes)),
                "Run the playbook site, or upgrade where pods use the GPUs.",
                severity=INFO,
                fix=_SITE,
            )
        )
    return found


def _left(source: Source) -> list[Finding]:
    """Return what is left to be done on the node: a reboot, or the restart of a daemon."""
    found = []
    for one in source.pending:
        restart = one.get("pending") == RESTART
        what = f"restart of {text(one.get('daemon'))}" if restart else "reboot"
        verb = "Restart the daemon" if restart else "Reboot the node"
        found.append(
            Finding(
                "restart_pending" if restart else "reboot_pending",
                f"A {what} is pending: {text(one.get('reason'))}",
                next_step=f"{verb} when nothing uses its GPUs; the playbook upgrade does it on "
                "drained nodes.",
                severity=WARNING,
            )
        )
    return found


def remarks(source: Source) -> tuple[str, ...]:
    """Return what is reported of a node that needs no action of its own."""
    told = {pending_text(one) for one in (*source.pending, *sequence(source.plan.get("pending")))}
    problems = {text(one.get("cause")) for one in sequence((source.facts or {}).get("problems"))}
    left = texts((*sequence(source.plan.get("warnings")), *source.left))
    found = [one for one in left if one not in problems and one not in texts(told)]
    return (*accepted(source), *found)
