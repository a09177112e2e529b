# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: docker_runtime
short_description: Add a GPU runtime to Docker or remove it
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Adds a runtime for GPU containers to the dockerd of a node, and optionally makes it the default.
  - C(daemon.json) is edited as text. Order, indentation, line ends, 64-bit integers and all other
    keys are preserved byte for byte; only lines that must change are changed.
  - The result is checked before it is written, with C(dockerd --validate) if dockerd has it (23.0
    and newer). An option that is also on dockerd's command line is an error. The file is written
    to a temporary file and renamed; symbolic links are followed.
  - Changes are recorded on the node. O(state=absent) restores the original bytes or, if the
    file was edited since, removes only the settings of this module.
  - Whether dockerd needs a reload or a restart is decided by querying the running daemon on its
    socket. If a run is killed before its reload, the next one does it.
  - The node needs Python 3.9 or newer and nothing else. Docker itself is never installed.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
  - kubegpu.nodes.runtime
  - kubegpu.nodes.runtime.fingerprint
options:
  runtime_path:
    description: Binary of the runtime, as an absolute path or the name of a program.
    type: str
    default: /usr/bin/nvidia-container-runtime
  runtime_args:
    description:
      - Arguments of the runtime, C(runtimeArgs) in the file.
      - If it is not set, existing arguments are kept. An empty list removes them.
    type: list
    elements: str
  cdi:
    description:
      - Enables or disables C(features.cdi). If it is not set, the setting is not changed.
      - Docker supports CDI from 25.0 on and enables it by default from 28.3 on. Older releases
        ignore the setting, which is reported.
    type: bool
  config_path:
    description: Docker's configuration file.
    type: path
    default: /etc/docker/daemon.json
  docker_version:
    description: Version of Docker. If it is not set, the installed dockerd is queried.
    type: str
  validate:
    description: Whether the installed dockerd checks the file before it is written.
    type: bool
    default: true
  reload:
    description:
      - Whether to reload dockerd if the running daemon does not have the runtimes and the default
        of the file. A reload stops no container.
      - A reload does not remove what the file no longer names. During one reload the file therefore
        names the old defaults explicitly; then it gets its final content.
    type: bool
    default: false
  restart:
    description:
      - Whether to restart dockerd if RV(restart_required) would be true. A restart stops the
        containers unless C(live-restore) is enabled.
      - V(if_idle) restarts it only if no container runs or C(live-restore) is enabled.
    type: str
    choices: [never, if_idle, always]
    default: never
  unit:
    description: The systemd unit of dockerd.
    type: str
    default: docker
  socket:
    description: The socket of dockerd's API.
    type: path
    default: /run/docker.sock
requirements:
  - Root on the node (C(become)), and systemd for O(reload) and O(restart).
notes:
  - dockerd has the runtimes and the default of the file after a reload, which stops no container.
    Other settings, and the first C(--gpus) after the toolkit was installed, need a restart, which
    stops containers unless C(live-restore) is enabled.
  - Docker older than 19.03 has no C(--gpus). It gets the runtime, and RV(reasons) says so.
  - If dockerd does not have the runtime after a reload or restart, the old file is restored,
    dockerd is reloaded or restarted once more, and the failure quotes its journal.
seealso:
  - module: kubegpu.nodes.containerd_runtime
  - name: Verification
    description: How a container that gets a GPU is verified, and what to do if it gets none.
    link: https://kubegpu.example/nodes/blob/main/docs/verify.md
"""

EXAMPLES = r"""
- name: Add the runtime nvidia without stopping a container
  kubegpu.nodes.docker_runtime:
    reload: true
  register: docker

# dockerd looks for the hook of --gpus only when it starts.
- name: Show why a restart is left
  ansible.builtin.debug:
    msg: "{{ docker.restart_reason }}"
  when: docker.restart_required

- name: Make it the default, and restart if no container is stopped by that
  kubegpu.nodes.docker_runtime:
    set_default: true
    reload: true
    restart: if_idle

- name: Restart in a maintenance window in any case
  kubegpu.nodes.docker_runtime:
    set_default: true
    reload: true
    restart: always

- name: Only write the file, for a handler that reloads dockerd at the end of the play
  kubegpu.nodes.docker_runtime:
  register: docker
  notify: Reload Docker

