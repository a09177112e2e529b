# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which containers of Docker use GPUs, and what becomes of them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .types import AUTO, NO_POLICY, STOP, Container, Request

Object = Mapping[str, Any]

_GPU_RUNTIME = "nvidia-container-runtime"
_VISIBLE = "NVIDIA_VISIBLE_DEVICES="
# Values with which NVIDIA's runtime gives a container no GPU.
_NONE = ("", "void", "none")
_CDI_VENDOR = "nvidia.com/"
_DEVICE = "/dev/nvidia"
# GPUs can be requested by mounts below it as well.
_AS_VOLUMES = "/var/run/nvidia-container-devices"
_SWARM = "com.docker.swarm.task.id"


def gpu_runtimes(info: Object) -> set[str]:
    """Return the names of NVIDIA's runtimes in the response to ``GET /info``."""
    found = {"nvidia"}
    for name, runtime in (info.get("Runtimes") or {}).items():
        path = str((runtime or {}).get("path") or "")
        if path.rpartition("/")[2].startswith(_GPU_RUNTIME):
            found.add(str(name))
    return found


def read_container(data: Object, runtimes: Collection[str]) -> Container:
    """Return the parts of the response to ``GET /containers/ID/json``.

    :param runtimes: the names of NVIDIA's runtimes.
    """
    config, host, state = (data.get(part) or {} for part in ("Config", "HostConfig", "State"))
    policy = host.get("RestartPolicy") or {}
    stop_timeout = config.get("StopTimeout")
    return Container(
        id=str(data["Id"]),
        name=str(data.get("Name") or data["Id"][:12]).lstrip("/"),
        policy=str(policy.get("Name") or NO_POLICY),
        retries=int(policy.get("MaximumRetryCount") or 0),
        auto_remove=bool(host.get("AutoRemove")),
        swarm=_SWARM in (config.get("Labels") or {}),
        gpu=uses_gpu(data, runtimes),
        started=str(state.get("StartedAt") or ""),
        stop_timeout=stop_timeout if isinstance(stop_timeout, int) else None,
    )


def uses_gpu(data: Object, runtimes: Collection[str]) -> bool:
    """Return whether a container got NVIDIA GPUs.

    Docker records the default runtime as if it were requested, so that with NVIDIA's runtime the
    environment decides, as it does for that runtime.
    """
    config, host = data.get("Config") or {}, data.get("HostConfig") or {}
    if any(_requests_gpu(one) for one in host.get("DeviceRequests") or ()):
        return True
    for device in host.get("Devices") or ():
        if str(device.get("PathOnHost") or "").startswith(_DEVICE):
            return True
    if host.get("Runtime") not in runtimes:
        return False
    visible = [one for one in config.get("Env") or () if one.startswith(_VISIBLE)]
    # Of several, the last one counts.
    if visible and visible[-1][len(_VISIBLE) :] not in _NONE:
        return True
    mounts = data.get("Mounts") or ()
    return any(str(one.get("Destination") or "").startswith(_AS_VOLUMES) for one in mounts)


def _requests_gpu(request: Object) -> bool:
    if request.get("Driver") == "nvidia":
        return True
    if any("gpu" in (group or ()) for group in request.get("Capabilities") or ()):
        return True
    return any(str(one).startswith(_CDI_VENDOR) for one in request.get("DeviceIDs") or ())


def divide(
    containers: Sequence[Container], request: Request, recorded: Collection[str] = ()
) -> tuple[list[Container], list[Container], list[Finding]]:
    """Return the containers to stop, those that may finish, and why the host is refused.

    :param recorded: IDs of those that a run began to stop; they may have lost their policy already.
    """
    stop, wait, findings = [], [], []
    for one in containers:
        if not one.gpu and request.pods != "all":
            continue
        if one.swarm:
            findings.append(
                Finding(
                    "swarm_task",
                    f"The container {one.name} belongs to a Swarm service, which would create "
                    "another one in its place.",
                    "",
                    "Drain the node in the Swarm first: docker node update --availability drain.",
                )
            )
        elif one.id in recorded or _may_stop(one, request):
            stop.append(one)
        else:
            wait.append(one)
    # The one that was started last may need the others.
    return sorted(stop, key=lambda one: one.started, reverse=True), wait, findings


def _may_stop(container: Container, request: Request) -> bool:
    if container.auto_remove:
        # Nobody can start it again.
        return request.unmanaged == "delete"
    if request.containers == AUTO:
        return container.policy != NO_POLICY
    return request.containers == STOP
