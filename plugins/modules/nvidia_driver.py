# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver
short_description: Install, hold, load, change and remove the NVIDIA driver of a node
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Selects the driver that the GPUs of a node need, as the filter
    P(kubegpu.nodes.nvidia_driver_plan#filter) does, and installs it from the distribution's
    packages, NVIDIA's packages or a runfile.
  - Holds all packages of the driver in one version, blocks nouveau and nova, rebuilds the initial
    RAM disk, enables the services and loads the kernel module if that needs no reboot. Programs
    that use the module are reported and never stopped.
  - With O(branch=auto), a working driver that serves all GPUs is kept. A request that cannot work
    fails with the reasons before anything is changed.
  - If the packages cannot be installed, the previous state is restored. If the module does not
    load, the cause is diagnosed and reported.
  - Does not add the repository. The role P(kubegpu.nodes.nvidia_driver#role) adds it with
    M(kubegpu.nodes.package_repository).
options:
  state:
    description:
      - Whether the driver must be installed. V(absent) restores the state before the first change
        by this collection, including nouveau and the initial RAM disk. It does nothing if nothing
        is recorded.
    type: str
    choices: [present, absent]
    default: present
  branch:
    description:
      - The driver's branch, such as V(580). Any version of the branch is accepted.
      - V(auto) keeps a working driver. Otherwise it selects the best supported branch for the
        GPUs.
    type: str
    default: auto
  version:
    description:
      - The exact version, such as V(580.95.05), or V(previous) for the driver before the last
        change. Upgrades and downgrades as needed.
      - A second run with V(previous) changes nothing. To return to the newer driver, give its
        version.
    type: str
    default: ""
  kernel_module:
    description:
      - The kind of kernel modules. V(auto) selects the open ones if all GPUs support them.
    type: str
    choices: [auto, open, proprietary]
    default: auto
  source:
    description:
      - The source of the driver.
    type: str
    choices: [auto, distro, nvidia, runfile]
    default: auto
  runfile:
    description:
      - NVIDIA's installer file, for O(source=runfile) or a vGPU guest.
    type: dict
    suboptions:
      url:
        description:
          - URL from which the node downloads the file. Either this or O(runfile.path) is required.
        type: str
      path:
        description:
          - Path of the file on the controller, or on the node with O(runfile.remote).
        type: str
      checksum:
        description:
          - SHA-256 of the file, as C(sha256:...) or 64 digits, or the URL or path of a file that
            contains it, such as C(NAME.run.sha256sum) or NVIDIA's C(redistrib_VERSION.json). A URL
            must begin with C(https://) or C(file://), and its file must not exceed 4 MiB.
        type: str
      version:
        description:
          - The driver's version, if the file's name does not contain it.
        type: str
      remote:
        description:
          - Whether O(runfile.path) is on the node.
        type: bool
        default: false
  hold:
    description:
      - Whether the driver's packages are held and kept out of unattended upgrades.
    type: bool
    default: true
  load:
    description:
      - Whether the kernel module is loaded if that needs no reboot.
    type: bool
    default: true
  replace_source:
    description:
      - Whether a driver from another source is removed by that source's own uninstaller. If
        V(false), it is kept if it meets the request, and the module fails if it does not.
    type: bool
    default: false
  dkms:
    description:
      - Whether the kernel modules are built on the node by DKMS. V(auto) takes prebuilt signed
        modules if there are any.
    type: str
    choices: ["auto", "true", "false"]
    default: auto
  compute_only:
    description:
      - Whether packages for displays are left out, if the source has such packages.
    type: bool
    default: false
  module_options:
    description:
      - Options of the kernel module C(nvidia), by name, such as
        C(NVreg_OpenRmEnableUnsupportedGpus).
    type: dict
    default: {}
  coherent_memory:
    description:
      - Who manages the GPUs' memory on boards with a Grace CPU (GH200, GB200, GB300), by the
        option C(NVreg_CoherentGPUMemoryMode) of the kernel module. It takes effect when the module
        is loaded the next time; until then the result requires a reboot.
      - V(driver) is coherent driver-based memory management (CDMM), which Kubernetes needs. V(numa)
        gives the memory to the kernel, as a node of the system's own memory.
      - V(auto) writes nothing. The driver's default is V(numa) before 615 and V(driver) from then
        on. Nothing is written on other nodes, or with a driver before 580, which has no such
        option.
    type: str
    choices: [auto, driver, numa]
    default: auto
  persistence:
    description:
      - Whether C(nvidia-persistenced) is enabled.
    type: bool
    default: true
  fabric:
    description:
      - Whether the fabric manager must be installed in the driver's exact version, enabled and
        running. V(auto) requires it if the node has NVSwitches, or GPUs of a board that has them.
      - V(false) does not change an installed fabric manager.
    type: str
    choices: ["auto", "true", "false"]
    default: auto
  imex:
    description:
      - Whether the package of NVIDIA's IMEX service must be installed in the driver's exact
        version. V(auto) requires it for GPUs of a rack with NVLink between nodes (GB200, GB300).
    type: str
    choices: ["auto", "true", "false"]
    default: auto
  imex_nodes:
    description:
      - Addresses or names of all nodes of the IMEX domain, this one included, the same list on
        each. If given, C(/etc/nvidia-imex/nodes_config.cfg) is written, and the service is enabled
        and started.
      - If empty, file and service are not changed. In Kubernetes NVIDIA's driver for dynamic
        resource allocation starts IMEX for each job and requires the service to be off.
    type: list
    elements: str
    default: []
  licence:
    description:
      - Licence (license) of a vGPU guest, for C(/etc/nvidia/gridd.conf), with the keys of the
        filter P(kubegpu.nodes.nvidia_driver_plan#filter). C(token_path) is the path of the
        token on the controller.
      - After a change the module waits until the guest has the licence, at most C(timeout) seconds
        (120; V(0) does not wait), and fails if it has none. The driver and its files stay as
        requested. It does not wait if the driver runs only after a reboot, or in check mode.
    type: dict
    default: {}
  repository_name:
    description:
      - Name of the repository. Used only in the plan.
    type: str
    default: kubegpu-nvidia-driver
  repository_url:
    description:
      - Address of the repository. Used only in the plan.
    type: str
    default: ""
  repository_key_url:
    description:
      - Address of the repository's key. Used only in the plan.
    type: str
    default: ""
  key_fingerprints:
    description:
      - Accepted fingerprints of the repository's key. Used only in the plan.
    type: list
    elements: str
    default: []
  manage_repository:
    description:
      - Whether the role adds the repository. Used only in the plan.
    type: bool
    default: true
  branches:
    description:
      - Entries that are merged over the built-in table of driver branches.
    type: dict
    default: {}
  gpus:
    description:
      - Entries that are merged over the built-in table of GPUs.
    type: dict
    default: {}
  repositories:
    description:
      - Entries that are merged over the built-in table of repositories.
    type: dict
    default: {}
  build_timeout:
    description:
      - Time limit in seconds for the packages, with the build of the kernel modules, or for the
        runfile.
    type: int
    default: 3600
notes:
  - Does not support C(async). Long steps run detached from the connection, and their progress is
    displayed.
  - Requires root. Installs with apt, dnf (4 and 5) and zypper. With another package manager the
    module fails with the reason and changes nothing.
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
  - module: kubegpu.nodes.gpu_node_facts
  - module: kubegpu.nodes.package_repository
  - module: kubegpu.nodes.package_set
"""

EXAMPLES = r"""
- name: Install a driver that serves all GPUs of the node
  kubegpu.nodes.nvidia_driver:

- name: Install an exact version from NVIDIA's packages
  kubegpu.nodes.nvidia_driver:
    version: 580.95.05
    source: nvidia

- name: Go back to the previous version
  kubegpu.nodes.nvidia_driver:
    version: previous

- name: Replace the packages by NVIDIA's runfile
  kubegpu.nodes.nvidia_driver:
    source: runfile
    replace_source: true
    runfile:
      url: https://us.download.nvidia.com/tesla/580.95.05/NVIDIA-Linux-x86_64-580.95.05.run
      checksum: "{{ driver_sha256 }}"

- name: Restore the state before the first change
  kubegpu.nodes.nvidia_driver:
    state: absent
"""

RETURN = r"""
plan:
  description: The plan and its reasons, as the filter
    P(kubegpu.nodes.nvidia_driver_plan#filter) returns it.
  returned: success
  type: dict
  sample:
    action: install
    branch: "580"
    version: 580.95.05
    kernel_module: open
    source: nvidia
    change: true
    reasons: [Tesla T4 (turing) is served by branch 580.]
loaded:
  description: Version of the loaded kernel module; V(null) if none is loaded.
  returned: success
  type: str
  sample: 580.95.05
reboot_required:
  description: Whether the driver, or the removal of nouveau, takes effect only after a reboot.
  returned: success
  type: bool
  sample: false
reboot_reason:
  description: The reason for the reboot.
  returned: success
  type: str
  sample: The loaded module 575.57.08 is in use by python3 (pid 4711).
previous:
  description: The driver before the last change to another one, which O(version=previous)
    restores; V(null) if there is none. C(version), C(branch), C(source) and C(kernel_module).
  returned: success
  type: dict
  sample: {version: 575.57.08, branch: "575", source: nvidia, kernel_module: open}
rolled_back:
  description: Whether the previous state was restored.
  returned: failure of a change that was begun
  type: bool
  sample: true
diff:
  description: Differences of configuration files, packages, loaded module and services.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: ""
      after: "blacklist nouveau\n"
      before_header: /etc/modprobe.d/kubegpu-nouveau.conf
      after_header: /etc/modprobe.d/kubegpu-nouveau.conf
code:
  description: Identifies the cause for programs, if it is known.
  returned: failure with a known cause
  type: str
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
from ..module_utils._driver.apply.context import Context
from ..module_utils._driver.apply.run import PHASES, plan_phase, run_phase
from ..module_utils._driver.options import MODULE_ARGUMENTS, read_options
from ..module_utils._driver.plan.config_files import RECORD
from ..module_utils._driver.record import Record
from ..module_utils._driver.plan.plan import plan_driver
from ..module_utils._facts.gather import gather
from ..module_utils._facts.runtimes import RuntimePaths
from ..module_utils._host.command import module_runner
from ..module_utils._host.reader import NodeReader
from ..module_utils._record.options import STATE_ARGUMENTS
from ..module_utils._record.store import StateStore

# The root directory; tests use a temporary one.
_ROOT = "/"
# The message of the step that failed; path, checksum and whether it is a copy of the runfile on the
# node; the licence token in base64; the controller's date; the ID of the run, which stops if
# another one has taken over its change.
_INTERNAL: dict[str, dict[str, Any]] = {
    "_phase": {"type": "str", "choices": list(PHASES), "default": "plan"},
    "_failure": {"type": "str", "default": ""},
    "_runfile": {"type": "dict"},
    "_token": {"type": "str", "default": "", "no_log": True},
    "_today": {"type": "str", "default": ""},
    "_run": {"type": "str", "default": ""},
}


def main() -> None:
    module = InternalOptionsModule(
        argument_spec={
            **MODULE_ARGUMENTS,
            "lock_timeout": {"type": "int", "default": 600},
            **PROXY_ARGUMENTS,
            "build_timeout": {"type": "int", "default": 3600},
            **STATE_ARGUMENTS,
        },
        internal=_INTERNAL,
        supports_check_mode=True,
    )
    use_proxies(module.params, os.environ)
    try:
        phase = "plan" if module.check_mode else module.params["_phase"]
        store = StateStore(module.params["state_path"])
        if phase == "plan":
            result = plan_phase(_read_context(module, store))
        else:
            with store.transaction():
                result = run_phase(phase, _read_context(module, store))
        module.exit_json(**result)
    except KubegpuError as error:
        fail(module, error)


def _read_context(module: InternalOptionsModule, store: StateStore) -> Context:
    params = module.params
    run = module_runner(module)
    reader = NodeReader(_ROOT, run)
    options = {**params, "today": params["_today"], "controller": module.ansible_version}
    request, data = read_options(options)
    facts = gather(reader, RuntimePaths(), _below_root(params["state_path"]), fresh=True)
    return Context(
        module.params,
        module._diff,
        lambda text: module.warn(printable(text)),
        lambda: _read_context(module, store),
        _ROOT,
        run,
        reader,
        store,
        request,
        facts,
        plan_driver(facts, request, data),
        Record.from_json(store.get(RECORD)),
    )


def _below_root(path: str) -> str:
    """Return a path relative to the root directory."""
    return path[len(_ROOT.rstrip("/")) :] if path.startswith(_ROOT) else path


if __name__ == "__main__":
    main()
