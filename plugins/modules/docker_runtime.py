# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: docker_runtime
short_description: Add a runtime to Docker, or take it out again
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Gives the dockerd of a node a runtime for GPU containers, and makes it the default if wanted.
  - C(daemon.json) is edited as text. Order, indentation, line ends, 64-bit integers and every
    other key survive to the byte; only the lines that must change, change.
  - Before anything is written the result is checked, with C(dockerd --validate) where there is one
    (23.0 and newer), and an option that also stands on dockerd's command line is found. The file
    is written beside the old one and renamed; symbolic links are followed.
  - What was changed is recorded on the node, so that O(state=absent) brings back the very bytes,
    or, where somebody edited the file since, takes out our lines only.
  - Whether dockerd has to be reloaded or restarted is found out by asking the running one over its
    socket, so a run that died before its reload is repaired by the next one.
  - It needs nothing but Python 3.9 on the node, and never installs Docker.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
options:
  name:
    description: Name of the runtime, as in C(docker run --runtime=nvidia).
    type: str
    default: nvidia
  state:
    description:
      - V(present) adds the runtime, or corrects what differs in one that is there.
      - V(absent) undoes what this module did. Without a record it removes only a runtime that is
        exactly as this module writes it.
    type: str
    choices: [present, absent]
    default: present
  runtime_path:
    description: The runtime's binary, an absolute path or a program's name.
    type: str
    default: /usr/bin/nvidia-container-runtime
  runtime_args:
    description:
      - Arguments of the runtime, C(runtimeArgs) in the file.
      - Without it those that are there are left alone; an empty list removes them.
    type: list
    elements: str
  set_default:
    description:
      - Whether the runtime becomes the default. V(false) leaves the default of somebody else
        alone, and takes back one that this module had set.
    type: bool
    default: false
  cdi:
    description:
      - Switches C(features.cdi) on or off. Without it the setting is left alone.
      - Docker has CDI since 25.0 and switches it on by default in 28.3 and newer. Older than
        25.0 ignores the setting, which is reported.
    type: bool
  config_path:
    description: Docker's configuration file.
    type: path
    default: /etc/docker/daemon.json
  docker_version:
    description: Version of Docker, where the installed dockerd should not be asked.
    type: str
  validate:
    description: Whether to have the installed dockerd check the file before it is written.
    type: bool
    default: true
  reload:
    description:
      - Whether to reload dockerd when the running one does not have the file's runtimes and
        default. No container is stopped by that.
      - A reload does not take back what the file no longer names, so for one reload the file says
        explicitly what is to go; then it gets its final shape.
    type: bool
    default: false
  restart:
    description:
      - Whether to restart dockerd where RV(restart_required) would be true. A restart stops the
        containers unless C(live-restore) is on.
      - V(if_idle) does it only where no container runs or C(live-restore) is on.
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
  fingerprint:
    description:
      - Fingerprint of the caller's settings. If nothing has to change, it is stored on the node and
        M(kubegpu.nodes.gpu_node_facts) returns it in C(converged) until a relevant file or the
        daemon changes. Callers that find their fingerprint there can skip this module.
    type: str
    default: ""
notes:
  - Docker older than 19.03 has no C(--gpus). It gets the runtime, and RV(reasons) says so.
  - If dockerd does not come up with the runtime after a reload or restart, the old file is put
    back, dockerd is reloaded or restarted once more, and the failure quotes its journal.
seealso:
  - module: kubegpu.nodes.containerd_runtime
"""

EXAMPLES = r"""
- name: Make the runtime nvidia known without stopping a container
  kubegpu.nodes.docker_runtime:
    reload: true

- name: Make it the default, and restart where --gpus needs it and nobody is disturbed
  kubegpu.nodes.docker_runtime:
    set_default: true
    reload: true
    restart: if_idle
  register: docker_gpu_runtime

- name: Take it out again
  kubegpu.nodes.docker_runtime:
    state: absent
    reload: true
"""

RETURN = r"""
restart_required:
  description:
    - Whether the running dockerd needs a restart for what the file says, or for C(--gpus). This
      looks at the daemon, not at this run, so that it stays true until a restart.
  returned: success
  type: bool
  sample: true
restart_reason:
  description: Why a restart is required; null where none is.
  returned: success
  type: str
  sample: >-
    --gpus needs a dockerd that was started after /usr/bin/nvidia-container-runtime-hook was
    installed: it looks for it once, at start
restarted:
  description: Whether dockerd was restarted (in check mode, would have been).
  returned: success
  type: bool
  sample: false
reload_required:
  description: Whether the running dockerd has other runtimes or another default than the file.
  returned: success
  type: bool
  sample: false
reload_reason:
  description: Why a reload is required; null where none is.
  returned: success
  type: str
  sample: the running dockerd does not know the runtime nvidia
reloaded:
  description: Whether dockerd was reloaded (in check mode, would have been).
  returned: success
  type: bool
  sample: true
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
  description: Where the file as it was before this module's first change is kept, if there was one.
  returned: success
  type: str
  sample: /var/lib/kubegpu/backups/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
reasons:
  description: Why each thing was changed, or was not.
  returned: success
  type: list
  elements: str
  sample: [runtimes.nvidia is set]
diff:
  description: What changes in the file, with the lines around it. Secrets are covered.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: ""
      after: "{\"runtimes\": {}}\n"
      before_header: /etc/docker/daemon.json
      after_header: /etc/docker/daemon.json
"""

import dataclasses
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import redact, redact_data
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

ARGUMENTS: dict[str, dict[str, typing.Any]] = {
    "name": {"type": "str", "default": "nvidia"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "runtime_path": {"type": "str", "default": RUNTIME_PATH},
    "runtime_args": {"type": "list", "elements": "str"},
    "set_default": {"type": "bool", "default": False},
    "cdi": {"type": "bool"},
    "config_path": {"type": "path", "default": "/etc/docker/daemon.json"},
    "docker_version": {"type": "str"},
    "validate": {"type": "bool", "default": True},
    "reload": {"type": "bool", "default": False},
    "restart": {"type": "str", "choices": ["never", "if_idle", "always"], "default": "never"},
    "unit": {"type": "str", "default": "docker"},
    "socket": {"type": "path", "default": "/run/docker.sock"},
    "fingerprint": {"type": "str", "default": ""},
    "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
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
        settings = Settings(
            **{field.name: params[field.name] for field in dataclasses.fields(Settings)}
        )
        dependencies = Dependencies(
            run=module_runner(module),
            store=StateStore(params["state_path"]),
            temporary_directory=module.tmpdir,
            read_info=read_info,
            find_program=find_program,
        )
        done = DockerRuntime(_request(params), settings, dependencies)(module.check_mode)
    except KubegpuError as error:
        # A daemon's journal quotes its configuration.
        module.fail_json(
            msg=redact(str(error)),
            cause=redact(error.cause),
            evidence=redact(error.evidence),
            next_step=redact(error.next_step),
        )
    result = dataclasses.asdict(done)
    for warning in result.pop("warnings"):
        module.warn(printable(warning))
    result["runtimes"] = redact_data(result["runtimes"])
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
