# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a pod does not run, from its status, events and log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._core.finding import Finding, pod_names, with_names
from .._core.printable import printable
from .._core.redact import redact
from .._known_faults.explain import explain
from .._kube.timestamp import unix_time

Object = Mapping[str, Any]

#: Reasons of a waiting container whose image cannot be pulled.
_PULL = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ErrImageNeverPull",
         "InvalidImageName", "ImageInspectError")  # fmt: skip
#: Reasons of a container that starts normally.
_FINE = ("", "ContainerCreating", "PodInitializing")
_LAST_LINES = 10
_LONGEST = 600
# A container that ran for no more seconds wrote its message at its start: kubelet's CPU manager
# changes the containers of a node each 10 s.
_AT_ONCE = 5


@dataclass(frozen=True)
class PodView:
    """The data of a pod that explain why it does not run."""

    namespace: str
    name: str
    node: str
    phase: str
    ready: bool
    restarts: int
    runtime_class: str
    #: The container with the problem, and why it waits or terminated.
    container: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    #: The pod's reason and message, for example of an eviction.
    pod_reason: str = ""
    pod_message: str = ""
    unschedulable: str = ""
    labels: Mapping[str, str] | None = None
    #: ``Reason: message``, the newest last.
    events: tuple[str, ...] = ()
    log: str = ""
    #: How many seconds the run of the container took that ended; None where none ended.
    ran: float | None = None

    @property
    def seen(self) -> dict[str, bool]:
        """What is known of the text, by the name of a predicate.

        Of a container that ran for long, nothing shows when it wrote the message.
        """
        return {"just_started": True} if self.ran is not None and self.ran <= _AT_ONCE else {}

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def text(self) -> str:
        """Log, messages and events in one text, for the rules of known errors."""
        return "\n".join(
            part for part in (self.log, self.message, *self.events, self._ended) if part
        )

    @property
    def _ended(self) -> str:
        return ": ".join(part for part in (self.pod_reason, self.pod_message) if part)

    def last_lines(self, count: int = _LAST_LINES) -> list[str]:
        """Return the last lines of the log, without control characters."""
        return [line for line in printable(self.log).split("\n") if line.strip()][-count:]

    def to_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "name": self.name,
            "node": self.node or None,
            "phase": self.phase,
            "ready": self.ready,
            "restarts": self.restarts,
            "runtime_class": self.runtime_class or None,
            "reason": self.reason or self.pod_reason or None,
            "message": shorten(self.message or self.pod_message) or None,
            "log": self.last_lines(),
        }


