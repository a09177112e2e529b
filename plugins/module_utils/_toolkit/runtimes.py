# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The container runtimes of a node: what of them differs from what is wished, and why."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from .._containerd.data import NVIDIA_RUNTIME, RUNC_SHIM
from .._containerd.distributions import makes_handler
from .._core.steps import Step
from .._crio.plan import RUNTIMES_SETTING, outside_path
from .._nvidia.toolkit import RUNTIME_PATH
from .._record.converged import wish_name
from .types import ToolkitWish, version_key

# Docker learned --gpus in this version; older ones select the GPU by --runtime.
GPUS_OPTION_SINCE = (19, 3)
# What NVIDIA's runtime looks for where its file names nothing.
_LOOKED_FOR = ("runc", "crun")


def wishes(wish: ToolkitWish) -> dict[str, str]:
    """Return the names of what is asked of the modules of containerd and Docker."""
    common = {"name": wish.runtime_name, "cdi": wish.runtime_cdi, "path": RUNTIME_PATH}
    return {
        "containerd": wish_name(
            {
                **common,
                "set_default": wish.containerd_set_default,
                "enable_cri": wish.containerd_enable_cri,
                "complete_runc": wish.containerd_complete_runc,
                "options": wish.containerd_options,
                "restart": wish.containerd_restart,
            }
        ),
        "docker": wish_name(
            {**common, "set_default": wish.docker_set_default, "restart": wish.docker_restart}
        ),
    }


def settled(node: Mapping[str, Any], wish: ToolkitWish) -> tuple[str, ...]:
    """Return the engines whose modules would find nothing to do, as they found the last time."""
    off = {"containerd": wish.containerd, "docker": wish.docker}
    return tuple(
        engine
        for engine, name in wishes(wish).items()
        if off[engine] != "false"
        and ((node["runtimes"][engine] or {}).get("settled") or {}).get(wish.runtime_name) == name
    )


def plan_containerd(
    node: Mapping[str, Any], wish: ToolkitWish, *, look: bool = True
) -> tuple[bool, Step | None, tuple[str, ...]]:
    """Return whether containerd's module is called, and what it would do as far as facts tell.

    :param look: whether it is called where the facts show no difference.
    """
    runtime = node["runtimes"]["containerd"]
    if wish.containerd == "false" or (runtime is None and wish.containerd == "auto"):
        return False, None, ()
    if runtime is None:
        return (
            False,
            None,
            ("containerd is asked for, but not installed. Next step: install it, then run again.",),
        )
    if runtime["cri_enabled"] is False and not wish.containerd_enable_cri:
        return (
            wish.containerd == "true",
            None,
            (
                "containerd's CRI plugin is disabled, as Docker's packages do it: Kubernetes "
                "cannot use this containerd. Next step, if it should: "
                "nvidia_container_toolkit_containerd_enable_cri: true.",
            ),
        )
    handlers = runtime["handlers"] or {}
    handler = handlers.get(wish.runtime_name)
    path = (handler or {}).get("path")
    if handler is None and makes_handler(runtime["flavour"], wish.runtime_name, RUNTIME_PATH):
        reason = f"{runtime['flavour']} makes the handler itself, when it starts and finds it"
        step = _runtime_step(
            "containerd", _restart_action(wish.containerd_restart), wish.runtime_name, reason
        )
    elif handler is None:
        step = _runtime_step("containerd", "add", wish.runtime_name, "no such handler is there")
    elif path and path != RUNTIME_PATH:
        step = _runtime_step("containerd", "change", wish.runtime_name, f"it runs {path}")
    elif wish.containerd_set_default and runtime["default_handler"] != wish.runtime_name:
        step = _runtime_step(
            "containerd",
            "default",
            wish.runtime_name,
            f"default is {runtime['default_handler']}",
        )
    else:
        return look, None, ()
    return True, step, ()


def containerd_refusal(node: Mapping[str, Any], wish: ToolkitWish) -> tuple[str, ...]:
    """Return why containerd's module would refuse the node: no runtime to inherit from has a type.

    It sees that as well, but only after the packages were installed.
    """
    runtime = node["runtimes"]["containerd"]
    if wish.containerd == "false" or runtime is None:
        return ()
    if runtime["cri_enabled"] is False and not wish.containerd_enable_cri:
        return ()
    handlers = runtime["handlers"] or {}
    default = runtime["default_handler"]
    path = str((handlers.get(default) or {}).get("path") or "")
    own = default == wish.runtime_name or posixpath.basename(path).startswith(NVIDIA_RUNTIME)
    for name in ("runc",) if own else (default, "runc"):
        handler = handlers.get(name)
        if handler is None or handler["type"]:
            if (handler or {}).get("type") == RUNC_SHIM:
                return ()
            continue
        # From 2.0 on what a file leaves out of runc is built in.
        built_in = name == "runc" and version_key(runtime["version"] or "0") >= (2,)
        if built_in or (name == "runc" and wish.containerd_complete_runc):
            return ()
        option = (
            ", or set nvidia_container_toolkit_containerd_complete_runc: true"
            if name == "runc"
            else ""
        )
        return (
            f"containerd's runtime {name} has no runtime_type: containerd starts no pod with it, "
            f"and {wish.runtime_name} cannot inherit from it. Next step: write runtime_type = "
            f'"{RUNC_SHIM}" into its table of {runtime["config_path"]}{option}.',
        )
    return ()


