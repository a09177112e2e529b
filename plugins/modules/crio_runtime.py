# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: crio_runtime
short_description: Add a runtime handler to CRI-O, or take it out again
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Gives the CRI-O of a node a runtime handler for GPU containers that inherits everything but its
    program from the node's own runtime, such as the C(crun) of CRI-O's own packages in
    C(10-crio.conf), monitor included.
  - It goes into a drop-in file of its own. C(crio.conf) and the files of others are read and never
    edited. A handler that is there already with the wanted program is left to whoever wrote it.
  - CRI-O reads its drop-in files by name. Where a later one has the last word on what is wanted,
    that is refused with its name.
  - What was changed is recorded on the node, so that O(state=absent) brings back the very bytes,
    or, where somebody edited the file since, takes out our settings only.
  - It needs nothing but Python 3.9 on the node. The controller's C(tomlkit) is sent along to nodes
    whose Python has no TOML parser.
  - It never installs CRI-O. It was not tried with a real CRI-O, which was not there to try; how it
    reads its files is taken from its source.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
options:
  name:
    description: Name of the handler, as it stands in a RuntimeClass.
    type: str
    default: nvidia
  state:
    description:
      - V(present) writes the handler, or corrects what differs in our own file.
      - V(absent) undoes what this module did. What it did not write stays.
    type: str
    choices: [present, absent]
    default: present
  runtime_path:
    description: The handler's program. CRI-O does not start with one that does not exist.
    type: path
    default: /usr/bin/nvidia-container-runtime
  set_default:
    description:
      - Whether the handler becomes the default runtime. V(false) takes back a default that this
        module had set, and leaves that of somebody else alone.
    type: bool
    default: false
  config_path:
    description: CRI-O's main configuration file, which need not exist.
    type: path
    default: /etc/crio/crio.conf
  drop_in_path:
    description: >-
      The file of our own. CRI-O reads every file of its folder. Each handler has its own.
    type: path
    default: /etc/crio/crio.conf.d/99-nvidia.toml
  restart:
    description:
      - Whether to restart CRI-O when the running one has not loaded the files as they are, and wait
        until it answers. Running containers are not touched.
      - If it does not come back, the old bytes are put back, CRI-O is restarted once more, and the
        failure quotes its journal.
    type: bool
    default: false
  restart_timeout:
    description: How many seconds a restart, and CRI after it, may take.
    type: int
    default: 60
  unit:
    description: The systemd unit of CRI-O.
    type: str
    default: crio
  socket:
    description: The socket of CRI-O.
    type: path
    default: /var/run/crio/crio.sock
  tomlkit_archive:
    description:
      - Internal. The module's action plugin puts the controller's C(tomlkit) here, for nodes that
        have no TOML parser.
    type: str
seealso:
  - module: kubegpu.nodes.containerd_runtime
  - module: kubegpu.nodes.container_toolkit_config
"""

EXAMPLES = r"""
- name: Make the handler nvidia known, and restart CRI-O if need be
  kubegpu.nodes.crio_runtime:
    restart: true

- name: Let NVIDIA's runtime find the crun of CRI-O's own packages
  kubegpu.nodes.container_toolkit_config:
    settings:
      nvidia-container-runtime.runtimes: [/usr/libexec/crio/crun, crun, runc]

- name: Take it out again
  kubegpu.nodes.crio_runtime:
    state: absent
    restart: true
"""

RETURN = r"""
restart_required:
  description:
    - Whether the running CRI-O has not loaded the files as they are now. This looks at the daemon,
      not at this run, so that it stays true until a restart.
  returned: success
  type: bool
  sample: true
restart_reason:
  description: Why a restart is required.
  returned: success
  type: str
  sample: /etc/crio/crio.conf.d/99-nvidia.toml changes; the running crio has the old one.
restarted:
  description: Whether CRI-O was restarted (in check mode, would have been).
  returned: success
  type: bool
  sample: false
default_runtime:
  description: The default runtime that the files name after this run; null where none does.
  returned: success
  type: str
  sample: crun
handlers:
  description: The handlers that the files name after this run, by name.
  returned: success
  type: dict
  sample:
    nvidia:
      type: pod
      path: /usr/bin/nvidia-container-runtime
backup_file:
  description: Where the file as it was before this module's first change is kept, if there was one.
  returned: success
  type: str
  sample: /var/lib/kubegpu/backups/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
reasons:
  description: Why each thing was changed, or was not.
  returned: success
  type: list
  elements: str
  sample: ["crio.runtime.runtimes.nvidia.runtime_type is not set, asked for is \"pod\"."]
diff:
  description: What changes in the file, with the lines around it. Secrets are covered.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: ""
      after: "[crio.runtime.runtimes.nvidia]\n"
      before_header: /etc/crio/crio.conf.d/99-nvidia.toml
      after_header: /etc/crio/crio.conf.d/99-nvidia.toml
"""

import dataclasses
import os
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import redact
from ansible_collections.kubegpu.nodes.plugins.module_utils._crio.apply import (
    CrioRuntime,
    Dependencies,
    Settings,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._crio.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.toolkit_paths import (
    RUNTIME_PATH,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.toml_parser import toml_parser

ARGUMENTS: dict[str, dict[str, typing.Any]] = {
    "name": {"type": "str", "default": "nvidia"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "runtime_path": {"type": "path", "default": RUNTIME_PATH},
    "set_default": {"type": "bool", "default": False},
    "config_path": {"type": "path", "default": "/etc/crio/crio.conf"},
    "drop_in_path": {"type": "path", "default": "/etc/crio/crio.conf.d/99-nvidia.toml"},
    "restart": {"type": "bool", "default": False},
    "restart_timeout": {"type": "int", "default": 60},
    "unit": {"type": "str", "default": "crio"},
    "socket": {"type": "path", "default": "/var/run/crio/crio.sock"},
    "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
    "tomlkit_archive": {"type": "str", "no_log": True},
}


def _given(kind: typing.Any, params: dict[str, typing.Any]) -> typing.Any:
    """Return a dataclass with those of its fields that are options of the module."""
    names = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in params.items() if name in names})


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    try:
        dependencies = Dependencies(
            run=module_runner(module),
            parse=toml_parser(params["tomlkit_archive"], module.tmpdir),
            store=StateStore(params["state_path"]),
            exists=os.path.lexists,
        )
        done = CrioRuntime(_given(Request, params), _given(Settings, params), dependencies)(
            module.check_mode
        )
    except KubegpuError as error:
        # A daemon's journal quotes its configuration.
        module.fail_json(
            msg=redact(str(error)),
            cause=redact(error.cause),
            evidence=redact(error.evidence),
            next_step=redact(error.next_step),
        )
    for warning in done.warnings:
        module.warn(printable(warning))
    result = dataclasses.asdict(done)
    del result["warnings"]
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
