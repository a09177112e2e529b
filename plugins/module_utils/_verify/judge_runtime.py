# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the layer runtime: the container runtimes of a node, and the containers in them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._core.finding import Finding
from .._diagnosis.known_errors import explain_one
from .._host.command import TIMED_OUT, Result
from .evidence import LISTED_GPU, end_of, number, of_finding, own_gpus
from .types import RUNTIME, Engine, Seen, Trial, Verdict, Wish

# A container that fails for one of these says the same as the driver's own layers.
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
# Problems of the facts that are a failure of a runtime.
_CONFIG_PROBLEMS = {
    "containerd": ("containerd_config_invalid", "cri_disabled"),
    "docker": ("docker_config_invalid",),
    "crio": ("crio_config_invalid",),
}
_NO_SMI = re.compile(r"nvidia-smi\W*: (?:executable file not found|no such file)")


def judge_runtimes(
    node: Mapping[str, Any], seen: Seen, wish: Wish, driver_works: bool, toolkit: Verdict
) -> list[Verdict]:
    if not seen.engines:
        return [
            Verdict(
                RUNTIME,
                False,
                "no_container_runtime",
                "No container runtime is on this node.",
                "neither containerd, dockerd nor crio was found",
                "Install containerd, CRI-O or Docker (this collection never does), then run again.",
            )
        ]
    return [_engine(node, engine, wish, driver_works, toolkit) for engine in seen.engines]


def _engine(
    node: Mapping[str, Any], engine: Engine, wish: Wish, driver_works: bool, toolkit: Verdict
) -> Verdict:
    name, handler = engine.name, engine.handler
    if engine.idle:
        return Verdict(RUNTIME, None, "idle", engine.idle, subject=name)
    for problem in node["problems"]:
        if problem["code"] in _CONFIG_PROBLEMS.get(name, ()):
            fields = {key: problem[key] for key in ("code", "cause", "evidence", "next_step")}
            return Verdict(RUNTIME, False, **fields, subject=name)
    if engine.fault is not None:
        return of_finding(RUNTIME, engine.fault, subject=name)
    if engine.listed is False:
        return Verdict(
            RUNTIME,
            False,
            "handler_missing",
            f"{name} knows no handler {handler}.",
            f"{engine.how} names {', '.join(engine.handlers) or 'none'}",
            "Run kubegpu.nodes.site for this node: role nvidia_container_toolkit adds it, and "
            "restarts what has to be.",
            subject=name,
        )
    if name in wish.default and engine.default != handler:
        return _not_default(engine)
    tried = [_trial(node, engine, trial, driver_works, toolkit) for trial in engine.trials]
    worst = next((one for one in tried if one.ok is False), None) or next(
        (one for one in tried if one.ok is None), None
    )
    if worst is not None:
        return worst
    listed = f"{engine.how} names the handler {handler}" if engine.listed else engine.how
    proofs = [one.proof for one in tried]
    if not proofs:
        listed += "; no container was started"
    return Verdict(RUNTIME, True, proof="; ".join(filter(None, (listed, *proofs))), subject=name)


def _not_default(engine: Engine) -> Verdict:
    name, handler = engine.name, engine.handler
    step = f"Make {handler} the default (nvidia_container_toolkit_{name}_set_default: true)"
    if name == "docker":
        who = "containers that are started without --gpus or --runtime get no GPU."
        step += f", or start containers with --gpus or --runtime={handler}."
    else:
        who = "pods that name no RuntimeClass get no GPU, the device plugin among them."
        step += f", or give the device plugin runtimeClassName: {handler}."
    return Verdict(
        RUNTIME,
        False,
        "not_default",
        f"{name}'s default is {engine.default or 'runc'}, not {handler}: {who}",
        f"{engine.how}: default {engine.default or 'not set, which is runc'}",
        step,
        subject=name,
    )