- name: Enable CDI (Docker 25.0 to 28.2), for docker run --device nvidia.com/gpu=all
  kubegpu.nodes.docker_runtime:
    cdi: true
    reload: true
    restart: if_idle

- name: Add a second runtime, which injects devices by CDI only
  kubegpu.nodes.docker_runtime:
    name: nvidia-cdi
    runtime_path: /usr/bin/nvidia-container-runtime.cdi
    reload: true

- name: Remove the runtime, and restore daemon.json
  kubegpu.nodes.docker_runtime:
    state: absent
    reload: true
"""

RETURN = r"""
file_changed:
  description: Whether a file was written or removed (in check mode, would be).
  returned: success
  type: bool
  sample: true
restart_required:
  description:
    - Whether the running dockerd needs a restart, because a reload does not apply the file, or
      for C(--gpus). It describes the daemon, not this run, and remains V(true) until a restart.
  returned: success
  type: bool
  sample: true
restart_reason:
  description: Why a restart is required, or was done; V(null) otherwise.
  returned: success
  type: str
  sample: >-
    --gpus needs a dockerd that was started after /usr/bin/nvidia-container-runtime-hook was
    installed: it looks for it once, at start
restarted:
  description: Whether dockerd was restarted (in check mode, would be restarted).
  returned: success
  type: bool
  sample: false
reload_required:
  description:
    - Whether the running dockerd has other runtimes or another default than the file, which a
      reload applies. It describes the daemon, not this run, and remains V(true) until a reload.
  returned: success
  type: bool
  sample: false
reload_reason:
  description: Why a reload is required, or was done; V(null) otherwise.
  returned: success
  type: str
  sample: the running dockerd does not know the runtime nvidia
reloaded:
  description: Whether dockerd was reloaded (in check mode, would have been).
  returned: success
  type: bool
  sample: true
waiting_containers:
  description: >-
    Number of running containers for which a required restart is not done with C(restart=if_idle);
    V(null) if they are not the reason.
  returned: success
  type: int
  sample: 2
default_runtime:
  description: The default runtime according to the file and dockerd's command line.
  returned: success
  type: str
  sample: runc
runtimes:
  description: The runtimes in the file, by name.
  returned: success
  type: dict
  sample:
    nvidia:
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
  sample: [runtimes.nvidia is set]
diff:
  description: The changes of each file with surrounding lines. Secrets are redacted.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: ""
      after: "{\"runtimes\": {}}\n"
      before_header: /etc/docker/daemon.json
      after_header: /etc/docker/daemon.json
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

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.api import (
    find_program,
    read_info,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.apply import DockerRuntime
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.types import (
    Dependencies,
    Request,
    Settings,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.toolkit_paths import (
    RUNTIME_PATH,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.module import (
    RUNTIME_ARGUMENTS,
    apply_runtime,
    exit_result,
    from_options,
)

ARGUMENTS: dict[str, dict[str, typing.Any]] = {
    **RUNTIME_ARGUMENTS,
    "runtime_path": {"type": "str", "default": RUNTIME_PATH},
    "runtime_args": {"type": "list", "elements": "str"},
    "cdi": {"type": "bool"},
    "config_path": {"type": "path", "default": "/etc/docker/daemon.json"},
    "docker_version": {"type": "str"},
    "validate": {"type": "bool", "default": True},
    "reload": {"type": "bool", "default": False},
    "restart": {"type": "str", "choices": ["never", "if_idle", "always"], "default": "never"},
    "unit": {"type": "str", "default": "docker"},
    "socket": {"type": "path", "default": "/run/docker.sock"},
    "fingerprint": {"type": "str", "default": ""},
}


def _request(params: dict[str, typing.Any]) -> Request:
    arguments = params["runtime_args"]
    return Request(
        name=params["name"],
        present=params["state"] == "present",
        runtime_path=params["runtime_path"],
        runtime_args=None if arguments is None else tuple(arguments),
        set_default=params["set_default"],
        cdi=params["cdi"],
    )


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    try:
        dependencies = Dependencies(
            run=module_runner(module),
            store=StateStore(params["state_path"]),
            temporary_directory=module.tmpdir,
            read_info=read_info,
            find_program=find_program,
        )
        done = apply_runtime(
            module,
            dependencies.run,
            DockerRuntime(_request(params), from_options(Settings, params), dependencies),
        )
    except KubegpuError as error:
        fail(module, error)
    exit_result(module, done)


if __name__ == "__main__":
    main()