def plan_docker(
    node: Mapping[str, Any], wish: ToolkitWish, *, look: bool = True
) -> tuple[bool, Step | None, tuple[str, ...]]:
    """Return whether Docker's module is called, and what it would do as far as facts tell.

    :param look: whether it is called where the facts show no difference.
    """
    runtime = node["runtimes"]["docker"]
    if wish.docker == "false" or (runtime is None and wish.docker == "auto"):
        return False, None, ()
    if runtime is None:
        return (
            False,
            None,
            ("Docker is asked for, but not installed. Next step: install it, then run again.",),
        )
    notes: tuple[str, ...] = ()
    if runtime["version"] and version_key(runtime["version"])[:2] < GPUS_OPTION_SINCE:
        notes = (
            f"Docker {runtime['version']} has no --gpus: use docker run "
            f"--runtime={wish.runtime_name}.",
        )
    entry = (runtime["runtimes"] or {}).get(wish.runtime_name)
    path = entry.get("path") if isinstance(entry, Mapping) else entry
    if entry is None:
        step = _runtime_step("docker", "add", wish.runtime_name, "no such runtime is there")
    elif path and path != RUNTIME_PATH:
        step = _runtime_step("docker", "change", wish.runtime_name, f"it runs {path}")
    elif wish.docker_set_default and runtime["default_runtime"] != wish.runtime_name:
        step = _runtime_step(
            "docker",
            "default",
            wish.runtime_name,
            f"default is {runtime['default_runtime']}",
        )
    else:
        return look, None, notes
    return True, step, notes


def docker_restart(wish: ToolkitWish, action: str, docker: bool) -> Step | None:
    """Return the restart that follows from installing the toolkit: its hook is looked for once."""
    if not docker or action != "install" or wish.docker_restart == "never":
        return None
    when = "" if wish.docker_restart == "always" else "where no container would be stopped"
    return Step(
        "docker", "restart", when, "--gpus needs a dockerd started after the toolkit was installed"
    )


def plan_crio(
    node: Mapping[str, Any], wish: ToolkitWish
) -> tuple[bool, Step | None, tuple[str, ...]]:
    """Return whether CRI-O differs from what is wished; where it does not, it is not asked."""
    runtime = node["runtimes"]["crio"]
    if wish.crio == "false" or (runtime is None and wish.crio == "auto"):
        return False, None, ()
    if runtime is None:
        return (
            False,
            None,
            ("CRI-O is asked for, but not installed. Next step: install it, then run again.",),
        )
    handler = (runtime["runtimes"] or {}).get(wish.runtime_name)
    if handler is None:
        step = _runtime_step("crio", "add", wish.runtime_name, "no such handler is there")
    elif handler["path"] != RUNTIME_PATH:
        reason = f"it runs {handler['path']}"
        step = _runtime_step("crio", "change", wish.runtime_name, reason)
    elif handler["outdated"]:
        reason = "the node's own runtime, of which it has the settings, has others now"
        step = _runtime_step("crio", "change", wish.runtime_name, reason)
    elif wish.crio_set_default and runtime["default_runtime"] != wish.runtime_name:
        reason = f"default is {runtime['default_runtime'] or 'what is built in'}"
        step = _runtime_step("crio", "default", wish.runtime_name, reason)
    elif not wish.crio_set_default and (
        runtime["default_runtime"] == wish.runtime_name
        and runtime["default_file"] == runtime["drop_in_path"]
    ):
        reason = "it is the default by us, and no longer asked for"
        step = _runtime_step("crio", "default", f"not {wish.runtime_name}", reason)
    elif runtime["restart_required"]:
        reason = "its files were changed after it started"
        step = _runtime_step("crio", _restart_action(wish.crio_restart), wish.runtime_name, reason)
    else:
        return False, None, ()
    return True, step, ()


def toolkit_settings(
    node: Mapping[str, Any], wish: ToolkitWish, crio: bool
) -> tuple[dict[str, Any], str | None]:
    """Return the settings of the toolkit's own file that are wanted, and why if not by the user.

    CRI-O's packages keep their runtime outside PATH, where NVIDIA's runtime would not find it.

    :param crio: whether CRI-O takes part.
    """
    settings = dict(wish.settings)
    own = (node["runtimes"]["crio"] or {}).get("own_runtime") or {}
    program = own.get("path")
    if not crio or RUNTIMES_SETTING in settings or not outside_path(program):
        return settings, None
    present = (node["container_toolkit"]["config"] or {}).get(RUNTIMES_SETTING)
    names = [str(name) for name in present or _LOOKED_FOR]
    settings[RUNTIMES_SETTING] = names if program in names else [*names, program]
    return settings, f"CRI-O's {own['name']} is {program}, which NVIDIA's runtime does not look for"


def _restart_action(allowed: bool) -> str:
    return "restart" if allowed else "wait for a restart"


def _runtime_step(engine: str, action: str, name: str, reason: str) -> Step:
    return Step(engine, action, f"runtime {name}", reason)


def no_runtime(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what to do about a node that has no runtime."""
    if any(node["runtimes"][name] for name in ("containerd", "docker", "crio")):
        return ()
    return (
        "No container runtime is on this node. Next step: install containerd, CRI-O or Docker "
        "(this collection never does), then run again.",
    )
