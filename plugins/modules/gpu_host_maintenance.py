#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_host_maintenance
short_description: Drain a host without Kubernetes for maintenance, and release it
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes jobs of Slurm and containers of Docker off a host whose GPUs, driver or runtime are to be
    changed, and releases the host afterwards. For nodes of a Kubernetes cluster use
    M(kubegpu.nodes.gpu_node_maintenance), whose states and results are the same.
  - A node of Slurm is drained with a reason of this collection, and its jobs are waited for. It is
    resumed only if the drain is still this maintenance's. A node that was drained before remains
    drained.
  - Containers are waited for, or stopped and started again, the same ones, see O(containers).
    Before the first one is stopped, all are recorded, so that the next run of an interrupted
    maintenance starts them again. Their restart policies are switched off for the time.
  - Processes with a GPU open that belong to no service are waited for. They are never ended.
  - Nothing is stopped while something else may still finish. If that takes longer than O(timeout),
    the task fails and the host is still held. O(state=released) releases it.
  - While it waits, the task prints what it waits for, after 30 seconds and then once a minute.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
options:
  name:
    description: The name of the host, which is the key of its result.
    type: str
    required: true
  state:
    description:
      - V(cordoned) records the maintenance, and keeps new jobs of Slurm off the host. Without Slurm
        nothing keeps users from starting new work.
      - V(drained) also waits for what uses the host, and stops containers.
      - V(released) releases a host that this run holds. If another run holds it, the task fails
        with the name of that run, and the host is not changed. A host that no run holds is
        released already.
    type: str
    choices: [cordoned, drained, released]
    required: true
  run:
    description: Name of the maintenance. Only calls with the same name change or release the host.
    type: str
    required: true
  reason:
    description: The reason, for people who read the record.
    type: str
    default: ""
  pods:
    description:
      - V(gpu) takes off containers that got NVIDIA GPUs, by device requests, devices, or NVIDIA's
        runtime and C(NVIDIA_VISIBLE_DEVICES).
      - V(all) takes off all containers. Use it before a reboot.
    type: str
    choices: [gpu, all]
    default: gpu
  containers:
    description:
      - V(auto) stops containers with a restart policy and waits for the others, which may be jobs
        of users. V(stop) stops all, and V(wait) none.
      - A container that Docker removes when it ends (C(--rm)) cannot be started again, and is
        waited for in any case, unless O(unmanaged=delete).
    type: str
    choices: [auto, stop, wait]
    default: auto
  unmanaged:
    description: >-
      V(delete) also stops containers that Docker removes when they end. They are not started again.
    type: str
    choices: [refuse, delete]
    default: refuse
  scheduler:
    description: >-
      V(slurm) if Slurm manages the host, V(none) if not. V(auto) asks whether its unit C(slurmd)
      is active.
    type: str
    choices: [auto, slurm, none]
    default: auto
  slurm_node:
    description: >-
      The C(NodeName) of the host. By default the node whose C(NodeHostName) is the host's name.
    type: str
    default: ""
  restart_slurmd:
    description: >-
      Whether C(slurmd) is restarted once if Slurm refused the registration of the host
      (C(INVALID_REG)), as it does while the GPUs have no driver. Only with O(state=cordoned).
    type: bool
    default: false
  timeout:
    description: Time limit for jobs, containers and processes in seconds.
    type: int
    default: 900
  poll:
    description: Seconds between two looks.
    type: int
    default: 5
  socket:
    description: The socket of dockerd.
    type: path
    default: /run/docker.sock
  unit:
    description: The unit of dockerd.
    type: str
    default: docker
attributes:
  check_mode:
    description: >-
      Returns which containers would be stopped and what would be waited for, which is assumed to
      end in time.
    support: full
seealso:
  - module: kubegpu.nodes.gpu_node_maintenance
  - module: kubegpu.nodes.gpu_node_health
notes:
  - Slurm is asked by C(scontrol) and C(squeue) on the host, as root.
"""

EXAMPLES = r"""
- name: Wait two hours for jobs, then stop the services that use GPUs
  kubegpu.nodes.gpu_host_maintenance:
    name: "{{ inventory_hostname }}"
    state: drained
    run: new-power-supplies
    timeout: 7200

- name: Release the host, with its containers
  kubegpu.nodes.gpu_host_maintenance:
    name: "{{ inventory_hostname }}"
    state: released
    run: new-power-supplies
