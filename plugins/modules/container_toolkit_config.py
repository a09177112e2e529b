# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: container_toolkit_config
short_description: Configure the NVIDIA Container Toolkit
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Sets values in C(/etc/nvidia-container-runtime/config.toml). All other bytes of the file,
    including comments and order, are preserved.
  - The previous values are recorded on the node, and O(state=absent) restores them.
  - No restart is needed. The toolkit reads the file each time a container starts.
options:
  settings:
    description:
      - Values by key. The key of a setting in a section is C(section.key). A value is a string, a
        number, a boolean or a list of strings.
      - If the type or the value of a known setting is wrong, the module fails. A setting that no
        release of the toolkit knows is written, with a warning.
      - A setting of an earlier run that is no longer given gets its previous value back.
      - Required with O(state=present). With O(state=absent) it is needed only if the node's record
        is lost; values that equal these are then removed.
    type: dict
  state:
    description:
      - V(present) sets the values.
      - V(absent) restores the original file or, if it was edited since, removes only the values of
        this module.
    type: str
    choices: [present, absent]
    default: present
  existed:
    description:
      - Whether the file existed before the play. Set it to V(false) if the play installed the
        toolkit, whose packages create the file and leave it when they are removed. O(state=absent)
        then removes the file, unless it was edited since.
    type: bool
    default: true
  toolkit_version:
    description:
      - Version of the toolkit, such as V(1.20.0-1), against which O(settings) are checked. If it is
        not set, they are checked against all known releases.
    type: str
    default: ""
  config_path:
    description:
      - The configuration file. It is created if it does not exist. A symbolic link is followed.
    type: path
    default: /etc/nvidia-container-runtime/config.toml
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
  platform:
    platforms: linux
seealso:
  - module: kubegpu.nodes.package_set
  - module: kubegpu.nodes.containerd_runtime
"""

EXAMPLES = r"""
- name: Run containers without root, and write a log
  kubegpu.nodes.container_toolkit_config:
    toolkit_version: 1.20.0-1
    settings:
      nvidia-container-cli.no-cgroups: true
      nvidia-container-runtime.debug: /var/log/nvidia-container-runtime.log

- name: Restore the file
  kubegpu.nodes.container_toolkit_config:
    state: absent
"""

RETURN = r"""
path:
  description: Path of the file with links resolved.
  returned: success
  type: str
  sample: /etc/nvidia-container-runtime/config.toml
reasons:
  description: The reason for each change.
  returned: success
  type: list
  elements: str
  sample:
    - nvidia-container-cli.no-cgroups is false, requested is true.
diff:
  description: The changed lines of the file with context. Secrets are masked.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: "no-cgroups = false\n"
      after: "no-cgroups = true\n"
      before_header: /etc/nvidia-container-runtime/config.toml
      after_header: /etc/nvidia-container-runtime/config.toml
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
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    InternalOptionsModule,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.toolkit_paths import CONFIG_PATH
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.options import STATE_ARGUMENTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.toml_parser import (
    PARSER,
    toml_parser,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.config_apply import (
    ConfigRequest,
    apply,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.settings import (
    release_of,
    unknown,
)

ARGUMENTS: dict[str, dict[str, Any]] = {
    "settings": {"type": "dict"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "existed": {"type": "bool", "default": True},
    "toolkit_version": {"type": "str", "default": ""},
    "config_path": {"type": "path", "default": CONFIG_PATH},
    **STATE_ARGUMENTS,
}


def main() -> None:
    module = InternalOptionsModule(
        argument_spec=ARGUMENTS,
        internal=PARSER,
        required_if=[("state", "present", ("settings",))],
        supports_check_mode=True,
    )
    try:
        module.exit_json(**_run(module))
    except KubegpuError as error:
        fail(module, error)


def _run(module: InternalOptionsModule) -> dict[str, Any]:
    params = module.params
    names = {field.name for field in dataclasses.fields(ConfigRequest)}
    request = ConfigRequest(
        **{name: params[name] for name in names - {"settings"}}, settings=params["settings"] or {}
    )
    parse = toml_parser(params["_tomlkit"], module.tmpdir)
    store = StateStore(params["state_path"])
    result = apply(request, store, parse, check=module.check_mode, diff=module._diff)
    if request.state == "present":
        for text in unknown(request.settings, release_of(request.toolkit_version)):
            module.warn(f"settings: {text}")
    return result


if __name__ == "__main__":
    main()
