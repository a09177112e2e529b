# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: package_set
short_description: Install a set of packages in exact versions, and hold them
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Installs, upgrades or downgrades a set of packages to exact versions in one transaction, and
    holds them, so that no upgrade replaces a part of the set.
  - Obsolete packages are removed first. They are not purged, because purging C(nvidia-docker2)
    removes C(/etc/docker/daemon.json). The only exception is a package that this set installed and
    that has an unedited file in C(/etc/apt/preferences.d). It is purged, because the file would
    keep pinning versions.
  - No other package is ever removed. If the set cannot be installed or restored without that,
    nothing is changed, and the error names the packages.
  - Half configured packages are repaired first.
  - The previous versions, holds and automatic marks, and the packages that the package manager
    will install, are recorded on the node before the first change. O(state=absent) restores them,
    and removes dependencies of the set that no other package needs. This also works after a run
    that was killed at any point.
  - Ansible's own module for the node's package manager installs the packages
    (M(ansible.builtin.apt), M(ansible.builtin.dnf), M(ansible.builtin.dnf5),
    M(community.general.zypper)). It is not called if nothing differs.
options:
  name:
    description:
      - Name under which the set is recorded on the node.
    type: str
    required: true
  state:
    description:
      - Whether the set is installed. V(absent) restores the packages that were installed before;
        without a record under this name it does nothing.
      - V(available) changes nothing, and does not refresh package lists. It returns in
        C(not_available) which of O(packages) no repository has in these versions, also of those
        that are installed, for example before a change that may have to be reverted.
      - V(saved) installs nothing. It saves O(packages) in these exact versions on the node, and no
        others, in a repository of their own (C(/var/lib/kubegpu-packages) and
        C(/etc/apt/sources.list.d/kubegpu-saved.sources)), so that they can be installed again when
        no other repository has them any more. What apt has in its cache is copied, the rest
        downloaded. C(not_available) has those that are to be had nowhere. An empty O(packages)
        removes what was saved. Only for apt.
    type: str
    choices: [present, absent, available, saved]
    default: present
  packages:
    description:
      - Names of the packages, with the exact version of each as the package manager writes it,
        packaging revision included, such as V(1.20.0-1). V(null) is any version.
      - A C(*) in a version, such as V(595.58.03*) or V(2.28.3*+cuda12.9), matches any text. If no
        matching version is installed, the newest one is.
      - Required with O(state=present), O(state=available) and O(state=saved).
    type: dict
  hold:
    description:
      - Hold the packages; with O(lock), only those that it covers.
    type: bool
    default: true
  optional:
    description:
      - More packages in the form of O(packages). They are installed if they are available.
    type: dict
    default: {}
  lock:
    description:
      - Packages that have one version together with O(packages), whether they are named there or
        installed as dependencies.
      - A change installs them in the version of the lock, if that is available. All of them that
        are installed are held.
      - Those that are not requested by name and conflict with O(packages) are removed, such as the
        leftovers of a failed change. Held packages are not removed; name them in O(obsolete).
    type: dict
    suboptions:
      patterns:
        description:
          - Patterns of names, such as V(libnvidia-*). A pattern that begins with C(!) excludes
            names.
        type: list
        elements: str
        required: true
      version:
        description:
          - Beginning of the version, such as V(595.58.03) or V(595.).
        type: str
  obsolete:
    description:
      - Packages to remove before the set is installed.
    type: list
    elements: str
    default: []
  module_streams:
    description:
      - Streams of dnf's modules by name of the module, such as C(nvidia-driver) with V(580-open).
        A module has one stream at most, and only the packages of that stream are offered.
      - They are switched, by reset and enable, before the packages are changed. The previous
        streams are recorded, and O(state=absent) restores them, unless they were switched again
        since. If a change fails, the streams before this run are restored.
      - Only for dnf 4 (RHEL 8 and 9, their derivatives, Amazon Linux 2023). The option is refused
        elsewhere.
    type: dict
    default: {}
    version_added: 0.1.0
  preserve:
    description:
      - Files whose content and mode are left unchanged, although scripts of the packages change or
        remove them, such as those of C(amd-container-toolkit), which remove C(/etc/cdi). A C(*)
        in the last part of a path matches any text.
      - They are saved in the record before the package manager runs and restored after it. After
        a run that was killed in between, the next one restores them.
    type: list
    elements: str
    default: []
  update_cache:
    description:
      - Allow a refresh of the package lists. They are refreshed only if a requested version is not
        available.
    type: bool
    default: true
  repository_expected:
    description:
      - Whether the same play can add a repository before this module runs without check mode.
        Check mode then assumes that missing packages will be available.
      - With V(false), check mode fails if the run would. If packages are not available and
        O(update_cache=true), it downloads package lists into a temporary directory.
    type: bool
    default: true
  package_manager:
    description:
      - The package manager. V(auto) is that of the node's distribution.
    type: str
    choices: [auto, apt, dnf, dnf5, zypper]
    default: auto
  background:
    description:
      - Run the package manager detached from the connection, and wait for it. A lost connection
        then does not kill it. Use it for changes that take minutes, such as packages that build
        kernel modules.
      - Without it, only the task's own C(timeout) limits the time.
    type: bool
    default: false
  timeout:
    description:
      - Time limit for the package manager in seconds, with O(background). Waiting for its lock
        (O(lock_timeout)) does not count.
    type: int
    default: 3600
