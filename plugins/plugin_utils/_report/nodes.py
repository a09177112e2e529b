# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of a node: of the plan table (what would change and why), and of the result table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.steps import change_text
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vendors import gpu_vendor

from .._rollout import selected
from .drivers import (
    REBOOT,
    RESTART,
    amd_driver_text,
    driver_pending,
    driver_text,
    in_kernel,
    pending_text,
    present_driver,
    unmanaged,
)
from .steps import CONFIGURATION, result_steps, row_step
from .wrong_values import refused_values

# In the order in which the playbook site runs them.
PARTS = ("driver", "mig", "cuda", "toolkit")
#: After those of NVIDIA's GPUs.
AMD_PARTS = ("AMD driver", "AMD toolkit")
# Actions of a driver's plan that install one.
_INSTALLS = ("install", "upgrade", "downgrade")

# Codes of problems in the facts that a plan reports itself; that of the toolkit unless it refuses.
_DECIDED_BY = {
    "driver": (
        "legacy_gpu",
        "unknown_gpu",
        "vgpu_guest_without_grid_driver",
        "gpu_lost",
        "recovery_action",
    ),
    "toolkit": ("no_container_runtime",),
}
# What a plan that loads the driver does about nouveau.
_UNLOADS = (
    "site unloads it. If a program uses it, such as the console, the node needs a reboot: "
    "nvidia_driver_reboot: true allows one."
)
_RUNTIMES = ("containerd", "docker", "crio")
NOT_READ = "the node could not be read"


