# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: containerd_runtime
short_description: Add a runtime handler to containerd or remove it
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Adds a runtime handler for GPU containers to the containerd of a node. The handler inherits
    everything but its binary from the default runtime if that is of runc's type (such as crun),
    otherwise from runc.
  - Comments, order, number formats and unknown keys of the configuration are preserved; only the
    lines that have to change are changed. Config versions 1 to 4 are supported.
  - Before files are written, the effective configuration before and after the change is compared
    with C(containerd config dump). The module fails if anything but the requested settings would
    change. Files are replaced by renaming a temporary file; symbolic links are followed.
  - Changes are recorded on the node. O(state=absent) restores the original bytes. If a file was
    edited since, only the lines of this module are removed.
  - The node needs Python 3.9 or later and nothing else. Nodes whose Python has no TOML parser
    receive the controller's C(tomlkit).
  - The module does not install containerd.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
  - kubegpu.nodes.runtime
  - kubegpu.nodes.runtime.cri
  - kubegpu.nodes.runtime.fingerprint
options:
  runtime_type:
    description: Shim of the handler. If not set, C(io.containerd.runc.v2) is used.
    type: str
  options:
    description:
      - Further options of the handler. They override inherited options.
      - C(BinaryName) is not allowed here; use O(runtime_path).
    type: dict
    default: {}
  cdi:
    description:
      - Enable or disable CDI in the CRI settings. If not set, the setting is not changed.
      - containerd 1.6 does not support CDI; the option is then ignored and RV(reasons) says so.
        From 2.0 on, CDI is enabled by default.
    type: bool
  enable_cri:
    description:
      - Remove CRI from C(disabled_plugins), where Docker's packages put it. If V(false), the module
        only warns that CRI is disabled.
    type: bool
    default: false
  complete_runc:
    description:
      - Set C(runtime_type) of the runtime C(runc) to C(io.containerd.runc.v2) if it is missing.
        containerd cannot start pods without it. If V(false), the module fails on such a node.
    type: bool
    default: false
  config_path:
    description: containerd's configuration file.
    type: path
    default: /etc/containerd/config.toml
  drop_in_path:
    description: The drop-in file that O(layout=drop_in) writes.
    type: path
    default: /etc/containerd/conf.d/99-nvidia.toml
  layout:
    description:
      - V(in_place) edits the file whose settings take effect. V(drop_in) writes O(drop_in_path) and
        adds it to C(imports) if necessary.
      - V(auto) uses a drop-in file only if the installed containerd merges imported files key by
        key (2.1 and later) and already imports its directory.
      - Before 2.1, an imported file replaces the whole CRI table. The module fails if a drop-in
        file would remove settings in this way.
      - An existing handler is corrected in its file, whatever the layout.
    type: str
    choices: [auto, in_place, drop_in]
    default: auto
  distribution:
    description:
      - The distribution that containerd belongs to. V(auto) detects Kubernetes distributions that
        bring their own containerd.
      - Every value but V(containerd) has its own defaults for O(config_path), O(drop_in_path),
        O(unit), O(socket) and O(containerd_path).
      - V(k3s), V(rke2) and V(k0s) generate their configuration, which is never edited. The handler
        is written to the directory that it imports. With k3s and RKE2 before containerd 2.1, where
        this would remove other settings, it is written to their template.
      - A template is not parsed. It is edited between the lines C(# BEGIN kubegpu.nodes) and
        C(# END kubegpu.nodes); the module fails if an existing template does not have them. If
        there is no template, one is created that includes the distribution's own.
      - k3s and RKE2 add the handler V(nvidia) themselves if they find its program at startup. The
        module does not add it again; RV(restart_required) is true if they have to find it first.
      - V(microk8s) is edited in C(containerd-template.toml); its variables are preserved.
    type: str
    choices: [auto, containerd, k3s, rke2, k0s, microk8s]
    default: auto
  containerd_version:
    description: Version of containerd, to be used instead of that of the installed binary.
    type: str
  containerd_path:
    description: >-
      Path of containerd's binary. If not set, the binary of the running daemon is used, otherwise
      the first one in the usual directories.
    type: path
  validate:
    description:
      - Compare the effective configuration before and after the change with containerd. If
        V(false), RV(default_runtime) and RV(handlers) are empty.
    type: bool
    default: true
  restart_timeout:
    description: >-
      Time limit in seconds for the restart, and again for CRI to become ready. With the default
      value, 600 seconds are used for k3s and RKE2, which start Kubernetes too.
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
requirements:
  - Root on the node (C(become)), and systemd for O(restart).
notes:
  - containerd reads its configuration only when it starts. Without O(restart) the change takes
    effect with the next start; until then RV(restart_required) is V(true) in each run.
  - A pod uses the handler by a RuntimeClass, unless the handler is the default.
seealso:
  - module: kubegpu.nodes.docker_runtime
  - module: kubegpu.nodes.crio_runtime
  - name: containerd
    description: Layouts, distributions of Kubernetes, and what the handler inherits.
    link: https://kubegpu.example/nodes/blob/main/docs/containerd.md
"""

EXAMPLES = r"""
- name: Add the handler nvidia, and restart containerd if it has not loaded it
  kubegpu.nodes.containerd_runtime:
    restart: true

- name: Make it the default runtime, enable CDI, and leave the restart for later
  kubegpu.nodes.containerd_runtime:
    set_default: true
    cdi: true
  register: handler

# Running containers continue.
- name: Restart containerd in the maintenance window
  kubegpu.nodes.containerd_runtime:
    set_default: true
    cdi: true
    restart: true
  when: handler.restart_required

# k3s adds the handler nvidia itself if it finds the toolkit at its start: this restarts it.
- name: Use the containerd of k3s
  kubegpu.nodes.containerd_runtime:
    distribution: k3s
    restart: true

- name: Use the containerd of MicroK8s without its GPU addon
  kubegpu.nodes.containerd_runtime:
    distribution: microk8s
    restart: true

- name: Keep config.toml as it is, and write a drop-in file
  kubegpu.nodes.containerd_runtime:
    layout: drop_in
    drop_in_path: /etc/containerd/conf.d/99-nvidia.toml
    restart: true

- name: Add a second handler, which injects devices by CDI only
  kubegpu.nodes.containerd_runtime:
    name: nvidia-cdi
    runtime_path: /usr/bin/nvidia-container-runtime.cdi
    restart: true

- name: Let pods use the second handler
  kubernetes.core.k8s:
    definition:
      apiVersion: node.k8s.io/v1
      kind: RuntimeClass
      metadata: {name: nvidia-cdi}
      handler: nvidia-cdi
  delegate_to: localhost
  run_once: true

# Docker's package of containerd disables CRI in its configuration.
- name: Prepare the containerd of Docker's packages for Kubernetes
  kubegpu.nodes.containerd_runtime:
    enable_cri: true
    complete_runc: true
    options:
      SystemdCgroup: true
    restart: true

- name: Remove the handler
  kubegpu.nodes.containerd_runtime:
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
    - Whether the running containerd has not loaded the current files. It describes the daemon, not
      this run, and remains V(true) until a restart. containerd has no reload as dockerd has.
  returned: success
  type: bool
  sample: true
restart_reason:
  description: >-
    Why a restart is required or was done, or why none is required although a file changed.
  returned: success
  type: str
  sample: /etc/containerd/config.toml changes; the running containerd has the old one.
restarted:
  description: Whether containerd was restarted (in check mode, would be restarted).
  returned: success
  type: bool
  sample: false
default_runtime:
  description: >-
    The default runtime after this run, as reported by containerd; null without O(validate).
  returned: success
  type: str
  sample: runc
handlers:
  description: The runtime handlers after this run, by name; empty without O(validate).
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
  description: Path of the backup of the original file; V(null) if there was none.
  returned: success
  type: str
  sample: /var/lib/kubegpu/backups/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
reasons:
  description: Reasons for changes, and for changes that were not made.
  returned: success
  type: list
  elements: str
  sample: ["The handler nvidia is not in /etc/containerd/config.toml yet."]
diff:
  description: The changes of each file with surrounding lines. Secrets are redacted.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: ""
      after: "version = 2\n"
      before_header: /etc/containerd/conf.d/99-nvidia.toml
      after_header: /etc/containerd/conf.d/99-nvidia.toml
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

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.apply import (
    ContainerdRuntime,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.options import Settings
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.host import Dependencies
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
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    InternalOptionsModule,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore

ARGUMENTS: dict[str, dict[str, typing.Any]] = {
    **CRI_ARGUMENTS,
    "runtime_type": {"type": "str"},
    "options": {"type": "dict", "default": {}},
    "cdi": {"type": "bool"},
    "enable_cri": {"type": "bool", "default": False},
    "complete_runc": {"type": "bool", "default": False},
    "config_path": {"type": "path", "default": "/etc/containerd/config.toml"},
    "drop_in_path": {"type": "path", "default": "/etc/containerd/conf.d/99-nvidia.toml"},
    "layout": {"type": "str", "choices": ["auto", "in_place", "drop_in"], "default": "auto"},
    "distribution": {
        "type": "str",
        "choices": ["auto", "containerd", "k3s", "rke2", "k0s", "microk8s"],
        "default": "auto",
    },
    "containerd_version": {"type": "str"},
    "containerd_path": {"type": "path"},
    "validate": {"type": "bool", "default": True},
    "unit": {"type": "str", "default": "containerd"},
    "socket": {"type": "path", "default": "/run/containerd/containerd.sock"},
    "fingerprint": {"type": "str", "default": ""},
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
            scratch=module.tmpdir,
            exists=os.path.lexists,
        )
        runtime = ContainerdRuntime(
            from_options(Request, params), from_options(Settings, params), dependencies
        )
        result = apply_runtime(module, dependencies.run, runtime)
    except KubegpuError as error:
        fail(module, error)
    exit_result(module, result)


if __name__ == "__main__":
    main()
