# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the layer ``runtime``: container runtimes and their test containers. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._core.finding import Finding
from .._host.command import TIMED_OUT, Result
from .._known_faults.answers import has_no_smi
from .._known_faults.common import NO_RUNTIME
from .._known_faults.explain import explain_one
from .evidence import (
    LISTED_GPU,
    count_of,
    failed,
    from_finding,
    own_gpus,
    shorten,
    untried,
    works,
)
from .types import RUNTIME, ContainerRun, LayerResult, Request, RuntimeState, State

# Codes of container failures that the driver's own layers report.
_OF_THE_DRIVER = frozenset(
    {
        "driver_libraries_missing",
        "driver_library_mismatch",
        "driver_not_loaded",
        "gpu_unsupported",
        "no_devices",
        "nvml_failed",
    }
)
#: A container of a test has lost nothing since it started.
_SEEN = {"just_started": True}
# Codes of problems in the facts that are failures of a runtime.
_CONFIG_PROBLEMS = {
    "containerd": ("containerd_config_invalid", "cri_disabled"),
    "docker": ("docker_config_invalid",),
    "crio": ("crio_config_invalid",),
}


def judge_runtimes(
    node: Mapping[str, Any], state: State, request: Request, driver_ok: bool, toolkit: LayerResult
) -> list[LayerResult]:
    if not state.runtimes:
        return [from_finding(RUNTIME, NO_RUNTIME)]
    return [
        _judge_runtime(node, runtime, request, driver_ok, toolkit) for runtime in state.runtimes
    ]


def _judge_runtime(
    node: Mapping[str, Any],
    runtime: RuntimeState,
    request: Request,
    driver_ok: bool,
    toolkit: LayerResult,
) -> LayerResult:
    name, handler = runtime.name, runtime.handler
    if runtime.idle:
        return untried(RUNTIME, "idle", runtime.idle, subject=name)
    for problem in node["problems"]:
        if problem["code"] in _CONFIG_PROBLEMS.get(name, ()):
            fields = {key: problem[key] for key in ("code", "cause", "evidence", "next_step")}
            return failed(RUNTIME, **fields, subject=name)
    if runtime.fault is not None:
        return from_finding(RUNTIME, runtime.fault, subject=name)
    if runtime.listed is False and runtime.recorded:
        return _lost(runtime)
    if runtime.listed is False:
        return failed(
            RUNTIME,
            "handler_missing",
            f"{name} knows no handler {handler}.",
            f"{runtime.source} names {', '.join(runtime.handlers) or 'none'}",
            "Run kubegpu.nodes.site for this node: role nvidia_container_toolkit adds it, and "
            "restarts the runtime if necessary.",
            subject=name,
        )
    if name in request.default and runtime.default != handler:
        return _not_default(runtime)
    results = [
        _container(node, runtime, container, driver_ok, toolkit) for container in runtime.containers
    ]
    worst = next((one for one in results if one.ok is False), None) or next(
        (one for one in results if one.ok is None), None
    )
    if worst is not None:
        return worst
    listed = f"{runtime.source} names the handler {handler}" if runtime.listed else runtime.source
    proofs = [one.proof for one in results]
    if not proofs:
        listed += "; no container was started"
    return works(RUNTIME, "; ".join(filter(None, (listed, *proofs))), subject=name)


def _lost(runtime: RuntimeState) -> LayerResult:
    files = " and ".join(runtime.recorded)
    return failed(
        RUNTIME,
        "runtime_lost",
        f"{runtime.name} does not know the handler {runtime.handler} any more: this collection has "
        "configured it, and it was removed since.",
        f"{runtime.source} names {', '.join(runtime.handlers) or 'none'}; the record on the node "
        f"has it in {files}",
        f"See who wrote {files} since (a package, the distribution's start, another tool), and run "
        "kubegpu.nodes.site for this node: role nvidia_container_toolkit adds it again.",
        subject=runtime.name,
    )


def _not_default(runtime: RuntimeState) -> LayerResult:
    name, handler = runtime.name, runtime.handler
    step = f"Make {handler} the default (nvidia_container_toolkit_{name}_set_default: true)"
    if name == "docker":
        who = "containers that are started without --gpus or --runtime get no GPU."
        step += f", or start containers with --gpus or --runtime={handler}."
    else:
        who = "pods that name no RuntimeClass get no GPU, including the device plugin."
        step += f", or give the device plugin runtimeClassName: {handler}."
    return failed(
        RUNTIME,
        "not_default",
        f"{name}'s default is {runtime.default or 'runc'}, not {handler}: {who}",
        f"{runtime.source}: default {runtime.default or 'not set, which is runc'}",
        step,
        subject=name,
    )


