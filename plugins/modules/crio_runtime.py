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
  - The handler is written to a separate drop-in file. C(crio.conf) and other drop-in files are
    read and never edited.
  - An existing handler with the requested program is compared key by key with what it needs
    (C(monitor_path), C(runtime_type), C(inherit_default_runtime), C(platform_runtime_paths),
    C(runtime_config_path)). A complete one is not changed. One that lacks something, such as the
    handler that C(nvidia-ctk) writes without C(monitor_path), is written again, completed from the
    node's own runtime, to O(drop_in_path).
  - CRI-O reads its drop-in files in the order of their names. If a later file overrides the
    requested settings, the module fails and names that file.
  - Changes are recorded on the node. O(state=absent) restores the original bytes or, if the
    file was edited since, removes only the settings of this module.
  - The node needs Python 3.9 or newer and nothing else. The controller's C(tomlkit) is sent to
    nodes whose Python has no TOML parser.
  - CRI-O itself is never installed. The module has not been tested with a running CRI-O; how CRI-O
    reads its files is taken from its source.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
  - kubegpu.nodes.runtime
  - kubegpu.nodes.runtime.cri
options:
  config_path:
    description: CRI-O's main configuration file, which need not exist.
    type: path
    default: /etc/crio/crio.conf
  drop_in_path:
    description: >-
      Drop-in file of the handler. CRI-O reads all files of its directory. Each handler needs a
      separate drop-in file.
    type: path
    default: /etc/crio/crio.conf.d/99-nvidia.toml
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
requirements:
  - Root on the node (C(become)), and systemd for O(restart).
notes:
  - CRI-O does not start with a handler whose O(runtime_path) does not exist.
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
file_changed:
  description: Whether a file was written or removed (in check mode, would be).
  returned: success
  type: bool
  sample: true
restart_required:
  description:
    - Whether the running CRI-O has not loaded the current files. It describes the daemon, not this
      run, and remains V(true) until a restart.
  returned: success
  type: bool
  sample: true
restart_reason:
  description: Why a restart is required, or was done.
  returned: success
  type: str
  sample: /etc/crio/crio.conf.d/99-nvidia.toml changes; the running crio has the old one.
restarted:
  description: Whether CRI-O was restarted (in check mode, would be restarted).
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
  description: Path of the backup of the original file; V(null) if there was none.
  returned: success
  type: str
  sample: /var/lib/kubegpu/backups/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
reasons:
  description: Reasons for changes, and for changes that were not made.
  returned: success
  type: list
  elements: str
  sample: ["crio.runtime.runtimes.nvidia.runtime_type is not set, requested is \"pod\"."]
diff:
  description: The changes of each file with surrounding lines. Secrets are redacted.
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

import os
import typing

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    InternalOptionsModule,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._crio.apply import (
    CrioRuntime,
    Dependencies,
    Settings,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._crio.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.module import (
    CRI_ARGUMENTS,
    apply_runtime,
    exit_result,
    from_options,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.toml_parser import (
    PARSER,
    toml_parser,
)

ARGUMENTS: dict[str, dict[str, typing.Any]] = {
    **CRI_ARGUMENTS,
    "config_path": {"type": "path", "default": "/etc/crio/crio.conf"},
    "drop_in_path": {"type": "path", "default": "/etc/crio/crio.conf.d/99-nvidia.toml"},
    "unit": {"type": "str", "default": "crio"},
    "socket": {"type": "path", "default": "/var/run/crio/crio.sock"},
}


def main() -> None:
    module = InternalOptionsModule(
        argument_spec=ARGUMENTS, internal=PARSER, supports_check_mode=True
    )
    params = module.params
    try:
        dependencies = Dependencies(
            run=module_runner(module),
            parse=toml_parser(params["_tomlkit"], module.tmpdir),
            store=StateStore(params["state_path"]),
            exists=os.path.lexists,
        )
        runtime = CrioRuntime(
            from_options(Request, params), from_options(Settings, params), dependencies
        )
        done = apply_runtime(module, dependencies.run, runtime)
    except KubegpuError as error:
        fail(module, error)
    exit_result(module, done)


if __name__ == "__main__":
    main()
