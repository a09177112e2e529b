# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: package_set
short_description: Install packages that belong together in exactly their versions, and hold them
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Brings a whole set of packages to exactly the versions asked for, up or down, in one
    transaction, and holds them, so that no upgrade replaces a part of the set.
  - Obsolete packages go first. They are removed and not purged, because purging
    C(nvidia-docker2) takes C(/etc/docker/daemon.json) away. Only one that this set brought, and
    that has a file in C(/etc/apt/preferences.d) which nobody edited, is purged, because that file
    would go on pinning.
  - No other package is ever removed. Where the set cannot be installed or given back without
    that, nothing is changed and the packages are named.
  - Packages that are half configured are mended first.
  - Versions, holds and marks that stood there before, and what the package manager is going to
    install, are recorded on the node before the first change. O(state=absent) puts them back, and
    removes what came along with the set where nothing else needs it. That holds for a run that
    died at any point, too.
  - The packages are installed by Ansible's own module for the node's package manager
    (M(ansible.builtin.apt), M(ansible.builtin.dnf), M(ansible.builtin.dnf5),
    M(community.general.zypper)). Where nothing differs, it is not called.
options:
  name:
    description:
      - Name under which the set is recorded on the node.
    type: str
    required: true
  state:
    description:
      - Whether the set is there. V(absent) gives back what stood there before; without a record
        under this name it does nothing.
    type: str
    choices: [present, absent]
    default: present
  packages:
    description:
      - Names of the packages, with the exact version of each as the package manager writes it,
        packaging revision included, such as V(1.20.0-1). V(null) is any version.
      - A version with a C(*), such as V(595.58.03*) or V(2.28.3*+cuda12.9), is met by every version
        that begins and ends so; the newest one is installed where none is there.
      - Required with O(state=present).
    type: dict
  hold:
    description:
      - Whether the packages are held; with O(lock), only those that it covers.
    type: bool
    default: true
  optional:
    description:
      - More packages, named like O(packages), that are installed where a package list of the node
        has them.
    type: dict
    default: {}
  lock:
    description:
      - The packages that make up one locked set with O(packages), whether they are named there
        or come along with them.
      - On a change, those that would come in another version are named to the package manager
        with the version of the lock, where a package list has it. All that are installed are held.
      - Those that nobody asks for by name, and that the package manager would remove for
        O(packages), are removed, such as what a failed change has left. It removes none that is
        held; that one has to be named in O(obsolete).
    type: dict
    suboptions:
      patterns:
        description:
          - Patterns for names, such as V(libnvidia-*). One that begins with C(!) takes names out
            again.
        type: list
        elements: str
        required: true
      version:
        description:
          - Beginning of the version, such as V(595.58.03) or V(595.).
        type: str
  obsolete:
    description:
      - Packages that have to go before the set is installed.
    type: list
    elements: str
    default: []
  module_streams:
    description:
      - Streams of dnf's modules by name of the module, such as C(nvidia-driver) with V(580-open).
        A module has one stream at most, and only the packages of that stream are offered.
      - They are switched, by reset and enable, before the packages are changed. What the node had
        before is recorded, and O(state=absent) puts it back, unless somebody has switched since. A
        change that fails puts back what this run found.
      - For dnf 4 alone (RHEL 8 and 9 and those that build on them, Amazon Linux 2023). Elsewhere
        there are no modules, and the option is refused.
    type: dict
    default: {}
    version_added: 0.1.0
  update_cache:
    description:
      - Whether the package lists may be refreshed. This is done only where they do not have a
        version that is asked for.
    type: bool
    default: true
  repository_expected:
    description:
      - Whether a repository may be missing that the same play adds before this module is run for
        real. Check mode then takes it that packages which no list has will be there.
      - With V(false), check mode fails where the run would. It reads the repositories into a folder
        of its own for that, where the node's lists lack something and O(update_cache=true).
    type: bool
    default: true
  package_manager:
    description:
      - Which package manager is used. V(auto) takes that of the node's distribution.
    type: str
    choices: [auto, apt, dnf, dnf5, zypper]
    default: auto
  background:
    description:
      - Whether the package manager runs detached from the connection and is waited for, so that a
        connection that is lost does not kill it amid its work. For what takes minutes, such as
        packages that build kernel modules.
      - Without it there is no limit to its time but the task's own (C(timeout)).
    type: bool
    default: false
  timeout:
    description:
      - Seconds after which the package manager is stopped, with O(background).
    type: int
    default: 3600
  _phase:
    description:
      - Internal. What the module's action plugin asks for.
    type: str
    choices: [plan, record]
    default: plan
  _failure:
    description:
      - Internal. What the package manager said where it failed.
    type: str
    default: ""
  _named:
    description:
      - Internal. What was named to the package manager only for its version.
    type: list
    elements: str
    default: []
  _streams:
    description:
      - Internal. The streams of modules that this run found before its change.
    type: dict
    default: {}
  _run:
    description:
      - Internal. The run that works on the set. One that another run has gone on from stops.
    type: str
    default: ""
notes:
  - In check mode the answer comes from the versions that are installed and those that are asked
    for, so that it is right even where the repository is not there yet (O(repository_expected)).
  - dnf holds with its plugin C(versionlock), which is installed where it is missing, and zypper
    with its locks. A hold is released for a change and set again after it.
  - Modules are switched with C(dnf module). M(ansible.builtin.dnf) knows a stream only together
    with the packages of one of its profiles. Which profiles of a module were installed is not given
    back.
  - What an earlier removal has left of configuration files is known for apt alone. rpm keeps an
    edited file as C(.rpmsave) when its package goes.
  - M(ansible.builtin.apt) needs python3-apt on the node and installs it where it is missing. It
    then belongs to what came along with the set.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.package_manager
  - kubegpu.nodes.record
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
  platform:
    platforms: debian, rhel, suse
