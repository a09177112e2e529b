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
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
options:
  state:
    description: >-
      V(absent) removes a specification that this module wrote, or puts back the one that was
      there. What the toolkit's service wrote goes with its package.
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
    description: V(auto) uses the toolkit's service where it is installed.
    type: str
    choices: [auto, service, generate]
    default: auto
  path:
    description: Where O(method=generate) writes the specification. With O(state=absent), whatever
      this module wrote is undone, wherever it is.
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
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._cdi import (
    SERVICE,
    CdiState,
    check_generated,
    needs_refresh,
    read_specification,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._command import (
    Runner,
    module_runner,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._files import (
    FileState,
    read_file,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record import Undo
from ansible_collections.kubegpu.nodes.plugins.module_utils._service import (
    read_daemon,
    restart,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._state import StateStore


_KEY = "cdi_specification:nvidia:"


def _text(state: FileState) -> str | None:
    return None if state.content is None else state.content.decode(errors="replace")


def _method(run: Runner, wanted: str) -> str:
    if wanted != "auto":
        return wanted
    return "service" if read_daemon(run, SERVICE).exists else "generate"


def present(params: dict[str, typing.Any], run: Runner, check_mode: bool) -> dict[str, typing.Any]:
    """Make the specification again where it is not the loaded driver's."""
    method = _method(run, params["method"])
    path = params["service_path"] if method == "service" else params["path"]
    driver = params["driver_version"]
    found = read_specification(_text(read_file(path)))
    before = found
    if params["previous_driver_version"] is not None:
        previous = params["previous_driver_version"]
        before = CdiState(bool(previous), previous or None)
    why = needs_refresh(before, driver)
    after = CdiState(True, driver or found.driver_version) if why else before
    if why and not check_mode and needs_refresh(found, driver):
        _make(params, run, method, path)
        if not driver:
            after = read_specification(_text(read_file(path)))
    return {
        "changed": why is not None,
        "path": path,
        "method": method,
        "reasons": [why] if why else [],
        "diff": _diff(path, before, after),
    }


def _make(params: dict[str, typing.Any], run: Runner, method: str, path: str) -> None:
    if method == "service":
        restart(run, SERVICE)
        check_generated(_text(read_file(path)) or "", f"{SERVICE} wrote no {path}")
        return
    answer = run(["nvidia-ctk", "cdi", "generate", "--format=yaml"], timeout=120)
    check_generated(answer.stdout, answer.words())
    store = StateStore(params["state_path"])
    with store.transaction():
        before = read_file(path)
        after = dataclasses.replace(before, content=answer.stdout.encode())
        store.write_recorded(_key(path), before, after, {})


def absent(params: dict[str, typing.Any], check_mode: bool) -> dict[str, typing.Any]:
    """Undo what the record says of the file; without a record it is not ours."""
    store = StateStore(params["state_path"])
    # The specification may have been somewhere else than where one is made anew.
    paths = [record.path for record in store.records(_KEY).values()] or [params["path"]]
    with contextlib.nullcontext() if check_mode else store.transaction():
        results = [_undo(store, path, check_mode) for path in paths]
    changed = any(result["changed"] for result in results)
    return {
        "changed": changed,
        "path": paths[0],
        "method": "generate",
        "reasons": ["this module made it"] if changed else [],
        "diff": [result["diff"] for result in results],
    }


def _undo(store: StateStore, path: str, check_mode: bool) -> dict[str, typing.Any]:
    current = read_file(path)
    after = current
    if store.record(_key(path)) is not None:
        way, target = store.undo_target(_key(path), current)
        # Made again by somebody else since: theirs now, and it stays.
        after = current if way is Undo.REMOVE_LINES else target
        if not check_mode:
            store.write_undone(_key(path), after)
    before = read_specification(_text(current))
    return {
        "changed": after.sha256 != current.sha256,
        "diff": _diff(path, before, read_specification(_text(after))),
    }


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
            "path": {"type": "path", "default": "/etc/cdi/nvidia.yaml"},
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