def _trial(
    node: Mapping[str, Any], engine: Engine, trial: Trial, driver_works: bool, toolkit: Verdict
) -> Verdict:
    if trial.skipped is not None:
        ok = None if trial.skipped.code in ("check_mode", "not_asked") else False
        return of_finding(RUNTIME, trial.skipped, ok=ok, subject=engine.name)
    result = trial.result
    if result is None:
        return Verdict(RUNTIME, None, "not_asked", "No container was started.", subject=engine.name)
    fault = _container_fault(node, trial, result)
    if fault is None:
        command = " ".join(trial.command)
        what = f"{trial.way} ran {command!r} in {trial.subject}" if command else trial.way
        if trial.counts:
            what += f": {number(len(LISTED_GPU.findall(result.stdout)), 'GPU')}"
            what += "" if trial.devices == "all" else f" of {trial.devices}"
        elif trial.expect:
            what += f": said {trial.expect!r}"
        return Verdict(RUNTIME, True, proof=what, subject=engine.name)
    if not driver_works and fault.code in _OF_THE_DRIVER:
        return Verdict(
            RUNTIME,
            None,
            "needs_driver",
            "The container waits for the driver, whose own layers failed.",
            fault.evidence,
            subject=engine.name,
        )
    if toolkit.ok is False and fault.code in ("container_failed", "runtime_missing"):
        return Verdict(
            RUNTIME,
            None,
            "needs_toolkit",
            "The container waits for the container toolkit, whose own layer failed.",
            fault.evidence,
            subject=engine.name,
        )
    return of_finding(RUNTIME, fault, subject=engine.name)


def _container_fault(node: Mapping[str, Any], trial: Trial, result: Result) -> Finding | None:
    """Return what is wrong with what a container did, if anything is."""
    text = "\n".join(part for part in (result.stderr.strip(), result.stdout.strip()) if part)
    known = {"driver": node["driver"]["loaded"], "gpus": own_gpus(node)}
    if result.rc == TIMED_OUT:
        return explain_one(
            text,
            Finding(
                "timed_out",
                f"{trial.way} did not end in time.",
                end_of(text),
                "Give it more time (timeout); see whether nvidia-smi on the node answers, and what "
                "the journal of the runtime says.",
            ),
            **known,
        )
    if not result.ok and trial.counts and trial.bare and _NO_SMI.search(text):
        return Finding(
            "nothing_injected",
            f"{trial.way} started a container, but the toolkit put nothing of the driver into it.",
            end_of(text),
            "Look at nvidia-container-runtime.mode in /etc/nvidia-container-runtime/config.toml, "
            "at what the handler's program is, and whether nvidia-container-cli list names "
            "nvidia-smi.",
        )
    if not result.ok:
        return explain_one(
            text,
            Finding(
                "container_failed",
                f"{trial.way} failed (exit status {result.rc}).",
                end_of(text),
                "Try it by hand on the node; the journal of the runtime may say more.",
            ),
            **known,
        )
    if trial.counts:
        wanted = _wanted(node, trial.devices)
        have = len(LISTED_GPU.findall(result.stdout))
        if have != wanted:
            return Finding(
                "gpu_count_in_container",
                f"A container that was given {trial.devices} sees {number(have, 'GPU')}, and "
                f"should see {wanted}.",
                end_of(text),
                "Compare nvidia-smi -L on the node with nvidia-ctk cdi list, and look at the "
                "toolkit's config.toml.",
            )
    if trial.expect and not re.search(trial.expect, result.stdout, re.MULTILINE):
        return explain_one(
            text,
            Finding(
                "not_as_expected",
                f"The container ran, but did not say {trial.expect!r}.",
                end_of(text) or "it said nothing",
                "See what the command does in the image; correct expect or command.",
            ),
            **known,
        )
    return None


def _wanted(node: Mapping[str, Any], devices: str) -> int:
    if devices == "all":
        nvml = node["nvml"]
        return len(nvml["devices"]) if nvml else len(own_gpus(node))
    return len(devices.split(","))
