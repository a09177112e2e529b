# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the GPU requests of a pod: those that the API server rejects, and common mistakes. Pure.

Sources: Kubernetes' pages on device plugins and extended resources, and the resource names
of the plugins of NVIDIA, AMD and Intel; gathered 2026-11-21.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from .._core.errors import InputError, KubegpuError
from .._core.names import most_similar
from .quantity import parse_quantity

ERROR = "error"
WARNING = "warning"

_COMMON = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
_VENDORS = ("nvidia", "amd", "intel")
_GPU_NAMES = (
    re.compile(r"nvidia\.com/gpu(?:\.shared)?\Z"),
    # Profiles without media engines end with -me (RTX PRO 6000); they are separate resources
    # from the plugin's v0.20 on (k8s-device-plugin #1807, internal/rm/rm.go).
    re.compile(r"nvidia\.com/mig-\d{1,2}(?:c\.\d{1,2})?g\.\d{1,3}gb(?:\.me(?:\.all)?|-me|\.gfx)?"
               r"(?:\.shared)?\Z"),
    re.compile(r"amd\.com/gpu\Z|amd\.com/[a-z0-9]+_[a-z0-9]+\Z"),
    # monitoring came with 0.36, where i915_monitoring and xe_monitoring are deprecated
    # (intel-device-plugins-for-kubernetes, cmd/gpu_plugin/README.md).
    re.compile(r"gpu\.intel\.com/(?:(?:i915|xe)(?:-shared-dev-num|_monitoring)?|monitoring)\Z"),
    re.compile(r"gpu\.intel\.com/(?:millicores|memory\.max|tiles)\Z"),
)  # fmt: skip
# Names of HAMi, which its scheduler and webhook read. A node does not report all of them
# (github.com/Project-HAMi/HAMi README; issue 302). They are requested with nvidia.com/gpu.
_HAMI = re.compile(r"nvidia\.com/(?:gpumem(?:-percentage)?|gpucores|priority)\Z")
_OLD_NAME = "alpha.kubernetes.io/nvidia-gpu"
_LOOKS_LIKE_GPU = re.compile(r"gpu|nvidia|cuda|\bmig\b|\bamd\b|radeon|i915", re.IGNORECASE)
_ORDINARY = re.compile(r"(?:cpu|memory|storage|ephemeral-storage|hugepages-.+)\Z")
_VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def check(
    manifest: Mapping[str, Any], resources: Sequence[str] = (), required: bool = False
) -> list[dict[str, Any]]:
    """Return the problems of a pod's GPU requests.

    :param manifest: a Pod, an object with a pod template (Deployment, Job, CronJob, ...), a List
        of these, or the ``spec`` of a pod.
    :param resources: further names of GPU resources, as of sharing or renaming.
    :param required: whether a pod without any GPU request is a problem.
    :raises InputError: the manifest has no pod.
    """
    found: list[dict[str, Any]] = []
    for name, spec in _pods(manifest):
        problems = list(_check_pod(spec, frozenset(resources)))
        if required and not problems and not _asked(spec, frozenset(resources)):
            problems.append(
                _problem(
                    "no_gpu",
                    "",
                    "",
                    "No container asks for a GPU.",
                    "Give one of them limits: {nvidia.com/gpu: 1}.",
                )
            )
        found.extend({"pod": name, **problem} for problem in problems)
    return found


