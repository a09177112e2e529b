# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cdi_specification
short_description: Keep the CDI specification of a node's NVIDIA GPUs in step with its driver
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Makes the Container Device Interface specification again where there is none, or where it was
    made for another driver than the one that is loaded.
  - From version 1.18 of the NVIDIA Container Toolkit on its own service C(nvidia-cdi-refresh) does
    the work; before that C(nvidia-ctk cdi generate) does.
  - The service starts only where it finds the kernel module under the names that it knows
    (C(ExecCondition) of its unit). Debian's open kernel modules have another one.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
options:
  state:
    description: >-
      V(absent) removes a specification that this module wrote, or puts back the one that was
      there. What the toolkit's service wrote is removed where the toolkit's program that it names
      is gone, since the packages leave it.
    type: str
    choices: [present, absent]
    default: present
  driver_version:
    description: Version of the loaded driver. Without it, any specification will do.
    type: str
  previous_driver_version:
    description: >-
      For a play that installs the toolkit first: the driver that the specification was for when
      the node was read, empty for none. The package makes the specification while it is
      installed; V(changed) and the diff then still tell what the play changed.
    type: str
  method:
    description: V(auto) uses the toolkit's service where it is installed and starts, else
      C(nvidia-ctk).
    type: str
    choices: [auto, service, generate]
    default: auto
  service_expected:
    description: >-
      For a play that installs the toolkit first: whether its packages bring the service. In check
      mode V(method=auto) then tells what the play would do.
    type: bool
    default: false
  toolkit_removed:
    description: >-
      For a play that removes the toolkit: whether its packages go. What O(state=absent) puts back
      at O(service_path) is then removed, too, where it names the toolkit's program. In check mode
      V(state=absent) tells what the play would do.
    type: bool
    default: false
  path:
    description: Where C(nvidia-ctk) writes the specification. One that is at O(service_path) is
      made again too, because containers get that one. Where this is O(service_path) itself, which
      is lost with the next boot, the default is used. With O(state=absent), whatever this module
      wrote is undone, wherever it is.
    type: path
    default: /etc/cdi/nvidia.yaml
  service_path:
    description: Where the toolkit's service writes it.
    type: path
    default: /var/run/cdi/nvidia.yaml
"""

EXAMPLES = r"""
- name: Make the CDI specification for the driver that is loaded
  kubegpu.nodes.cdi_specification:
    driver_version: "{{ ansible_facts['gpu_node']['driver']['loaded'] }}"
"""

RETURN = r"""
path:
  description: The specification's file.
  returned: always
  type: str
  sample: /var/run/cdi/nvidia.yaml
method:
  description: How it is made.
  returned: always
  type: str
  sample: service
reasons:
  description: Why it was made again.
  returned: always
  type: list
  elements: str
  sample: ["it was made for driver 570.124.06, not 580.95.05"]
"""

import contextlib
import dataclasses
import os
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.cdi import (
    SERVICE,
    CdiState,
    RefreshUnit,
    check_generated,
    hook_of,
    needs_refresh,
    read_specification,
    read_unit,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import (
    Runner,
    module_runner,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.files import (
    FileState,
    read_file,
    write_file,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.file_record import Undo
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.systemd import restart
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore


_KEY = "cdi_specification:nvidia:"
# Unlike the service's place it is still there after the next boot.
_LASTING_PATH = "/etc/cdi/nvidia.yaml"


def _text(state: FileState) -> str | None:
    return None if state.content is None else state.content.decode(errors="replace")


def _refresh_unit(run: Runner) -> RefreshUnit:
    answer = run(
        [
            *("systemctl", "show", SERVICE),
            "--property=LoadState,Result,ConditionResult,ExecCondition",
        ]
    )
    return read_unit(dict(line.split("=", 1) for line in answer.stdout.splitlines() if "=" in line))


def _method(params: dict[str, typing.Any], run: Runner, check_mode: bool) -> tuple[str, str]:
    """Return how the specification is made, and why not by the service that is there."""
    if params["method"] != "auto":
        return params["method"], ""
    unit = _refresh_unit(run)
    if not unit.exists:
        return ("service" if check_mode and params["service_expected"] else "generate"), ""
    why = unit.declines(lambda path: _text(read_file(path)), os.path.exists)
    return ("generate", f"{SERVICE} does not start: {why}") if why else ("service", "")


def present(params: dict[str, typing.Any], run: Runner, check_mode: bool) -> dict[str, typing.Any]:
    """Make the specification again where it is not the loaded driver's."""
    params = _lasting(params)
    method, declined = _method(params, run, check_mode)
    driver = params["driver_version"]
    path = _path(params, method)
    before = found = _found(params)
    if params["previous_driver_version"] is not None:
        previous = params["previous_driver_version"]
        before = CdiState(bool(previous), previous or None)
    why = needs_refresh(before, driver)
    after = CdiState(True, driver or found.driver_version) if why else before
    if why and not check_mode and needs_refresh(found, driver):
        if method == "service" or declined:
            # systemd itself has the last word.
            declined = _by_service(params, run)
            method = "generate" if declined else "service"
        if method == "generate":
            _generate(params, run)
        path = _path(params, method)
        if not driver:
            after = read_specification(_text(read_file(path)))
    return {
        "changed": why is not None,
        "path": path,
        "method": method,
        "reasons": [reason for reason in (why, declined if why else "") if reason],
        "diff": _diff(path, before, after),
    }


