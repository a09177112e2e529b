# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the container runtimes of a node need in order to be as requested, and why. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from .._containerd.data import NVIDIA_RUNTIME, RUNC_SHIM
from .._containerd.distributions import makes_handler
from .._core.errors import Refusal
from .._core.message import message
from .._core.steps import Step
from .._core.versions import package_numbers
from .._crio.complete import why
from .._crio.plan import RUNTIMES_SETTING, outside_path, read_order
from .._known_faults.common import NO_RUNTIME
from .._nvidia.toolkit_paths import RUNTIME_PATH
from .._record.converged import settings_fingerprint
from .types import Request

# The first version of Docker with --gpus; with older ones the GPU is selected by --runtime.
GPUS_OPTION_SINCE = (19, 3)
# The programs that NVIDIA's runtime looks for if its configuration names none.
_DEFAULT_PROGRAMS = ("runc", "crun")


def fingerprints(request: Request) -> dict[str, str]:
    """Return the fingerprints of the settings for the modules of containerd and Docker."""
    common = {"name": request.runtime_name, "cdi": request.runtime_cdi, "path": RUNTIME_PATH}
    return {
        "containerd": settings_fingerprint(
            {
                **common,
                "set_default": request.containerd_set_default,
                "enable_cri": request.containerd_enable_cri,
                "complete_runc": request.containerd_complete_runc,
                "options": request.containerd_options,
                "restart": request.containerd_restart,
            }
        ),
        "docker": settings_fingerprint(
            {**common, "set_default": request.docker_set_default, "restart": request.docker_restart}
        ),
    }


def converged_runtimes(node: Mapping[str, Any], request: Request) -> tuple[str, ...]:
    """Return the runtimes on which nothing changed since their modules had nothing to do."""
    off = {"containerd": request.containerd, "docker": request.docker}
    return tuple(
        engine
        for engine, fingerprint in fingerprints(request).items()
        if off[engine] != "false"
        and ((node["runtimes"][engine] or {}).get("converged") or {}).get(request.runtime_name)
        == fingerprint
    )


def plan_containerd(
    node: Mapping[str, Any], request: Request, *, always: bool = True
) -> tuple[bool, Step | None, tuple[str, ...]]:
    """Return whether containerd's module is called, and the step that the facts show, and notes.

    :param always: whether the module is called if the facts show no difference.
    """
    runtime = node["runtimes"]["containerd"]
    if request.containerd == "false" or (runtime is None and request.containerd == "auto"):
        return False, None, ()
    if runtime is None:
        return (
            False,
            None,
            ("containerd is requested, but not installed. Next step: install it, then run again.",),
        )
    if runtime["cri_enabled"] is False and not request.containerd_enable_cri:
        return (
            request.containerd == "true",
            None,
            (
                "containerd's CRI plugin is disabled, as Docker's packages do it: Kubernetes "
                "cannot use this containerd. Next step, if it should: "
                "nvidia_container_toolkit_containerd_enable_cri: true.",
            ),
        )
    handlers = runtime["handlers"] or {}
    handler = handlers.get(request.runtime_name)
    path = (handler or {}).get("path")
    if handler is None and makes_handler(
        runtime["distribution"], request.runtime_name, RUNTIME_PATH
    ):
        reason = f"{runtime['distribution']} makes the handler itself, when it starts and finds it"
        step = _runtime_step(
            "containerd", _restart_action(request.containerd_restart), request.runtime_name, reason
        )
    elif handler is None:
        step = _runtime_step(
            "containerd", "add", request.runtime_name, "the runtime is not configured"
        )
    elif path and path != RUNTIME_PATH:
        step = _runtime_step("containerd", "change", request.runtime_name, f"it runs {path}")
    elif request.containerd_set_default and runtime["default_handler"] != request.runtime_name:
        step = _runtime_step(
            "containerd",
            "default",
            request.runtime_name,
            f"default is {runtime['default_handler']}",
        )
    else:
        return always, None, ()
    return True, step, ()


