# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The causes of a host, and its state. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vendors import gpu_vendor
from ansible_collections.kubegpu.nodes.plugins.module_utils._root_causes.data import (
    CAUSES,
    ROOT_ONLY,
    VERIFIED,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._root_causes.join import explains
from ansible_collections.kubegpu.nodes.plugins.module_utils._root_causes.types import (
    GPU,
    RUNTIME,
    Observed,
    Subject,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import LAYERS, NVML

from .ended import acceptance_causes, accepted, upgrade_causes
from .texts import mapping, sequence, text, texts
from .types import (
    ATTENTION,
    ERROR,
    FAILED,
    INFO,
    NO_GPU,
    PARTLY,
    READY,
    SEVERITIES,
    UNKNOWN,
    WARNING,
    Cause,
    Object,
    Source,
)

_SEEN, _NEXT = "Seen: ", "Next step: "
_SITE = "ansible-playbook kubegpu.nodes.site"
#: What is left after a run, by how its text begins, and the id of the cause.
_LEFT = {"reboot": "reboot_pending", "restart": "restart_pending"}
#: Of a diagnosis that found nothing on a host of which not all was read.
_PARTLY = "partly read"


def find_causes(source: Source) -> list[Cause]:
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
    # The tests look at layers and health, too.
    told = {(one.id, one.cause) for one in found}
    found += [one for one in acceptance_causes(source) if (one.id, one.cause) not in told]
    unique: dict[tuple[str, str, str], Cause] = {}
    for one in found:
        unique.setdefault((one.id, one.subject, one.cause), one)
    return sorted(unique.values(), key=lambda one: SEVERITIES.index(one.severity))


def state(source: Source, causes: Sequence[Cause]) -> str:
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


def _not_read(source: Source) -> Cause:
    told = _told(source.failure)
    return Cause(
        "not_read",
        ERROR,
        "The node could not be read.",
        evidence=told.cause if told else "",
        next_step="See that it runs and that Ansible reaches it (ansible NODE -m ping), then run "
        "again.",
    )


def _told(failure: Object) -> Cause | None:
    """Return the cause in the message of a failed task, by the form of the collection's errors."""
    if not failure:
        return None
    lines = text(failure.get("message")).splitlines() or [""]
    seen = [line[len(_SEEN) :] for line in lines if line.startswith(_SEEN)]
    steps = [line[len(_NEXT) :] for line in lines if line.startswith(_NEXT)]
    refused = bool(failure.get("refused"))
    return Cause(
        "refused" if refused else "run_failed",
        WARNING if refused else ERROR,
        lines[0],
        subject=text(failure.get("task")),
        evidence="; ".join(seen),
        next_step=" ".join(steps),
    )


def _failure(source: Source) -> list[Cause]:
    told = _told(source.failure)
    if told and source.verdict:
        # A diagnosis changes nothing: a part of the node was not read.
        told = replace(told, severity=WARNING)
    return [told] if told else []


def _node_causes(source: Source) -> list[Cause]:
    """Return what is wrong with the node itself: by its diagnosis, or by what was read."""
    if source.diagnosis is not None:
        # It has looked at layers, health and facts, and has left out what is no fault.
        return [*map(diagnosed, source.diagnosis), *_partly(source)]
    problems = _problems(source)
    health = _health(source)
    layers = _layers(source)
    if layers and layers[0].subject.startswith(NVML):
        cause = next((one for one in health if _is_why(one, layers[0])), None)
        if cause is not None:
            follows = (*(f"{one.subject}: {one.cause}" for one in layers), *layers[0].follows)
            first = replace(cause, follows=tuple(dict.fromkeys((*cause.follows, *follows))))
            health = [first if one is cause else one for one in health]
            layers = []
    ids = {one.id for one in (*health, *layers)}
    return [*layers, *health, *(one for one in problems if one.id not in ids)]


def _is_why(health: Cause, layer: Cause) -> bool:
    """Return whether a finding of the health is why the driver does not answer, or says the same.

    A GPU that is lost or hangs explains it; an error of a GPU that the layer does not name, none.
    """
    if health.severity != ERROR:
        return False
    row = CAUSES.get(health.id)
    source = row.layer if row else GPU
    if not health.subject and source == NVML:
        return True
    seen = Observed(health.id, Subject(gpu=health.subject), ERROR, source, health.cause)
    return explains(seen, Observed(layer.id, Subject(), ERROR, NVML, layer.cause, layer.evidence))


def _partly(source: Source) -> list[Cause]:
    """Return that not all of a host was read in which a diagnosis found nothing."""
    if source.verdict != _PARTLY or source.failure:
        return []
    unseen = (f"{text(one.get('what'))} ({text(one.get('why'))})" for one in source.unseen)
    return [
        Cause(
            "partly_read",
            WARNING,
            "A part of the node could not be read, so that it is unknown whether it is ready.",
            evidence="; ".join(texts(unseen)),
            next_step="Give the run the rights or the connection that the evidence names, then run "
            "diagnose again.",
        )
    ]


def diagnosed(one: Object) -> Cause:
    """Return a root cause of a diagnosis."""
    severity = text(one.get("severity"))
    pod = text(one.get("pod"))
    return Cause(
        text(one.get("id")) or "diagnosed",
        severity if severity in SEVERITIES else ERROR,
        text(one.get("cause")),
        # The report names the host in a field of its own.
        f"pod {pod}" if pod else text(one.get("gpu")),
        text(one.get("evidence")),
        text(one.get("next_step")),
        text(one.get("fix")),
        text(one.get("confidence")),
        texts(sequence(one.get("follows"))),
    )


def needs_root(layer: Object, root: bool) -> bool:
    """Return whether a runtime denied another user than root an answer, which is no fault."""
    return not root and VERIFIED.get(text(layer["layer"])) == RUNTIME


def _layers(source: Source) -> list[Cause]:
    """Return the first layer that failed; each layer depends on those before it."""
    failed = [
        one
        for one in source.layers or ()
        if one.get("ok") is False and not needs_root(one, source.root)
    ]
    if not failed:
        return []
    order = {layer: place for place, layer in enumerate(LAYERS)}
    places = [order.get(str(one["layer"]), len(order)) for one in failed]
    first = min(places)
    roots = [one for one, place in zip(failed, places) if place == first]
    later = [one for one, place in zip(failed, places) if place > first]
    follows = texts(f"{layer_name(one)}: {text(one.get('cause'))}" for one in later)
    return [
        Cause(
            text(one.get("code")) or f"{text(one['layer'])}_failed",
            ERROR,
            text(one.get("cause")) or "The layer failed.",
            layer_name(one),
            text(one.get("evidence")),
            text(one.get("next_step")),
            follows=follows if one is roots[0] else (),
        )
        for one in roots
    ]


def layer_name(layer: Object) -> str:
    """Return the name of a layer, with the runtime or vendor that it is of."""
    subject = text(layer.get("subject"))
    return f"{text(layer['layer'])} ({subject})" if subject else text(layer["layer"])


def _health(source: Source) -> list[Cause]:
    found = []
    for one in sequence(mapping(source.health).get("findings")):
        severity = text(one.get("severity"))
        found.append(
            Cause(
                text(one.get("code")) or "health",
                severity if severity in SEVERITIES else ERROR,
                text(one.get("cause")),
                text(one.get("address")),
                text(one.get("evidence")),
                text(one.get("next_step")),
            )
        )
    return found


def _problems(source: Source) -> list[Cause]:
    """Return the problems in the facts. They are errors where the driver is not loaded."""
    facts = source.facts or {}
    if not facts.get("gpus"):
        return []
    blind = source.layers is None and not _driver_loaded(facts)
    found = [
        Cause(
            text(one.get("code")),
            ERROR if blind else WARNING,
            text(one.get("cause")),
            evidence=text(one.get("evidence")),
            next_step=text(one.get("next_step")),
        )
        for one in sequence(facts.get("problems"))
        if source.root or one.get("code") not in ROOT_ONLY
    ]
    if blind and not found and gpu_vendor(facts["gpus"]) != "none":
        found.append(
            Cause(
                "driver_not_loaded",
                ERROR,
                "No driver is loaded for the GPUs.",
                next_step="Run the playbook site, which installs it where it is asked to.",
                fix=_SITE,
            )
        )
    return found


def _driver_loaded(facts: Mapping[str, Any]) -> bool:
    return bool(mapping(facts.get("driver")).get("loaded") or facts.get("kernel_drivers"))


def _plan(source: Source) -> list[Cause]:
    """Return what the plan refuses, and that site would change the node."""
    steps = sequence(source.plan.get("steps"))
    refused = [one for one in steps if one.get("action") == "refused"]
    changes = [one for one in sequence(source.plan.get("changes")) if "refused" not in text(one)]
    found = []
    for step in refused if not source.failure.get("refused") else ():
        lines = text(step.get("reason")).splitlines() or ["The plan is refused."]
        steps_after = [line[len(_NEXT) :] for line in lines if line.startswith(_NEXT)]
        found.append(
            Cause(
                "plan_refused",
                WARNING,
                lines[0],
                text(step.get("part")),
                "; ".join(line for line in lines[1:] if not line.startswith(_NEXT)),
                " ".join(steps_after) or "Change the variables of this part, then plan again.",
            )
        )
    if changes and not source.applied:
        found.append(
            Cause(
                "plan_differs",
                INFO,
                "The node differs from what its variables ask for.",
                evidence="; ".join(texts(changes)),
                next_step="Run the playbook site, or upgrade where pods use the GPUs.",
                fix=_SITE,
            )
        )
    return found


def _left(source: Source) -> list[Cause]:
    """Return what is left to be done on the node: a reboot, or the restart of a daemon."""
    found = []
    for one in texts(source.left):
        head, _colon, reason = one.partition(": ")
        cause = _LEFT.get(head.partition(" ")[0])
        if cause and reason:
            restart = "Restart the daemon" if cause == "restart_pending" else "Reboot the node"
            found.append(
                Cause(
                    cause,
                    WARNING,
                    f"A {head} is pending: {reason}",
                    next_step=f"{restart} when nothing uses its GPUs; the playbook upgrade does "
                    "it on drained nodes.",
                )
            )
    return found


def remarks(source: Source) -> tuple[str, ...]:
    """Return what is said of a node that needs no action of its own."""
    warnings = sequence(source.plan.get("warnings"))
    left = [one for one in texts(source.left) if one.partition(" ")[0].rstrip(":") not in _LEFT]
    shown = [one for one in texts(warnings) if one.partition(" ")[0].rstrip(":") not in _LEFT]
    problems = {text(one.get("cause")) for one in sequence((source.facts or {}).get("problems"))}
    found = [one for one in dict.fromkeys((*shown, *left)) if one not in problems]
    return (*accepted(source), *found)