def _lasting(params: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """Return the options with a path that is not the service's own, by whatever name."""
    if os.path.realpath(params["path"]) != os.path.realpath(params["service_path"]):
        return params
    return {**params, "path": _LASTING_PATH}


def _path(params: dict[str, typing.Any], method: str) -> str:
    return str(params["service_path" if method == "service" else "path"])


def _read(path: str) -> CdiState:
    return read_specification(_text(read_file(path)))


def _found(params: dict[str, typing.Any]) -> CdiState:
    """Return the specification that containers get: the service's own, where it is there."""
    state = _read(params["service_path"])
    return state if state.exists or params["method"] == "service" else _read(params["path"])


def _by_service(params: dict[str, typing.Any], run: Runner) -> str:
    """Have the service make it; return why that declined, where another way is allowed.

    :raises KubegpuError: it failed, or declined and nothing else is allowed.
    """
    restart(run, SERVICE)
    path = params["service_path"]
    text = _text(read_file(path)) or ""
    if not needs_refresh(read_specification(text), params["driver_version"]):
        return ""
    unit = _refresh_unit(run)
    if not unit.left_out:
        check_generated(text, f"{SERVICE} wrote no {path}")
        return ""
    why = unit.declines(lambda name: _text(read_file(name)), os.path.exists) or (
        "a condition of its unit is not met"
    )
    if params["method"] == "auto":
        return f"{SERVICE} does not start: {why}"
    raise KubegpuError(
        f"{SERVICE} did not start, so that it made no CDI specification: {why}.",
        evidence=f"systemctl show {SERVICE}: a condition was not met",
        next_step="Use method: auto or method: generate, which has nvidia-ctk make it.",
    )


def _generate(params: dict[str, typing.Any], run: Runner) -> None:
    answer = run(["nvidia-ctk", "cdi", "generate", "--format=yaml"], timeout=120)
    check_generated(answer.stdout, answer.words())
    store = StateStore(params["state_path"])
    with store.transaction():
        places = [params["path"]]
        if _read(params["service_path"]).exists:
            # Containers would go on getting what the service wrote for another driver.
            places.append(params["service_path"])
        for path in dict.fromkeys(places):
            before = read_file(path)
            after = dataclasses.replace(before, content=answer.stdout.encode())
            store.write_recorded(_key(path), before, after, {})


def absent(params: dict[str, typing.Any], check_mode: bool) -> dict[str, typing.Any]:
    """Undo what the record says of the file; without a record it is not ours."""
    store = StateStore(params["state_path"])
    with contextlib.nullcontext() if check_mode else store.transaction():
        # The specification may have been somewhere else than where one is made anew.
        keys = [*store.records(_KEY)] or [_key(params["path"])]
        undone = [_undo(store, key, check_mode) for key in keys]
    results = [result for result, _after in undone]
    if params["toolkit_removed"] or _key(params["service_path"]) not in keys:
        left = read_file(params["service_path"])
        # In check mode nothing was put back yet.
        left = {after.path: after for _result, after in undone}.get(left.path, left)
        results.append(_remove_left(params, left, check_mode))
    changed = [result for result in results if result["changed"]]
    return {
        "changed": bool(changed),
        "path": keys[0][len(_KEY) :],
        "method": "generate",
        "reasons": list(dict.fromkeys(result["reason"] for result in changed)),
        "diff": [result["diff"] for result in results],
    }


def _remove_left(
    params: dict[str, typing.Any], current: FileState, check_mode: bool
) -> dict[str, typing.Any]:
    """Remove what the service wrote, where the program that containers would run is gone."""
    path = params["service_path"]
    hook = hook_of(_text(current))
    gone = hook is not None and (
        not os.path.exists(hook) or (check_mode and params["toolkit_removed"])
    )
    after = FileState(current.path) if gone else current
    if gone and not check_mode:
        write_file(after)
    before = read_specification(_text(current))
    return {
        "changed": gone,
        "reason": f"it names {hook}, which is gone with the toolkit",
        "diff": _diff(path, before, read_specification(_text(after))),
    }


def _undo(store: StateStore, key: str, check_mode: bool) -> tuple[dict[str, typing.Any], FileState]:
    """Return what is reported, and the file as it is afterwards."""
    path = key[len(_KEY) :]
    current = read_file(path)
    after = current
    if store.record(key) is not None:
        way, target = store.undo_target(key, current)
        # Made again by somebody else since: theirs now, and it stays.
        after = current if way is Undo.REMOVE_LINES else target
        if not check_mode:
            store.write_undone(key, after)
    before = read_specification(_text(current))
    result = {
        "changed": after.sha256 != current.sha256,
        "reason": "this module made it",
        "diff": _diff(path, before, read_specification(_text(after))),
    }
    return result, after


def _key(path: str) -> str:
    return f"{_KEY}{path}"


def _diff(path: str, before: CdiState, after: CdiState) -> dict[str, str]:
    return {
        "before_header": path,
        "after_header": path,
        "before": before.describe(),
        "after": after.describe(),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "choices": ["present", "absent"],
                "default": "present",
            },
            "driver_version": {"type": "str"},
            "previous_driver_version": {"type": "str"},
            "method": {
                "type": "str",
                "choices": ["auto", "service", "generate"],
                "default": "auto",
            },
            "service_expected": {"type": "bool", "default": False},
            "toolkit_removed": {"type": "bool", "default": False},
            "path": {"type": "path", "default": _LASTING_PATH},
            "service_path": {"type": "path", "default": "/var/run/cdi/nvidia.yaml"},
            "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
        },
        supports_check_mode=True,
    )
    try:
        if module.params["state"] == "present":
            result = present(module.params, module_runner(module), module.check_mode)
        else:
            result = absent(module.params, module.check_mode)
    except KubegpuError as error:
        module.fail_json(msg=str(error))
    if not module._diff:
        # A task with `diff: false` has one that nobody could know beforehand.
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