def containerd_refusal(node: Mapping[str, Any], request: Request) -> Refusal | None:
    """Return why containerd's module would refuse: the runtime to inherit from has no type.

    The module checks that too, but only after the packages are installed.
    """
    runtime = node["runtimes"]["containerd"]
    if request.containerd == "false" or runtime is None:
        return None
    if runtime["cri_enabled"] is False and not request.containerd_enable_cri:
        return None
    handlers = runtime["handlers"] or {}
    default = runtime["default_handler"]
    path = str((handlers.get(default) or {}).get("path") or "")
    own = default == request.runtime_name or posixpath.basename(path).startswith(NVIDIA_RUNTIME)
    for name in ("runc",) if own else (default, "runc"):
        handler = handlers.get(name)
        if handler is None or handler["type"]:
            if (handler or {}).get("type") == RUNC_SHIM:
                return None
            continue
        # From containerd 2.0 on, settings of runc that a file omits have built-in values.
        built_in = name == "runc" and package_numbers(runtime["version"] or "0") >= (2,)
        if built_in or (name == "runc" and request.containerd_complete_runc):
            return None
        option = (
            ", or set nvidia_container_toolkit_containerd_complete_runc: true"
            if name == "runc"
            else ""
        )
        return Refusal(
            f"containerd's runtime {name} has no runtime_type: containerd starts no pod with it, "
            f"and {request.runtime_name} cannot inherit from it.",
            f'write runtime_type = "{RUNC_SHIM}" into its table of '
            f"{runtime['config_path']}{option}.",
        )
    return None


def plan_docker(
    node: Mapping[str, Any], request: Request, *, always: bool = True
) -> tuple[bool, Step | None, tuple[str, ...]]:
    """Return whether Docker's module is called, and the step that the facts show, and notes.

    :param always: whether the module is called if the facts show no difference.
    """
    runtime = node["runtimes"]["docker"]
    if request.docker == "false" or (runtime is None and request.docker == "auto"):
        return False, None, ()
    if runtime is None:
        return (
            False,
            None,
            ("Docker is requested, but not installed. Next step: install it, then run again.",),
        )
    notes: tuple[str, ...] = ()
    if runtime["version"] and package_numbers(runtime["version"])[:2] < GPUS_OPTION_SINCE:
        notes = (
            f"Docker {runtime['version']} has no --gpus: use docker run "
            f"--runtime={request.runtime_name}.",
        )
    entry = (runtime["runtimes"] or {}).get(request.runtime_name)
    path = entry.get("path") if isinstance(entry, Mapping) else entry
    if entry is None:
        step = _runtime_step("docker", "add", request.runtime_name, "the runtime is not configured")
    elif path and path != RUNTIME_PATH:
        step = _runtime_step("docker", "change", request.runtime_name, f"it runs {path}")
    elif request.docker_set_default and runtime["default_runtime"] != request.runtime_name:
        step = _runtime_step(
            "docker",
            "default",
            request.runtime_name,
            f"default is {runtime['default_runtime']}",
        )
    else:
        return always, None, notes
    return True, step, notes


def docker_restart(request: Request, action: str, docker: bool) -> Step | None:
    """Return the restart that an installation needs: dockerd looks for the hook once, at start."""
    if not docker or action != "install" or request.docker_restart == "never":
        return None
    when = "" if request.docker_restart == "always" else "where no container would be stopped"
    return Step(
        "docker", "restart", when, "--gpus needs a dockerd started after the toolkit was installed"
    )