notes:
  - With apt, C(needrestart) is suspended for the change (C(NEEDRESTART_SUSPEND)), since its hook
    restarts services, container runtimes among them. A warning and RV(services_to_restart) name
    the services that it would have restarted.
  - With apt, temporary files of the change are in C(/var/cache/kubegpu), and the next run removes
    those of a killed one. Where that folder cannot take them (SELinux, C(noexec), other users
    cannot enter it), they are in C(/tmp).
  - Check mode compares the installed with the requested versions, so that its result is right even
    if the repository does not exist yet (O(repository_expected)).
  - dnf holds packages with its plugin C(versionlock), which is installed if it is missing, and
    zypper with its locks. Holds are released for a change and set again after it.
  - Modules are switched with C(dnf module). M(ansible.builtin.dnf) enables a stream only together
    with the packages of one of its profiles. Installed profiles of a module are not restored.
  - Configuration files of removed packages are tracked for apt only. rpm keeps an edited file as
    C(.rpmsave) when its package is removed.
  - M(ansible.builtin.apt) needs python3-apt on the node and installs it if it is missing. It then
    counts as a dependency of the set.
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
  - module: kubegpu.nodes.package_repository
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

- name: Install a driver and its dependencies in one version
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

- name: Restore the previous packages
  kubegpu.nodes.package_set:
    name: nvidia-container-toolkit
    state: absent
"""

RETURN = r"""
packages:
  description: The packages of the set after the change. The version is V(any) if check mode cannot
    know it.
  returned: success
  type: dict
  sample:
    nvidia-container-toolkit:
      version: 1.20.0-1
      held: true
previous:
  description: The same packages before this run, without those that were not installed.
  returned: success
  type: dict
  sample:
    nvidia-container-toolkit:
      version: 1.19.0-1
      held: true
module_streams:
  description: The streams of the requested or restored modules after the change. An empty string
    means none, V(!disabled) that none may be enabled.
  returned: success
  type: dict
  sample:
    nvidia-driver: 580-open
not_available:
  description: Packages that were installed before and that no repository of the node has now. They
    remain recorded, so that O(state=absent) can restore them once a repository has them. With
    O(state=available) and O(state=saved), those of O(packages) that no repository has.
  returned: success
  type: list
  elements: str
  sample: [nvidia-docker2]
