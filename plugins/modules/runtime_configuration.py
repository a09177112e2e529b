#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: runtime_configuration
short_description: Save the configuration of all runtimes before a change, and restore it (internal)
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The playbooks and roles of this collection use it. Its options can change in any release.
  - Saves the files of containerd, Docker and CRI-O that M(kubegpu.nodes.containerd_runtime),
    M(kubegpu.nodes.docker_runtime) and M(kubegpu.nodes.crio_runtime) have changed on a node, and
    restores them, for the rollback of an upgrade.
  - A file that these modules changed for the first time after O(state=saved) gets its original
    content. A runtime that had no such file then is left as it is, and so is a file that another
    program wrote since.
  - Runtimes whose files are restored are restarted. If one does not work with them, it gets the
    files back that it had before this task. A unit that failed is restarted, too; one that was
    stopped is not.
  - A restart may take as long as in the modules of the runtimes, with k3s and RKE2 ten minutes, and
    CRI has to answer after it.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
options:
  name:
    description: >-
      Name of the change, such as its time. Files that were saved under another name are replaced
      by V(saved), and not used by V(restored).
    type: str
    required: true
  state:
    description:
      - V(saved) saves the files in the record, unless they are saved under this name already.
      - V(restored) restores the saved files. They remain saved.
      - V(forgotten) removes them from the record, whatever the name.
    type: str
    choices: [saved, restored, forgotten]
    required: true
  units:
    description: The units of the runtimes.
    type: dict
    suboptions:
      containerd:
        description: The unit of containerd, or of the distribution that it belongs to.
        type: str
        default: containerd
      docker:
        description: The unit of dockerd.
        type: str
        default: docker
      crio:
        description: The unit of CRI-O.
        type: str
        default: crio
  containerd_restart:
    description: >-
      Whether containerd may be restarted. RV(restart_required) lists the units that were not
      restarted.
    type: bool
    default: true
  crio_restart:
    description: The same for CRI-O.
    type: bool
    default: true
  docker_restart:
    description:
      - V(if_idle) restarts dockerd if that stops no container, that is if none runs or
        C(live-restore) is on. V(always) restarts it in any case, V(never) in none.
      - A dockerd that is not restarted loads the restored file when it starts the next time.
    type: str
    choices: [never, if_idle, always]
    default: if_idle
  docker_socket:
    description: The socket of dockerd.
    type: path
    default: /run/docker.sock
seealso:
  - module: kubegpu.nodes.containerd_runtime
  - module: kubegpu.nodes.docker_runtime
  - module: kubegpu.nodes.crio_runtime
"""

EXAMPLES = r"""
- name: Save the configuration of the runtimes
  kubegpu.nodes.runtime_configuration:
    name: upgrade-2026-11
    state: saved

- name: Restore it
  kubegpu.nodes.runtime_configuration:
    name: upgrade-2026-11
    state: restored
"""

RETURN = r"""
restored:
  description: The files that were restored (in check mode, would be).
  returned: always
  type: list
  elements: str
  sample: [/etc/docker/daemon.json]
left:
  description: The files that were not restored, with C(path) and C(reason).
  returned: always
  type: list
  elements: dict
  sample: []
restarted:
  description: The units that were restarted (in check mode, would be).
  returned: always
  type: list
  elements: str
  sample: [docker]
restart_required:
  description: The units that were not restarted although a restored file needs it.
  returned: always
  type: list
  elements: str
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

import os
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import (
    Runner,
    module_runner,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.options import STATE_ARGUMENTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.earlier import PREFIXES
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.runtime_configuration import (
    ConfigurationRequest,
    RuntimeConfiguration,
)

Values = dict[str, typing.Any]
ARGUMENTS: dict[str, dict[str, typing.Any]] = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["saved", "restored", "forgotten"], "required": True},
    "units": {
        "type": "dict",
        "options": {name: {"type": "str", "default": name} for name in PREFIXES},
    },
    "containerd_restart": {"type": "bool", "default": True},
    "crio_restart": {"type": "bool", "default": True},
    "docker_restart": {
        "type": "str",
        "choices": ["never", "if_idle", "always"],
        "default": "if_idle",
    },
    "docker_socket": {"type": "path", "default": "/run/docker.sock"},
    **STATE_ARGUMENTS,
}


def _apply(params: Values, run: Runner, check: bool) -> Values:
    store = StateStore(params["state_path"])
    request = ConfigurationRequest.from_params(params)
    configuration = RuntimeConfiguration(request, store, run, os.path.lexists, check)
    if check:
        return configuration.apply()
    with store.transaction():
        return configuration.apply()


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        values = _apply(module.params, module_runner(module), module.check_mode)
    except KubegpuError as error:
        fail(module, error)
    if not module._diff:
        values.pop("diff", None)
    module.exit_json(**values)


if __name__ == "__main__":
    main()