def pod_view(pod: Object) -> PodView:
    """Return the view of a Pod object, without log and events."""
    meta, spec, status = (pod.get(part) or {} for part in ("metadata", "spec", "status"))
    conditions = {item.get("type"): item for item in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled") or {}
    containers = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    name, reason, message, code, ran = _most_relevant(containers)
    return PodView(
        namespace=str(meta.get("namespace") or ""),
        name=str(meta.get("name") or ""),
        node=str(spec.get("nodeName") or ""),
        phase=str(status.get("phase") or ""),
        ready=(conditions.get("Ready") or {}).get("status") == "True",
        restarts=sum(int(item.get("restartCount") or 0) for item in containers),
        runtime_class=str(spec.get("runtimeClassName") or ""),
        container=name,
        reason=reason,
        message=message,
        exit_code=code,
        pod_reason=str(status.get("reason") or ""),
        pod_message=str(status.get("message") or ""),
        unschedulable=(
            str(scheduled.get("message") or scheduled.get("reason") or "")
            if scheduled.get("status") == "False"
            else ""
        ),
        labels=dict(meta.get("labels") or {}),
        ran=ran,
    )


def _most_relevant(
    containers: Sequence[Object],
) -> tuple[str, str, str, int | None, float | None]:
    """Return the container that explains most.

    :returns: name, reason, message, exit code, and how long the run took that ended.
    """
    ended: tuple[str, str, str, int | None, float | None] = ("", "", "", None, None)
    for item in containers:
        state, last = item.get("state") or {}, item.get("lastState") or {}
        waiting = state.get("waiting") or {}
        before = last.get("terminated") or {}
        if waiting and waiting.get("reason") not in _FINE:
            words = [waiting.get("message"), before.get("message")]
            return (
                str(item.get("name")),
                str(waiting.get("reason") or ""),
                "\n".join(str(word) for word in words if word),
                before.get("exitCode"),
                _duration(before),
            )
        over = state.get("terminated") or before
        if over and (over.get("exitCode") or not ended[0]):
            ended = (
                str(item.get("name")),
                str(over.get("reason") or ""),
                str(over.get("message") or ""),
                over.get("exitCode"),
                _duration(over),
            )
    return ended


def _duration(terminated: Object) -> float | None:
    """Return how many seconds a container ran, by the times of its state."""
    began, ended = (unix_time(terminated.get(key)) for key in ("startedAt", "finishedAt"))
    # A container that could not be created has the beginning of 1970, or none.
    return ended - began if began and ended and ended >= began else None


def add_events(view: PodView, events: Iterable[Object]) -> PodView:
    """Return the view with the messages of warning events.

    Scheduling failures of a pod that has a node are obsolete and omitted.
    """
    warnings = sorted(
        (
            item
            for item in events
            if item.get("type") != "Normal"
            and not (view.node and item.get("reason") == "FailedScheduling")
        ),
        key=lambda item: str(
            item.get("lastTimestamp") or item.get("eventTime")
            or (item.get("metadata") or {}).get("creationTimestamp") or ""
        ),
    )  # fmt: skip
    messages = [f"{item.get('reason')}: {item.get('message')}" for item in warnings]
    return replace(view, events=tuple(dict.fromkeys(messages)))


def is_final(view: PodView) -> bool:
    """Return whether this pod will not change its state by itself."""
    return view.phase in ("Succeeded", "Failed") or view.reason in (
        "ErrImageNeverPull", "InvalidImageName", "ImagePullBackOff",
        "CreateContainerError", "RunContainerError", "CrashLoopBackOff", "StartError",
    )  # fmt: skip


def find_pod_problem(
    view: PodView, facts: Object | None = None, seen: Mapping[str, bool] | None = None
) -> Finding | None:
    """Return why a pod that has a node does not run there; None if there is no evidence.

    :param facts: what is known of its node, as a part of the fact ``gpu_node``.
    :param seen: what is known of the pod, by the name of a predicate.
    """
    known = explain(view.text, facts, seen={**view.seen, **(seen or {})})
    if known:
        return known[0]
    last = view.events[-1] if view.events else ""
    if view.reason in _PULL:
        return Finding(
            "image_pull_failed",
            f"The image of container {view.container} cannot be had on {view.node}.",
            shorten(view.message or last),
            "Check the image's name and tag, that the node reaches the registry (proxy, mirror), "
            "and the pull secret.",
        )
    if view.reason == "CreateContainerConfigError":
        return Finding(
            "container_config",
            f"The container {view.container} needs a ConfigMap or Secret that is not there.",
            shorten(view.message),
            "Create what the message names, and run it again.",
        )
    if view.reason == "OOMKilled":
        return Finding(
            "out_of_memory",
            f"The container {view.container} ended for want of memory.",
            shorten(view.message or f"exit code {view.exit_code}"),
            "Raise its memory limit.",
        )
    if view.pod_reason or view.phase == "Failed" or view.exit_code:
        return with_names(
            "pod_failed",
            _termination_text(view),
            shorten(view.pod_message or view.message or _last_line(view)),
            "Check: kubectl -n {namespace} describe pod {name}",
            pod_names(view.namespace, view.name),
        )
    if view.reason not in _FINE or view.events:
        return with_names(
            "pod_waits",
            f"The pod {view.full_name} does not start on {view.node or 'any node'}"
            f"{f' ({view.reason})' if view.reason else ''}.",
            shorten(last or view.message),
            "Check: kubectl -n {namespace} describe pod {name}; and kubelet's and the container "
            "runtime's journal on that node.",
            pod_names(view.namespace, view.name),
        )
    return None


def _termination_text(view: PodView) -> str:
    if view.pod_reason:
        return f"The pod {view.full_name} was ended on {view.node}: {view.pod_reason}."
    return (
        f"The container {view.container} of {view.full_name} ended with exit code "
        f"{view.exit_code}{f' ({view.reason})' if view.reason not in ('', 'Error') else ''}."
    )


def _last_line(view: PodView) -> str:
    lines = view.last_lines(1)
    return lines[0] if lines else ""


def shorten(text: str) -> str:
    # Redacted before it is cut: half an address does not show its password.
    text = printable(redact(" ".join(text.split())))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