broken:
  description: Half installed or half configured packages of the node, with the package manager's
    word for their status. They are detected if something differs, and repaired before a change.
  returned: success
  type: dict
  sample:
    nvidia-kernel-dkms: half-configured
reasons:
  description: The reasons for changes.
  returned: success
  type: list
  elements: str
  sample:
    - nvidia-container-toolkit is 1.19.0-1, requested is 1.20.0-1.
services_to_restart:
  description: Services that use files which the change has replaced, as C(needrestart) lists them;
    empty on a node without it.
  returned: if packages were changed
  type: list
  elements: str
  sample: [cron.service]
diff:
  description: The packages before and after, one per line.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: "nvidia-container-toolkit 1.19.0-1 held\n"
      after: "nvidia-container-toolkit 1.20.0-1 held\n"
      before_header: packages nvidia-container-toolkit
      after_header: packages nvidia-container-toolkit
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
from typing import Any

from ..module_utils._core.errors import KubegpuError
from ..module_utils._core.failure import fail
from ..module_utils._core.internal_options import InternalOptionsModule
from ..module_utils._core.printable import printable
from ..module_utils._core.proxy_options import PROXY_ARGUMENTS, use_proxies
from ..module_utils._host.command import module_runner
from ..module_utils._packages.apply import Result, find_missing, finish, prepare, save
from ..module_utils._packages.host import Host, find_manager
from ..module_utils._packages.options import read_options
from ..module_utils._packages.registry import MANAGERS
from ..module_utils._record.options import STATE_ARGUMENTS
from ..module_utils._record.store import StateStore

# Those that need packages.
_STATES = ("present", "available", "saved")
ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "state": {
        "type": "str",
        "choices": ["present", "absent", "available", "saved"],
        "default": "present",
    },
    "packages": {"type": "dict"},
    "hold": {"type": "bool", "default": True},
    "obsolete": {"type": "list", "elements": "str", "default": []},
    "preserve": {"type": "list", "elements": "str", "default": []},
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
    "lock_timeout": {"type": "int", "default": 600},
    **PROXY_ARGUMENTS,
    **STATE_ARGUMENTS,
}
# What the calls between the two phases did: the output of the one that failed, packages that were
# given for their version alone, and the streams of modules before the change. The ID of the run,
# which stops if another one has taken over, and the name of lock_timeout in messages.
_INTERNAL: dict[str, dict[str, Any]] = {
    "_phase": {"type": "str", "choices": ["plan", "record"], "default": "plan"},
    "_failure": {"type": "str", "default": ""},
    "_named": {"type": "list", "elements": "str", "default": []},
    "_streams": {"type": "dict", "default": {}},
    "_run": {"type": "str", "default": ""},
    "_lock_option": {"type": "str", "default": "lock_timeout"},
}


def main() -> None:
    module = InternalOptionsModule(
        argument_spec=ARGUMENT_SPEC,
        internal=_INTERNAL,
        required_if=[("state", name, ("packages",)) for name in _STATES],
        supports_check_mode=True,
    )
    use_proxies(module.params, os.environ)
    store = StateStore(module.params["state_path"])
    try:
        result = _run(module, store)
    except KubegpuError as error:
        fail(module, error)
    if module._diff and result.diff is not None:
        result.values["diff"] = list(result.diff)
    module.exit_json(**result.values)


def _run(module: InternalOptionsModule, store: StateStore) -> Result:
    params = module.params
    options = read_options(
        params,
        check_mode=module.check_mode,
        warn=lambda text: module.warn(printable(text)),
    )
    host = Host(
        lambda: find_manager(params["package_manager"], module_runner(module)),
        params["lock_timeout"],
        lock_option=params["_lock_option"],
    )
    if params["state"] == "available":
        return find_missing(options, host)
    if params["state"] == "saved":
        return save(options, host)
    if module.check_mode:
        return prepare(options, host, store)
    with store.transaction():
        return (prepare if params["_phase"] == "plan" else finish)(options, host, store)


if __name__ == "__main__":
    main()