def plan_crio(
    node: Mapping[str, Any], request: Request
) -> tuple[bool, Step | None, tuple[str, ...]]:
    """Return whether CRI-O's module is called, and the step, and notes."""
    runtime = node["runtimes"]["crio"]
    if request.crio == "false" or (runtime is None and request.crio == "auto"):
        return False, None, ()
    if runtime is None:
        return (
            False,
            None,
            ("CRI-O is requested, but not installed. Next step: install it, then run again.",),
        )
    handler = (runtime["runtimes"] or {}).get(request.runtime_name)
    if handler is None:
        step = _runtime_step("crio", "add", request.runtime_name, "the runtime is not configured")
    elif handler["path"] != RUNTIME_PATH:
        reason = f"it runs {handler['path']}"
        step = _runtime_step("crio", "change", request.runtime_name, reason)
    elif handler.get("lacks"):
        reason = f"in {handler['file']} it needs {', '.join(handler['lacks'])}"
        step = _runtime_step("crio", "complete", request.runtime_name, reason)
    elif handler["outdated"]:
        reason = "the node's own runtime, of which it has the settings, has others now"
        step = _runtime_step("crio", "change", request.runtime_name, reason)
    elif request.crio_set_default and runtime["default_runtime"] != request.runtime_name:
        reason = f"default is {runtime['default_runtime'] or 'what is built in'}"
        step = _runtime_step("crio", "default", request.runtime_name, reason)
    elif not request.crio_set_default and (
        runtime["default_runtime"] == request.runtime_name
        and runtime["default_file"] == runtime["drop_in_path"]
    ):
        reason = "it is the default by this collection, and no longer requested"
        step = _runtime_step("crio", "default", f"not {request.runtime_name}", reason)
    elif runtime["restart_required"]:
        reason = "its files were changed after it started"
        step = _runtime_step(
            "crio", _restart_action(request.crio_restart), request.runtime_name, reason
        )
    else:
        return False, None, ()
    return True, step, ()


def crio_refusal(node: Mapping[str, Any], request: Request) -> Refusal | None:
    """Return why CRI-O's module would refuse: a file that CRI-O reads last has the handler."""
    runtime = node["runtimes"]["crio"]
    handler = ((runtime or {}).get("runtimes") or {}).get(request.runtime_name)
    if request.crio == "false" or not handler or not handler.get("lacks"):
        return None
    path, lacks = str(handler["file"]), tuple(handler["lacks"])
    if read_order(path) < read_order(runtime["drop_in_path"]):
        return None
    return Refusal(
        f"{path} sets CRI-O's handler {request.runtime_name} with other settings: {why(lacks)}; "
        f"CRI-O reads it after {runtime['drop_in_path']}.",
        "correct it there, or give the file a name that comes earlier.",
    )


def toolkit_settings(
    node: Mapping[str, Any], request: Request, crio: bool
) -> tuple[dict[str, Any], str | None]:
    """Return the settings for the toolkit's configuration, and why one was added to the user's.

    CRI-O's packages install their runtime outside PATH, where NVIDIA's runtime does not find it.

    :param crio: whether CRI-O is configured.
    """
    settings = dict(request.settings)
    own = (node["runtimes"]["crio"] or {}).get("own_runtime") or {}
    program = own.get("path")
    if not crio or RUNTIMES_SETTING in settings or not outside_path(program):
        return settings, None
    present = (node["container_toolkit"]["config"] or {}).get(RUNTIMES_SETTING)
    names = [str(name) for name in present or _DEFAULT_PROGRAMS]
    settings[RUNTIMES_SETTING] = names if program in names else [*names, program]
    return settings, f"CRI-O's {own['name']} is {program}, which NVIDIA's runtime does not look for"


def _restart_action(allowed: bool) -> str:
    return "restart" if allowed else "wait for a restart"


def _runtime_step(engine: str, action: str, name: str, reason: str) -> Step:
    return Step(engine, action, f"runtime {name}", reason)


def no_runtime(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note with the next step if the node has no container runtime."""
    if any(node["runtimes"][name] for name in ("containerd", "docker", "crio")):
        return ()
    return (message(vars(NO_RUNTIME), names=("next_step",), between=" "),)
