# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: crio_runtime
short_description: Add a GPU runtime handler to CRI-O or remove it
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Adds a runtime handler for GPU containers to the CRI-O of a node. The handler inherits all
    settings but its program from the node's own runtime, such as the C(crun) of CRI-O's packages in
    C(10-crio.conf), including the monitor.
  - The handler is written to a drop-in file of its own. C(crio.conf) and other drop-in files are
    read and never edited. An existing handler with the requested program is not changed.
  - CRI-O reads its drop-in files in the order of their names. If a later file overrides the
    requested settings, the module fails and names that file.
  - Changes are recorded on the node. O(state=absent) restores the original bytes or, if somebody
    edited the file since, removes only the settings of this module.
  - The node needs Python 3.9 or newer and nothing else. The controller's C(tomlkit) is sent to
    nodes whose Python has no TOML parser.
  - CRI-O itself is never installed. The module has not been tested with a real CRI-O; the order in
    which it reads its files is taken from its source.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
options:
  name:
    description: Name of the handler, as used in a RuntimeClass.
    type: str
    default: nvidia
  state:
    description:
      - V(present) writes the handler, or corrects the drop-in file.
      - V(absent) undoes the changes of this module and nothing else.
    type: str
    choices: [present, absent]
    default: present
  runtime_path:
    description: The handler's program. CRI-O does not start with one that does not exist.
    type: path
    default: /usr/bin/nvidia-container-runtime
  set_default:
    description:
      - Whether the handler becomes the default runtime. V(false) reverts a default that this module
        has set, and keeps any other.
    type: bool
    default: false
  config_path:
    description: CRI-O's main configuration file, which need not exist.
    type: path
    default: /etc/crio/crio.conf
  drop_in_path:
    description: >-
      Drop-in file of the handler. CRI-O reads all files of its directory. Each handler needs a
      drop-in file of its own.
    type: path
    default: /etc/crio/crio.conf.d/99-nvidia.toml
  restart:
    description:
      - Whether to restart CRI-O if the running daemon has not loaded the current files, and wait
        until it responds. Running containers continue.
      - If CRI-O does not come back, the old file is restored, CRI-O is restarted once more, and the
        failure quotes its journal.
    type: bool
    default: false
  restart_timeout:
    description: Time limit in seconds of a restart, and of the wait for CRI after it.
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
- name: Add the handler nvidia, and restart CRI-O if required
  kubegpu.nodes.crio_runtime:
    restart: true

- name: Let NVIDIA's runtime find the crun of CRI-O's packages
  kubegpu.nodes.container_toolkit_config:
    settings:
      nvidia-container-runtime.runtimes: [/usr/libexec/crio/crun, crun, runc]

- name: Remove it
  kubegpu.nodes.crio_runtime:
    state: absent
    restart: true
"""

RETURN = r"""
restart_required:
  description:
    - Whether the running CRI-O has not loaded the current files. It describes the daemon, not this
      run, and stays V(true) until a restart.
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
  description: The default runtime in the files after this run; V(null) if none is set.
  returned: success
  type: str
  sample: crun
handlers:
  description: The handlers in the files after this run, by name.
  returned: success
  type: dict
  sample:
    nvidia:
      type: pod
      path: /usr/bin/nvidia-container-runtime
backup_file:
  description: Path of the backup of the file before the first change; V(null) without one.
  returned: success
  type: str
  sample: /var/lib/kubegpu/backups/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
reasons:
  description: The reason for each change, and for each change that was not made.
  returned: success
  type: list
  elements: str
  sample: ["crio.runtime.runtimes.nvidia.runtime_type is not set, asked for is \"pod\"."]
diff:
  description: The changed lines of the file with context. Secrets are masked.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: ""
      after: "[crio.runtime.runtimes.nvidia]\n"
      before_header: /etc/crio/crio.conf.d/99-nvidia.toml
      after_header: /etc/crio/crio.conf.d/99-nvidia.toml
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

import dataclasses
import os
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
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
        fail(module, error)
    for warning in done.warnings:
        module.warn(printable(warning))
    result = dataclasses.asdict(done)
    del result["warnings"]
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