seealso:
  - module: kubegpu.nodes.nvidia_repository
  - module: ansible.builtin.apt
  - module: ansible.builtin.dnf
  - module: community.general.zypper
"""

EXAMPLES = r"""
- name: Install the container toolkit as one set
  kubegpu.nodes.package_set:
    name: nvidia-container-toolkit
    packages:
      nvidia-container-toolkit: 1.20.0-1
      nvidia-container-toolkit-base: 1.20.0-1
      libnvidia-container-tools: 1.20.0-1
      libnvidia-container1: 1.20.0-1
    obsolete:
      - nvidia-docker2

- name: Install a driver and all that comes along with it, in one version
  kubegpu.nodes.package_set:
    name: nvidia-driver
    packages:
      nvidia-open: 595.58.03*
      linux-headers-amd64: null
    optional:
      linux-headers-6.1.0-40-amd64: null
    lock:
      patterns: [nvidia-*, libnvidia-*, "!nvidia-container-*", "!libnvidia-container*"]
      version: 595.58.03
    background: true

- name: Install a driver of one stream of NVIDIA's module, on Rocky Linux 9
  kubegpu.nodes.package_set:
    name: nvidia-driver
    module_streams:
      nvidia-driver: 580-open
    packages:
      nvidia-open: 580.178.04*
    background: true

- name: Give back what stood there before
  kubegpu.nodes.package_set:
    name: nvidia-container-toolkit
    state: absent
"""

RETURN = r"""
packages:
  description: The packages of the set, as they are, or would be, afterwards. The version V(any)
    is that of a package which check mode cannot know.
  returned: success
  type: dict
  sample:
    nvidia-container-toolkit:
      version: 1.20.0-1
      held: true
previous:
  description: The same packages as they were before this run. Those that were not there are left
    out.
  returned: success
  type: dict
  sample:
    nvidia-container-toolkit:
      version: 1.19.0-1
      held: true
module_streams:
  description: The streams of the modules of O(module_streams), or of those that are given back, as
    they are, or would be, afterwards. An empty string is none, V(!disabled) that none may be
    enabled.
  returned: success
  type: dict
  sample:
    nvidia-driver: 580-open
not_available:
  description: Packages that were there before and that no repository of the node has now. The
    record keeps them, so that O(state=absent) can put them back once one has.
  returned: success
  type: list
  elements: str
  sample: [nvidia-docker2]
broken:
  description: Packages of the node that are half installed or half configured, with the package
    manager's word for it. Looked for where something differs, and mended before a change.
  returned: success
  type: dict
  sample:
    nvidia-kernel-dkms: half-configured
reasons:
  description: Why something was, or would be, changed.
  returned: success
  type: list
  elements: str
  sample:
    - nvidia-container-toolkit is 1.19.0-1, asked for is 1.20.0-1.
diff:
  description: The packages before and after, one a line.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: "nvidia-container-toolkit 1.19.0-1 held\n"
      after: "nvidia-container-toolkit 1.20.0-1 held\n"
      before_header: packages nvidia-container-toolkit
      after_header: packages nvidia-container-toolkit
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import KubegpuError
from ..module_utils._core.printable import printable
from ..module_utils._core.proxy_options import PROXY_ARGUMENTS, use_proxies
from ..module_utils._core.redact import redact
from ..module_utils._host.command import module_runner
from ..module_utils._packages.apply import Result, finish, prepare
from ..module_utils._packages.host import Host, find_manager
from ..module_utils._packages.options import read_options
from ..module_utils._packages.registry import MANAGERS
from ..module_utils._record.store import StateStore

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "packages": {"type": "dict"},
    "hold": {"type": "bool", "default": True},
    "obsolete": {"type": "list", "elements": "str", "default": []},
    "update_cache": {"type": "bool", "default": True},
    "optional": {"type": "dict", "default": {}},
    "module_streams": {"type": "dict", "default": {}},
    "lock": {
        "type": "dict",
        "options": {
            "patterns": {"type": "list", "elements": "str", "required": True},
            "version": {"type": "str"},
        },
    },
    "repository_expected": {"type": "bool", "default": True},
    # The action plugin reads these two.
    "background": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 3600},
    "package_manager": {"type": "str", "choices": ["auto", *MANAGERS], "default": "auto"},
    "lock_timeout": {"type": "int", "default": 120},
    **PROXY_ARGUMENTS,
    "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
    # The action plugin sets these: the phase of this call, and what the calls between the two
    # phases did.
    "_phase": {"type": "str", "choices": ["plan", "record"], "default": "plan"},
    "_failure": {"type": "str", "default": ""},
    "_named": {"type": "list", "elements": "str", "default": []},
    "_streams": {"type": "dict", "default": {}},
    "_run": {"type": "str", "default": ""},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        required_if=[("state", "present", ("packages",))],
        supports_check_mode=True,
    )
    use_proxies(module.params, os.environ)
    store = StateStore(module.params["state_path"])
    try:
        result = _run(module, store)
    except KubegpuError as error:
        module.fail_json(msg=redact(str(error)))
    for text in result.warnings:
        module.warn(printable(text))
    values = dict(result.values)
    if module._diff and "reasons" in values:
        values["diff"] = list(result.diff)
    module.exit_json(**values)


def _run(module: AnsibleModule, store: StateStore) -> Result:
    params = module.params
    options = read_options(params, check_mode=module.check_mode)
    host = Host(
        lambda: find_manager(params["package_manager"], module_runner(module)),
        params["lock_timeout"],
    )
    if module.check_mode:
        return prepare(options, host, store)
    with store.transaction():
        return (prepare if params["_phase"] == "plan" else finish)(options, host, store)


if __name__ == "__main__":
    main()