def _container(
    node: Mapping[str, Any],
    runtime: RuntimeState,
    container: ContainerRun,
    driver_ok: bool,
    toolkit: LayerResult,
) -> LayerResult:
    if container.skipped is not None:
        ok = None if container.skipped.code in ("check_mode", "not_asked") else False
        return from_finding(RUNTIME, container.skipped, ok=ok, subject=runtime.name)
    result = container.result
    if result is None:
        return untried(RUNTIME, "not_asked", "No container was started.", subject=runtime.name)
    finding = _container_fault(node, container, result)
    if runtime.pending and finding and finding.code == "docker_no_gpu_driver":
        # The diagnosis, which starts no container, has the same cause.
        finding = replace(runtime.pending, evidence=finding.evidence)
    if finding is None:
        command = " ".join(container.command)
        proof = (
            f"{container.method} ran {command!r} in {container.subject}"
            if command
            else container.method
        )
        if container.counts_gpus:
            proof += f": {count_of(len(LISTED_GPU.findall(result.stdout)), 'GPU')}"
            proof += "" if container.devices == "all" else f" of {container.devices}"
        elif container.expect:
            proof += f": said {container.expect!r}"
        return works(RUNTIME, proof, subject=runtime.name)
    if not driver_ok and finding.code in _OF_THE_DRIVER:
        return untried(
            RUNTIME,
            "needs_driver",
            "The container waits for the driver, whose own layers failed.",
            finding.evidence,
            subject=runtime.name,
        )
    if toolkit.ok is False and finding.code in ("container_failed", "runtime_missing"):
        return untried(
            RUNTIME,
            "needs_toolkit",
            "The container waits for the container toolkit, whose own layer failed.",
            finding.evidence,
            subject=runtime.name,
        )
    return from_finding(RUNTIME, finding, subject=runtime.name)


def _container_fault(
    node: Mapping[str, Any], container: ContainerRun, result: Result
) -> Finding | None:
    """Return why a container failed; None if it did not."""
    text = "\n".join(part for part in (result.stderr.strip(), result.stdout.strip()) if part)
    if result.rc == TIMED_OUT:
        otherwise = Finding(
            "timed_out",
            f"{container.method} did not end in time.",
            shorten(text),
            "Raise the time limit (timeout); check that nvidia-smi answers on the node, and check "
            "the journal of the runtime.",
        )
        return explain_one(text, otherwise, node, _SEEN)
    if not result.ok and container.counts_gpus and container.bare and has_no_smi(text):
        return Finding(
            "nothing_injected",
            f"{container.method} started a container, but the toolkit added no files of the "
            "driver to it.",
            shorten(text),
            "Check nvidia-container-runtime.mode in /etc/nvidia-container-runtime/config.toml, "
            "at what the handler's program is, and whether nvidia-container-cli list names "
            "nvidia-smi.",
        )
    if not result.ok:
        otherwise = Finding(
            "container_failed",
            f"{container.method} failed (exit status {result.rc}).",
            shorten(text),
            f"Start such a container on the node as root ({container.manual}), and see "
            "journalctl --unit containerd (or docker, crio) there.",
        )
        return explain_one(text, otherwise, node, _SEEN)
    return _wrong_output(node, container, result.stdout, text)


def _wrong_output(
    node: Mapping[str, Any], container: ContainerRun, output: str, text: str
) -> Finding | None:
    """Return what is wrong with the output of a container that exited with 0.

    :param output: its standard output.
    :param text: all of its output, for the evidence.
    """
    if container.counts_gpus:
        expected = _expected_gpus(node, container.devices)
        found = len(LISTED_GPU.findall(output))
        if found != expected:
            return Finding(
                "gpu_count_in_container",
                f"A container that was given {container.devices} sees {count_of(found, 'GPU')}, "
                f"and should see {expected}.",
                shorten(text),
                "Compare nvidia-smi -L on the node with nvidia-ctk cdi list, and check the "
                "toolkit's config.toml.",
            )
    if container.expect and not re.search(container.expect, output, re.MULTILINE):
        otherwise = Finding(
            "not_as_expected",
            f"The container ran, but did not say {container.expect!r}.",
            shorten(text) or "it said nothing",
            "Check what the command does in the image, and correct expect or command.",
        )
        return explain_one(text, otherwise, node, _SEEN)
    return None


def _expected_gpus(node: Mapping[str, Any], devices: str) -> int:
    if devices == "all":
        nvml = node["nvml"]
        return len(nvml["devices"]) if nvml else len(own_gpus(node))
    return len(devices.split(","))
