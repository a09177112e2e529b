# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the monitoring of a cluster from options and existing objects. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import KubegpuError, Refusal
from .._device_plugin.objects import (
    SHARED_KINDS,
    identity,
    is_managed,
    is_taken,
    is_unmanaged,
    taken,
)
from .._device_plugin.plan import refusal_text
from .._exporter.options import PREFIX
from .._kube.differing_options import differing_options
from .._kube.selinux import DEVICE_PLUGIN, with_types
from .manifests import manifests
from .metrics import metric_names
from .names import MONITORING_API, NAME, POD_MONITOR, PROMETHEUS_RULE, SERVICE_MONITOR
from .options import read_request
from .rules import silent
from .types import ANNOTATIONS, AUTO, NONE, SCRAPES, Request


def plan(
    options: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    kinds: Sequence[str] = (),
    existing: Sequence[Mapping[str, Any]] = (),
    others: Sequence[str] = (),
    teardown: bool = False,
) -> dict[str, Any]:
    """Return the objects to apply and to remove, and the files for a Prometheus of its own.

    :param options: the options of :func:`read_request`.
    :param hosts: by name: ``options`` (a host's own view of the options, which has to be the same)
        and ``gpu_node`` (the facts).
    :param kinds: kinds of the Prometheus operator's API that the cluster has.
    :param existing: objects of this role's names that exist.
    :param others: descriptions of exporters that this collection does not manage.
    :param teardown: whether everything is removed.
    """
    refusals: list[KubegpuError] = [*differing_options(hosts or {}, PREFIX, "the exporter", "")]
    result: dict[str, Any] = {
        "objects": [],
        "absent": [],
        "earlier": [],
        "counters": "",
        "rules": {},
        "dashboard": {},
        "scrape": NONE,
        "others": [str(one) for one in others],
    }
    try:
        request = read_request(options)
    except KubegpuError as error:
        return _result("refuse", result, [*refusals, error], [], [])
    result["counters"] = request.counters_text
    result["rules"] = request.rules_document
    result["dashboard"] = request.dashboard_document
    warnings = [
        f"the alert {one} cannot fire, because gpu_monitoring_counters does not collect its metric"
        for one in silent(request.alert_rules, metric_names(request.collected))
    ]
    if teardown:
        result["absent"] = _absent(existing, [], request.namespace)
        return _result("apply", result, [], [], [])
    if others:
        # A second one would count each GPU twice.
        reason = f"the cluster has {', '.join(result['others'])}, which is left alone"
        return _result("leave", result, refusals, warnings, [reason])
    scrape, reasons = _scrape(request, kinds)
    if scrape in SCRAPES.values() and scrape not in kinds:
        refusals.append(_no_monitor(request, scrape))
    with_rules, reason = _with_rules(request, kinds)
    reasons += [reason] if reason else []
    wanted = with_types(
        manifests(request, scrape, with_rules), {NAME: DEVICE_PLUGIN}, hosts or {}, existing
    )
    objects, more = _select_objects(request, wanted, existing)
    return _result(
        "apply", {**result, "scrape": scrape, **objects}, [*refusals, *more], warnings, reasons
    )


def _select_objects(
    request: Request, wanted: Sequence[dict[str, Any]], existing: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], list[Refusal]]:
    """Return the objects to apply and to remove, and refusals of those that others made."""
    seen = {identity(item): item for item in existing}
    absent = _absent(existing, wanted, request.namespace)
    places = {item["metadata"].get("namespace", request.namespace) for item in absent}
    selected = {
        "objects": [item for item in wanted if not is_unmanaged(item, seen)],
        "absent": absent,
        "earlier": sorted(places - {request.namespace}),
    }
    return selected, [taken(item, PREFIX) for item in wanted if is_taken(item, seen)]


def _result(
    action: str,
    result: Mapping[str, Any],
    refusals: Sequence[KubegpuError],
    warnings: Sequence[str],
    reasons: Sequence[str],
) -> dict[str, Any]:
    rows = [
        {"host": "", "cause": one.cause, "evidence": one.evidence, "next_step": one.next_step}
        for one in refusals
    ]
    emptied: dict[str, Any] = {"objects": [], "absent": [], "earlier": []} if rows else {}
    return {
        "action": "refuse" if rows else action,
        **result,
        **emptied,
        "refusals": rows,
        "text": "\n\n".join(refusal_text(row) for row in rows),
        "warnings": list(warnings),
        "reasons": list(reasons),
    }


def _scrape(request: Request, kinds: Sequence[str]) -> tuple[str, list[str]]:
    """Return how Prometheus finds the pods, and why."""
    if request.scrape != AUTO:
        return SCRAPES.get(request.scrape, request.scrape), [f"{PREFIX}scrape is {request.scrape}"]
    for kind in (SERVICE_MONITOR, POD_MONITOR):
        if kind in kinds:
            return kind, [f"{kind}: the cluster has {MONITORING_API}"]
    return ANNOTATIONS, [f"annotations of the pods: the cluster has no {MONITORING_API}"]


def _with_rules(request: Request, kinds: Sequence[str]) -> tuple[bool, str]:
    if not request.rules:
        return False, f"no alert rules: {PREFIX}rules is false"
    if PROMETHEUS_RULE in kinds:
        return True, ""
    return False, (
        f"no alert rules in the cluster: it has no {PROMETHEUS_RULE}; "
        "gpu_monitoring_plan.rules has them for Prometheus' own files"
    )


def _no_monitor(request: Request, kind: str) -> Refusal:
    return Refusal(
        f"{PREFIX}scrape is {request.scrape}, and the cluster has no {kind}",
        f"Install the Prometheus operator's definitions ({MONITORING_API}), or set "
        f"{PREFIX}scrape: annotations.",
    )


def _absent(
    existing: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]], namespace: str
) -> list[dict[str, Any]]:
    """Return the managed objects that must not exist. The namespace is the device plugin's too.

    :param namespace: that of the request. By its DaemonSet a run that is started again finds
        another one, so that it goes last there.
    """
    keep = {identity(item) for item in wanted}
    found = [
        {
            "apiVersion": item["apiVersion"],
            "kind": item["kind"],
            "metadata": {
                key: item["metadata"][key]
                for key in ("name", "namespace")
                if key in item["metadata"]
            },
        }
        for item in existing
        if item["kind"] not in SHARED_KINDS and is_managed(item) and identity(item) not in keep
    ]
    return sorted(
        found,
        key=lambda item: item["kind"] == "DaemonSet" and item["metadata"]["namespace"] != namespace,
    )