def describe_gpus(gpus: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the GPUs by product, such as ``4x Tesla V100-SXM2-16GB (volta)``."""
    counted: dict[str, int] = {}
    for gpu in gpus:
        name = gpu["product"] or f"{gpu['vendor']} {gpu['device_id']}"
        generation = gpu["generation"] or "unknown"
        guest = ", vGPU guest" if (gpu.get("vgpu") or {}).get("guest") else ""
        text = f"{name} ({generation}{guest})"
        counted[text] = counted.get(text, 0) + 1
    return [f"{count}x {text}" for text, count in counted.items()]


def node_plan(
    name: str,
    node: Mapping[str, Any] | None,
    plans: Mapping[str, Mapping[str, Any]] | None = None,
    results: Mapping[str, Mapping[str, Any]] | None = None,
    run_tags: Sequence[str] = ("all",),
    skip_tags: Sequence[str] = (),
    wrong: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the row of one node in the plan table. Lists are shown with one item a line.

    :param name: the inventory name.
    :param node: the facts ``gpu_node``; None if the node could not be read.
    :param plans: the plans as JSON values, by part (``PARTS``), without parts that are disabled.
        The row holds each plan unchanged under the part's name.
    :param results: results of ``containerd_runtime``, ``docker_runtime`` and ``crio_runtime`` in
        check mode, by runtime. They are more precise than the plan's own step and replace it.
    :param run_tags: the tags of the run; steps with other tags are left out, and named.
    :param skip_tags: the tags that the run skips.
    :param wrong: wrong values of variables of the node, each with ``variable``, ``part`` and
        ``message``. With any, the node is refused, whatever its plans are.
    """
    if not node:
        return unknown_row(name, NOT_READ)
    present = _present(node)
    row = _row(name, node=node, gpus=describe_gpus(node["gpus"]), present=present)
    if wrong:
        return {**row, **refused_values(wrong, (*PARTS, *AMD_PARTS))}
    if gpu_vendor(node["gpus"]) == "none":
        return {**row, "why": ["no GPU: nothing to do"]}
    parts = {part: (plans or {})[part] for part in (*PARTS, *AMD_PARTS) if (plans or {}).get(part)}
    left_alone = unmanaged(node, plans or {})
    if not parts and not left_alone:
        return {**row, "why": [in_kernel(node)], "warnings": _problems(node, {})}
    planned = [
        step for part, plan in parts.items() for step in _part_steps(part, plan, results or {})
    ]
    steps = [step for step in planned if selected(_tag(step), run_tags, skip_tags)]
    left_out = list(dict.fromkeys(_tag(step) for step in planned if step not in steps))
    refused = [part for part in parts if (part, "refused") in _actions(steps)]
    pending = [] if steps else _plan_pending(parts)
    return {
        **row,
        **parts,
        "action": "refuse" if refused else "change" if steps else "none",
        "pending": pending,
        "steps": steps,
        "changes": [change_text(step) for step in steps],
        "refusals": _refusals(parts, refused),
        "why": [*(one["reason"] for one in steps), *_unchanged(parts, planned), *left_alone]
        or ["nothing that this run does" if left_out else "up to date"],
        "warnings": [
            *_after_refusal(refused, steps),
            *([f"left out by the tags of this run: {', '.join(left_out)}"] if left_out else []),
            # Without other steps there is no result that reports it.
            *map(pending_text, pending),
            *_remarks(node, parts),
        ],
    }


def _plan_pending(parts: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        one for part in ("driver", "AMD driver") for one in driver_pending(parts.get(part), None)
    ]


def _refusals(
    parts: Mapping[str, Mapping[str, Any]], refused: Sequence[str]
) -> list[dict[str, Any]]:
    return [{"part": part, **one} for part in refused for one in parts[part].get("refusals") or ()]


def _remarks(node: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return warnings and notes of the plans, and the problems that the facts show."""
    return [
        *(text for plan in parts.values() for text in plan["warnings"]),
        # Nothing that remains to be done, so that the result does not show it.
        *(text for plan in parts.values() for text in plan.get("notes", ())),
        *_problems(node, parts),
    ]


def node_result(
    name: str,
    plans: Mapping[str, Mapping[str, Any]],
    results: Mapping[str, Mapping[str, Any]],
    node: Mapping[str, Any] | None = None,
    *,
    predicted: bool = False,
    toolkit_done: bool = True,
    toolkit_changed: bool = False,
) -> dict[str, Any]:
    """Return the row of one node in the result table.

    :param name: the inventory name.
    :param plans: the plans by part, empty for a part that is disabled. The driver's is made from
        the facts after the run.
    :param results: results of ``containerd_runtime``, ``docker_runtime``, ``crio_runtime``,
        ``nvidia_driver`` (under ``driver``) and ``nvidia_mig`` (under ``mig``).
    :param node: the facts ``gpu_node`` after the run.
    :param predicted: whether the run was in check mode, so that the facts are those before it.
    :param toolkit_done: whether the toolkit's part ran. If not, its version is taken from the
        facts.
    :param toolkit_changed: whether the run changed a container toolkit.
    """
    driver, mig, cuda, toolkit = (plans.get(part) or {} for part in PARTS)
    pending = _result_pending(plans, results)
    return {
        "node": name,
        "driver": [
            *driver_text(node, driver, results.get("driver"), predicted),
            *amd_driver_text(node, plans, results, predicted),
        ],
        "mig": _mig_text(node, mig, results.get("mig"), predicted),
        "cuda": cuda_text(node, cuda, predicted=predicted),
        "toolkit": [
            *toolkit_text(node, plans, done=toolkit_done),
            *_ending(plans, done=toolkit_done, changed=toolkit_changed),
        ],
        "containerd": _runtime_text(
            results.get("containerd")
            or _converged_result(node, "containerd", toolkit.get("converged", ()))
        ),
        "docker": _runtime_text(
            results.get("docker") or _converged_result(node, "docker", toolkit.get("converged", ()))
        ),
        "crio": _runtime_text(results.get("crio") or _crio_result(node)),
        "pending": pending,
        "open": [
            *map(pending_text, pending),
            *(
                text
                for plan in plans.values()
                for text in plan.get("warnings", ())
                # What the plan says of a reboot is in the result, unless this run rebooted.
                if text not in [one["reboot_reason"] for one in mig.get("devices", ())]
            ),
        ],
    }


def _result_pending(
    plans: Mapping[str, Mapping[str, Any]], results: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return what remains to be done after the run: reboots and restarts."""
    return [
        *driver_pending(plans.get("driver") or {}, results.get("driver")),
        *driver_pending(plans.get("AMD driver"), results.get("AMD driver")),
        *_mig_pending(results.get("mig")),
        *(
            {
                "pending": RESTART,
                "daemon": engine,
                "reason": result.get("restart_reason") or "its daemon is older than its file",
                "containers": result.get("waiting_containers"),
            }
            for engine, result in results.items()
            if result.get("restart_required")
        ),
    ]


def toolkit_text(
    node: Mapping[str, Any] | None, plans: Mapping[str, Mapping[str, Any]], *, done: bool
) -> list[str]:
    """Return the versions of the container toolkits, of NVIDIA and of AMD."""
    own = (plans.get("toolkit") or {}).get("version")
    if node and not done:
        own = node["container_toolkit"]["version"]
    amd = (plans.get("AMD toolkit") or {}).get("version")
    if node and not done:
        amd = (node.get("amd_container_toolkit") or {}).get("version")
    found = " and ".join(text for text in (own, f"AMD {amd}" if amd else None) if text)
    return [found] if found else []


def _ending(plans: Mapping[str, Mapping[str, Any]], *, done: bool, changed: bool) -> list[str]:
    """Return whether a run changed the container toolkits; nothing where their part did not run."""
    if not done or not any(plans.get(part) for part in ("toolkit", "AMD toolkit")):
        return []
    return ["changed" if changed else "unchanged"]


def _converged_result(
    node: Mapping[str, Any] | None, engine: str, converged: Sequence[str]
) -> Mapping[str, Any] | None:
    """Return what the module would return for a converged runtime, for which it is not called."""
    runtime = (node or {}).get("runtimes", {}).get(engine)
    if not runtime or engine not in converged:
        return None
    return {
        "handlers": runtime.get("handlers") or runtime.get("runtimes"),
        "default_runtime": runtime.get("default_handler") or runtime.get("default_runtime"),
    }


def _crio_result(node: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return what the module would return if nothing differs, for which it is not called."""
    crio = (node or {}).get("runtimes", {}).get("crio")
    if not crio or crio.get("runtimes") is None:
        return None
    return {"handlers": crio["runtimes"], "default_runtime": crio["default_runtime"]}


def _runtime_text(result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return []
    handlers = result.get("handlers") or result.get("runtimes") or {}
    return [
        *handlers_text(handlers, result.get("default_runtime")),
        "changed" if result.get("changed") else "unchanged",
    ]


def handlers_text(handlers: Mapping[str, Any], default: Any) -> list[str]:
    """Return the handlers of a runtime, of which one is the default."""
    # Docker has runc without an entry in its file.
    every = sorted({*map(str, handlers), *([str(default)] if default else [])})
    names = (f"{name} (default)" if name == default else name for name in every)
    return [", ".join(names) or "no handlers"]


def unknown_row(name: str, reason: str, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """Return the row of a node of which nothing is known but why, for either table."""
    row = _row(name, action="unknown", why=[reason])
    return {**row, "warnings": list(warnings), "open": [reason]}


def _row(
    name: str,
    node: Mapping[str, Any] | None = None,
    gpus: Sequence[str] = (),
    present: Sequence[str] = (),
    action: str = "none",
    why: Sequence[str] = (),
) -> dict[str, Any]:
    system = "" if node is None else f"{node['os']['id']} {node['os']['version'] or ''}".strip()
    return {
        "node": name,
        "os": system,
        "gpus": list(gpus),
        "present": list(present),
        "action": action,
        "steps": [],
        "changes": [],
        "pending": [],
        "refusals": [],
        "why": list(why),
        "warnings": [],
    }


def _present(node: Mapping[str, Any]) -> list[str]:
    runtimes = node["runtimes"]
    return [
        *present_driver(node),
        *(
            f"{name} {driver['version'] or 'of the kernel'}"
            for name, driver in (node.get("kernel_drivers") or {}).items()
        ),
        *(f"CUDA {toolkit['version']}" for toolkit in _cuda_toolkits(node)),
        *(
            # A runtime is not asked for its version on a node without a GPU.
            f"{name} {runtimes[name]['version'] or ''}".rstrip()
            for name in ("containerd", "docker", "crio")
            if runtimes[name]
        ),
        *(
            [f"toolkit {node['container_toolkit']['version']}"]
            if node["container_toolkit"]["version"]
            else []
        ),
    ]


def _cuda_toolkits(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((node.get("cuda") or {}).get("toolkits") or ())


def _mig_text(
    node: Mapping[str, Any] | None,
    mig: Mapping[str, Any],
    result: Mapping[str, Any] | None,
    predicted: bool,
) -> list[str]:
    """Return the layout of each GPU that the configuration is for."""
    devices = mig.get("devices") or ()
    if not devices:
        return []
    # Few fleets have MIG, and each run imports this file.
    from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.state import (  # noqa: PLC0415
        read_gpus,
    )

    there = {} if node is None or predicted else {gpu.index: gpu for gpu in read_gpus(node)}
    layouts = []
    for one in devices:
        text = one["before"] if one["reboot_reason"] else one["after"]
        if not predicted:
            gpu = there.get(one["index"])
            text = gpu.describe() if gpu else "not known"
        layouts.append(f"{one['index']}: {text}")
    state = "changed" if (result or {}).get("changed") else "unchanged"
    return [*layouts, state]


def _mig_pending(result: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    if not (result or {}).get("reboot_required"):
        return []
    return [{"pending": REBOOT, "reason": (result or {}).get("reboot_reason")}]


def cuda_text(
    node: Mapping[str, Any] | None, cuda: Mapping[str, Any], *, predicted: bool
) -> list[str]:
    """Return the CUDA toolkits, of which one is the default."""
    there = {
        str(toolkit["version"]): bool(toolkit["default"]) for toolkit in _cuda_toolkits(node or {})
    }
    if predicted and cuda.get("change"):
        default = cuda.get("default")
        requested = [str(one["version"]) for one in cuda.get("versions", ())]
        there = {version: version == default for version in dict.fromkeys((*there, *requested))}
    return [f"{version} (default)" if default else version for version, default in there.items()]


def _part_steps(
    part: str, plan: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, str]]:
    if plan["action"] == "refuse":
        return [{"part": part, **row_step(part, "refused", "", "\n".join(plan["reasons"]))}]
    steps = [dict(step) for step in plan["steps"]]
    if part == "driver":
        # The step that installs the packages has the first reason, and gets the others: source,
        # kernel modules. The reasons of a removal are those of its steps.
        for step in steps:
            if step["step"] == "packages" and step["action"] == plan["action"] in _INSTALLS:
                step["reason"] = "\n".join([step["reason"], *plan["reasons"][1:]])
    if part == "toolkit":
        steps = _with_results(steps, results)
    return [{"part": part, **step} for step in steps]


def _tag(step: Mapping[str, str]) -> str:
    """Return the tag of the playbook site that runs a step."""
    part = str(step["part"]).removeprefix("AMD ")
    return "runtime" if part == "toolkit" and step["step"] in _RUNTIMES else part


def _actions(steps: Sequence[Mapping[str, str]]) -> set[tuple[str, str]]:
    return {(step["part"], step["action"]) for step in steps}


def _unchanged(
    parts: Mapping[str, Mapping[str, Any]], steps: Sequence[Mapping[str, str]]
) -> list[str]:
    """Return why a driver is not changed."""
    driver = parts.get("driver")
    if driver is None or any(step["part"] == "driver" for step in steps):
        return []
    return list(driver["reasons"])


def _with_results(
    planned: Sequence[Mapping[str, str]], results: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, str]]:
    steps = [dict(step) for step in planned if step["step"] not in results]
    for engine, result in results.items():
        known = [_in_words_of_plan(one, planned) for one in result_steps(engine, result)]
        # A module cannot predict the restarts that the installation of the toolkit causes.
        known += [
            dict(step)
            for step in planned
            if step["step"] == engine
            and step["action"] in ("restart", "wait for a restart")
            and not any(one["action"] == step["action"] for one in known)
        ]
        steps.extend(known)
    return steps


def _in_words_of_plan(
    step: Mapping[str, str], planned: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """Return the plan's own step instead of a module's change of a configuration.

    ``site`` shows it before a module has run, and ``plan`` after: both show the same.
    """
    same = (
        one for one in planned
        if step["detail"] == CONFIGURATION and one["step"] == step["step"]
        and one["action"] not in ("restart", "reload", "wait for a restart")
    )  # fmt: skip
    return dict(next(same, step))


def _problems(node: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the problems in the facts that no plan reports."""
    reported = {
        code
        for part, codes in _DECIDED_BY.items()
        if part in parts and (part == "driver" or parts[part]["action"] != "refuse")
        for code in codes
    }
    unloads = bool((parts.get("driver") or {}).get("load"))
    return [
        f"{problem['cause']} {_UNLOADS}"
        if unloads and problem["code"] == "nouveau_loaded"
        else problem["cause"]
        for problem in node["problems"]
        if problem["code"] not in reported
    ]


def _after_refusal(refused: Sequence[str], steps: Sequence[Mapping[str, str]]) -> list[str]:
    """Return what a refused part means for the parts after it."""
    if not refused:
        return []
    order = PARTS if refused[0] in PARTS else AMD_PARTS
    after = [part for part in order[order.index(refused[0]) + 1 :] if part not in refused]
    later = [part for part in after if any(step["part"] == part for step in steps)]
    if not later:
        return []
    return [
        f"site stops this node at {refused[0]}, which is refused; it continues with "
        f"{' and '.join(later)} after that is fixed"
    ]