"""

RETURN = r"""
ok:
  description: Whether the host is in the requested state.
  returned: always
  type: bool
  sample: true
nodes:
  description: The host, by its name.
  returned: always
  type: dict
  contains:
    node:
      description: The host's name.
      returned: always
      type: str
      sample: gpu1
    ok:
      description: Whether the host is in the requested state.
      returned: always
      type: bool
      sample: true
    changed:
      description: Whether the host was changed (in check mode, would be).
      returned: always
      type: bool
      sample: true
    ready:
      description: Whether Slurm reaches the host; without Slurm V(true).
      returned: always
      type: bool
      sample: true
    unschedulable:
      description: Whether the host is in maintenance, or takes no jobs of Slurm.
      returned: always
      type: bool
      sample: true
    was_unschedulable:
      description: Whether the host took no jobs of Slurm before the maintenance began.
      returned: always
      type: bool
      sample: false
    held_by:
      description: The run that holds the host now; empty for none.
      returned: always
      type: str
      sample: new-power-supplies
    slurm_node:
      description: The host's name in Slurm; empty without Slurm.
      returned: always
      type: str
      sample: dl-rack2-04
    evicted:
      description: >-
        The containers that were stopped (in check mode, would be), with C(namespace) (V(docker))
        and C(name).
      returned: always
      type: list
      elements: dict
      sample: [{namespace: docker, name: web}]
    waiting:
      description: >-
        What has not left, with C(namespace) (V(slurm), V(docker) or V(process)) and C(name).
      returned: always
      type: list
      elements: dict
      sample: [{namespace: slurm, name: job 12}]
    findings:
      description: >-
        Why the host is not in the requested state, with C(code), C(cause), C(evidence) and
        C(next_step).
      returned: always
      type: list
      elements: dict
      sample: []
cause:
  description: What is wrong, with the name of the file, option or package.
  returned: failure
  type: str
evidence:
  description: What shows it, such as a line of a log; may be empty.
  returned: failure
  type: str
next_step:
  description: What you can do; may be empty.
  returned: failure
  type: str
"""

import functools
import socket
import typing

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    InternalOptionsModule,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.device_users import (
    find_users,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.api import call
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.apply import (
    Dependencies,
    HostMaintenance,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.engine import Engine
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.options import (
    ARGUMENTS,
    read_request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.scheduler import (
    Scheduler,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.options import STATE_ARGUMENTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore

_ARGUMENT_SPEC: dict[str, dict[str, typing.Any]] = {
    **ARGUMENTS,
    **STATE_ARGUMENTS,
}
# Seconds after which the module returns unfinished (0: none), and what the slice before returned.
_INTERNAL: dict[str, dict[str, typing.Any]] = {
    "_slice": {"type": "int", "default": 0},
    "_carry": {"type": "dict"},
}


def main() -> None:
    module = InternalOptionsModule(
        argument_spec=_ARGUMENT_SPEC, internal=_INTERNAL, supports_check_mode=True
    )
    params = module.params
    try:
        request = read_request(params)
        run = module_runner(module)
        maintenance = HostMaintenance(
            request,
            Dependencies(
                run=run,
                store=StateStore(params["state_path"]),
                engine=Engine(functools.partial(call, request.socket)),
                users=lambda: find_users(NodeReader()),
                scheduler=lambda name: Scheduler(run, name, socket.gethostname()),
                warn=lambda text: module.warn(printable(text)),
            ),
            dry_run=module.check_mode,
            limit=params["_slice"],
            carried=params["_carry"],
        )
        row = maintenance.run()
    except KubegpuError as error:
        fail(module, error)
    before, after = row.pop("diff")
    values: dict[str, typing.Any] = {
        "changed": row["changed"],
        "ok": row["ok"],
        "nodes": {request.name: row},
    }
    if module._diff:
        values["diff"] = {"before": before, "after": after}
    if maintenance.progress:
        module.exit_json(**values, _carry=maintenance.carry(), _progress=maintenance.progress)
    if row["findings"]:
        first = row["findings"][0]
        parts = {name: first[name] for name in ("evidence", "next_step", "code")}
        fail(module, KubegpuError(f"{request.name}: {first['cause']}", **parts), **values)
    module.exit_json(**values)


if __name__ == "__main__":
    main()
