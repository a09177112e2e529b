# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: containerd_runtime
short_description: Add a runtime handler to containerd, or take it out again
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Gives the containerd of a node a runtime handler for GPU containers that inherits everything
    but its binary from the default runtime where that is of runc's type (crun is), else from runc.
  - Comments, order, number formats and unknown keys of the configuration survive to the byte;
    only the lines that must change, change. Config versions 1 to 4 are written.
  - Before anything is written the installed containerd is asked what the configuration means
    before and after (C(containerd config dump)); anything else than the wanted difference is
    refused. The file is written beside the old one and renamed; symbolic links are followed.
  - What was changed is recorded on the node, so that O(state=absent) brings back the very bytes,
    or, where somebody edited the file since, takes out our lines only.
  - It needs nothing but Python 3.9 on the node. The controller's C(tomlkit) is sent along to nodes
    whose Python has no TOML parser.
  - It never installs containerd.
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
      - V(present) adds the handler, or corrects what differs in one that is there.
      - V(absent) undoes what this module did. Without a record it removes only a handler that is
        exactly as this module writes it.
    type: str
    choices: [present, absent]
    default: present
  runtime_path:
    description: The handler's binary, C(BinaryName) in containerd's configuration.
    type: path
    default: /usr/bin/nvidia-container-runtime
  runtime_type:
    description: The handler's shim. Without it, C(io.containerd.runc.v2).
    type: str
  options:
    description:
      - Further options of the handler. They win over those that are inherited.
      - C(BinaryName) is not allowed here; it is O(runtime_path).
    type: dict
    default: {}
  set_default:
    description:
      - Whether the handler becomes the default runtime. V(false) leaves the default of somebody
        else alone, and takes back one that this module had set.
    type: bool
    default: false
  cdi:
    description:
      - Switches CDI on or off in CRI's settings. Without it the setting is left alone.
      - containerd 1.6 has no CDI, so there it is ignored, with the reason; from 2.0 on it is on
        unless it is switched off.
    type: bool
  enable_cri:
    description:
      - Whether to take CRI out of C(disabled_plugins), where Docker's packages put it. Without
        this it is only reported.
    type: bool
    default: false
  complete_runc:
    description:
      - Whether a runtime C(runc) without C(runtime_type), with which containerd starts no pod, gets
        C(io.containerd.runc.v2). Without this, such a node is refused.
    type: bool
    default: false
  config_path:
    description: containerd's configuration file.
    type: path
    default: /etc/containerd/config.toml
  drop_in_path:
    description: The file of our own that O(layout=drop_in) writes.
    type: path
    default: /etc/containerd/conf.d/99-nvidia.toml
  layout:
    description:
      - V(in_place) edits the file whose settings count, V(drop_in) writes O(drop_in_path) and
        adds it to C(imports) if need be.
      - V(auto) uses a drop-in file only where the installed containerd merges imported files key
        by key (2.1 and later) and imports that folder already.
      - Before 2.1 an imported file replaces the whole table of CRI. A drop-in file that would wipe
        settings in this way is refused.
      - A handler that is there already is corrected where it is, in any layout.
    type: str
    choices: [auto, in_place, drop_in]
    default: auto
  flavour:
    description:
      - Whose containerd this is. V(auto) looks for a Kubernetes distribution that brings its own.
      - Any but V(containerd) has its own values where O(config_path), O(drop_in_path), O(unit),
        O(socket) and O(containerd_path) are left at their defaults.
      - V(k3s), V(rke2) and V(k0s) write their configuration themselves, and it is never edited. The
        handler goes into the folder that it imports, or, with k3s and RKE2 whose containerd would
        lose other settings by that (before 2.1), into their template.
      - A template is never parsed. It is edited between the lines C(# BEGIN kubegpu.nodes) and
        C(# END kubegpu.nodes); one without them is refused, and where there is none, one is begun
        that takes over all of the distribution's own.
      - k3s and RKE2 make the handler V(nvidia) themselves when they start and find its program.
        That is not done twice; RV(restart_required) says so where they have not found it yet.
      - V(microk8s) is edited in C(containerd-template.toml), whose variables stay.
    type: str
    choices: [auto, containerd, k3s, rke2, k0s, microk8s]
    default: auto
  containerd_version:
    description: Version of containerd, where the installed binary should not be asked.
    type: str
  containerd_path:
    description: >-
      containerd's binary. Without it, that of the running daemon, else the first one in the usual
      folders.
    type: path
  validate:
    description:
      - Whether to compare what containerd makes of the configuration before and after. Without it
        RV(default_runtime) and RV(handlers) are empty.
    type: bool
    default: true
  restart:
    description:
      - Whether to restart containerd when the running one has not loaded the files as they are,
        and wait until CRI answers and lists the handler. Running containers are not touched.
      - If it does not come back, the old bytes are put back, containerd is restarted once more,
        and the failure quotes its journal.
    type: bool
    default: false
  restart_timeout:
    description: >-
      How many seconds a restart, and CRI after it, may take. With the default, k3s and RKE2, which
      start Kubernetes too, have 600.
    type: int
    default: 60
  unit:
    description: The systemd unit of containerd, or of the distribution that runs it.
    type: str
    default: containerd
  socket:
    description: The socket of containerd.
    type: path
    default: /run/containerd/containerd.sock
  wish:
    description:
      - A name for all that is asked here, such as a checksum of the caller's variables. Where
        nothing is left to do, it is noted on the node, and M(kubegpu.nodes.gpu_node_facts) returns
        it as C(settled) as long as no file that counts and no daemon was touched since. Who finds
        it there need not call this module.
    type: str
    default: ""
  tomlkit_archive:
    description:
      - Internal. The module's action plugin puts the controller's C(tomlkit) here, for nodes that
        have no TOML parser.
    type: str
seealso:
  - module: kubegpu.nodes.docker_runtime
"""

EXAMPLES = r"""
- name: Make the handler nvidia known, and restart containerd if need be
  kubegpu.nodes.containerd_runtime:
    restart: true

- name: Make it the default runtime, in CDI mode, and restart later
  kubegpu.nodes.containerd_runtime:
    set_default: true
    cdi: true
  register: containerd_handler

- name: Take it out again
  kubegpu.nodes.containerd_runtime:
    state: absent
    restart: true
"""

RETURN = r"""
restart_required:
  description:
    - Whether the running containerd has not loaded the files as they are now. This looks at the
      daemon, not at this run, so that it stays true until a restart.
  returned: success
  type: bool
  sample: true
restart_reason:
  description: Why a restart is required, or why none is even though a file changed.
  returned: success
  type: str
  sample: /etc/containerd/config.toml changes; the running containerd has the old one.
restarted:
  description: Whether containerd was restarted (in check mode, would have been).
  returned: success
  type: bool
  sample: false
default_runtime:
  description: >-
    The default runtime in effect after this run, as containerd says; null without O(validate).
  returned: success
  type: str
  sample: runc
handlers:
  description: The runtime handlers in effect after this run, by name; empty without O(validate).
  returned: success
  type: dict
  sample:
    nvidia:
      type: io.containerd.runc.v2
      path: /usr/bin/nvidia-container-runtime
      options:
        BinaryName: /usr/bin/nvidia-container-runtime
        SystemdCgroup: true
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
  sample: ["The handler nvidia is not in /etc/containerd/config.toml yet."]
diff:
  description: What changes in each file, with the lines around it. Secrets are covered.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: ""
      after: "version = 2\n"
      before_header: /etc/containerd/conf.d/99-nvidia.toml
      after_header: /etc/containerd/conf.d/99-nvidia.toml
"""

import dataclasses
import os
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.apply import (
    ContainerdRuntime,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.options import Settings
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.host import Dependencies
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.toml_parser import toml_parser
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import redact, redact_data
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore

ARGUMENTS: dict[str, dict[str, typing.Any]] = {
    "name": {"type": "str", "default": "nvidia"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "runtime_path": {"type": "path", "default": "/usr/bin/nvidia-container-runtime"},
    "runtime_type": {"type": "str"},
    "options": {"type": "dict", "default": {}},
    "set_default": {"type": "bool", "default": False},
    "cdi": {"type": "bool"},
    "enable_cri": {"type": "bool", "default": False},
    "complete_runc": {"type": "bool", "default": False},
    "config_path": {"type": "path", "default": "/etc/containerd/config.toml"},
    "drop_in_path": {"type": "path", "default": "/etc/containerd/conf.d/99-nvidia.toml"},
    "layout": {"type": "str", "choices": ["auto", "in_place", "drop_in"], "default": "auto"},
    "flavour": {
        "type": "str",
        "choices": ["auto", "containerd", "k3s", "rke2", "k0s", "microk8s"],
        "default": "auto",
    },
    "containerd_version": {"type": "str"},
    "containerd_path": {"type": "path"},
    "validate": {"type": "bool", "default": True},
    "restart": {"type": "bool", "default": False},
    "restart_timeout": {"type": "int", "default": 60},
    "unit": {"type": "str", "default": "containerd"},
    "socket": {"type": "path", "default": "/run/containerd/containerd.sock"},
    "wish": {"type": "str", "default": ""},
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
            scratch=module.tmpdir,
            exists=os.path.lexists,
        )
        result = ContainerdRuntime(_given(Request, params), _given(Settings, params), dependencies)(
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
    for warning in result.warnings:
        module.warn(printable(warning))
    values = dataclasses.asdict(result)
    del values["warnings"]
    values["handlers"] = redact_data(values["handlers"])
    if not module._diff:
        del values["diff"]
    module.exit_json(**values)


if __name__ == "__main__":
    main()