def _pods(manifest: Any, name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name of the manifest and the spec of each pod in it."""
    if not isinstance(manifest, Mapping):
        raise InputError(
            f"{manifest!r} is not a manifest.", next_step="Give one as a mapping (from_yaml)."
        )
    metadata = manifest.get("metadata")
    name = str((metadata or {}).get("name") or (metadata or {}).get("generateName") or name)
    if isinstance(manifest.get("containers"), Sequence):
        yield name, manifest
        return
    items = manifest.get("items")
    if isinstance(items, Sequence) and not isinstance(items, str):
        for item in items:
            yield from _pods(item, name)
        return
    for key in ("spec", "template", "jobTemplate"):
        inner = manifest.get(key)
        if isinstance(inner, Mapping) and _has_pod(inner):
            yield from _pods({"metadata": {"name": name}, **_without_metadata(inner)}, name)
            return
    raise InputError(
        f"There is no pod in the {manifest.get('kind') or 'manifest'} {name}".rstrip() + ".",
        next_step="Give a Pod, something with a pod template (Deployment, Job, ...), or a pod's "
        "spec.",
    )


def _without_metadata(inner: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in inner.items() if key != "metadata"}


def _has_pod(inner: Mapping[str, Any]) -> bool:
    return any(key in inner for key in ("containers", "template", "jobTemplate", "spec"))


def _check_pod(spec: Mapping[str, Any], more: frozenset[str]) -> Iterator[dict[str, Any]]:
    level = _mapping(spec.get("resources"))
    for part in ("limits", "requests"):
        for resource in _mapping(level.get(part)):
            if _is_gpu(str(resource), more) or _LOOKS_LIKE_GPU.search(str(resource)):
                yield _problem(
                    "gpu_at_pod_level",
                    "",
                    str(resource),
                    f"{resource} is in the resources of the whole pod, where only cpu, memory "
                    "and hugepages may.",
                    "Move it into the limits of the container that uses the GPU.",
                )
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            yield from _check_container(_mapping(container), kind, more)


def _check_container(
    container: Mapping[str, Any], kind: str, more: frozenset[str]
) -> Iterator[dict[str, Any]]:
    name = str(container.get("name") or "")
    place = f"{kind}[{name}]"
    resources = _mapping(container.get("resources"))
    limits, requests = (
        {str(key): value for key, value in _mapping(resources.get(part)).items()}
        for part in ("limits", "requests")
    )
    gpus = []
    for resource in dict.fromkeys((*limits, *requests)):
        if _is_gpu(resource, more):
            gpus.append(resource)
            if kind == "ephemeralContainers":
                yield _problem(
                    "gpu_in_ephemeral_container",
                    place,
                    resource,
                    f"{place} asks for {resource}, but an ephemeral container may have no "
                    "resources.",
                    "Use a container of the pod itself.",
                )
            else:
                yield from _check_amount(place, resource, limits, requests)
        else:
            wrong = _wrong_name(place, resource, more)
            if wrong:
                yield wrong
    yield from _check_environment(container, place, gpus)


def _check_amount(
    place: str, resource: str, limits: Mapping[str, Any], requests: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    amounts = {}
    for part, given in (("limits", limits), ("requests", requests)):
        if resource not in given:
            continue
        amount = _quantity(given[resource])
        amounts[part] = amount
        if amount is None:
            yield _problem(
                "not_a_quantity",
                place,
                resource,
                f"{place}: {part} of {resource} is {given[resource]!r}, which is not a quantity.",
                "Write a whole number.",
            )
        elif amount < 0 or amount.denominator != 1:
            yield _problem(
                "not_a_whole_number",
                place,
                resource,
                f"{place}: {part} of {resource} is {given[resource]}, but GPUs are given as whole "
                "ones.",
                "Write a whole number; several pods share a card by time-slicing, MPS or MIG "
                "(variables of the role nvidia_device_plugin), not by fractions.",
            )
    if resource not in limits:
        yield _problem(
            "requests_alone",
            place,
            resource,
            f"{place} has {resource} in requests alone, which the API server refuses (Limit must "
            "be set for non overcommitable resources).",
            f"Write limits: {{{resource}: {requests[resource]}}}; requests may be left out.",
        )
    elif resource in requests and amounts["limits"] != amounts["requests"]:
        yield _problem(
            "request_differs",
            place,
            resource,
            f"{place}: requests ({requests[resource]}) and limits ({limits[resource]}) of "
            f"{resource} differ, which the API server refuses.",
            "Leave requests out, or make them equal.",
        )
    elif amounts["limits"] == 0:
        yield _problem(
            "zero",
            place,
            resource,
            f"{place} asks for no {resource} (0): it still sees every GPU of its node where its "
            f"image sets {_VISIBLE}=all and the nvidia runtime is the default.",
            f"Ask for one, or leave it out and set {_VISIBLE}=void.",
            WARNING,
        )


def _check_environment(
    container: Mapping[str, Any], place: str, gpus: Sequence[str]
) -> Iterator[dict[str, Any]]:
    for variable in container.get("env") or ():
        one = _mapping(variable)
        if one.get("name") != _VISIBLE or one.get("value") in ("void", "none", "", None):
            continue
        what = "in addition to what it asks for" if gpus else "without asking for a GPU"
        yield _problem(
            "visible_devices",
            place,
            "",
            f"{place} sets {_VISIBLE}={one.get('value')} {what}: it takes GPUs that the scheduler "
            "gives to other pods.",
            f"Take {_VISIBLE} out of env and ask in limits: {{nvidia.com/gpu: 1}}.",
            WARNING,
        )


def _wrong_name(place: str, resource: str, more: frozenset[str]) -> dict[str, Any] | None:
    if _ORDINARY.match(resource) or not _LOOKS_LIKE_GPU.search(resource):
        return None
    known = (*_COMMON, *sorted(more))
    if resource == _OLD_NAME:
        return _problem(
            "wrong_name",
            place,
            resource,
            f"{place}: {resource} is the name of before Kubernetes 1.10; no plugin offers it.",
            "Write nvidia.com/gpu.",
        )
    if _HAMI.match(resource):
        return _problem(
            "wrong_name",
            place,
            resource,
            f"{place}: {resource} is a resource of HAMi; no other device plugin offers it, and "
            "without HAMi a pod with it remains Pending.",
            "Check that HAMi runs in the cluster (its scheduler and device plugin). If it does, "
            f"name {resource} in resources; otherwise leave it out.",
            WARNING,
        )
    lower = resource.lower()
    vendor = next(
        (name for name in known for word in _VENDORS if word in lower and word in name), None
    )
    guess = most_similar(lower, known, 0.5) or vendor or known[0]
    if lower.startswith("nvidia.com/mig"):
        guess = "nvidia.com/mig-1g.5gb (of the profiles that nvidia-smi mig -lgip lists)"
    return _problem(
        "wrong_name",
        place,
        resource,
        f"{place}: {resource} is not a GPU resource of a known device plugin; a pod with it "
        "remains Pending, or is refused where the name has no domain.",
        f"Write {guess}; for a name of your own (resource renaming), name it in resources.",
    )


def _asked(spec: Mapping[str, Any], more: frozenset[str]) -> bool:
    return any(
        _is_gpu(str(resource), more)
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
        for resource in _mapping(_mapping(_mapping(container).get("resources")).get("limits"))
    )


def _is_gpu(resource: str, more: frozenset[str]) -> bool:
    return resource in more or any(name.match(resource) for name in _GPU_NAMES)


def _quantity(value: Any) -> Fraction | None:
    """Return a quantity as a number, or None where it is not one."""
    try:
        return parse_quantity(value)
    except KubegpuError:
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _problem(
    code: str, container: str, resource: str, cause: str, next_step: str, severity: str = ERROR
) -> dict[str, Any]:
    return {
        "severity": severity,
        "code": code,
        "container": container,
        "resource": resource,
        "cause": cause,
        "next_step": next_step,
    }
