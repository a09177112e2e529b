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
  - Does not add the repository of the packages. RV(plan) names the one that the driver needs; add
    it with M(kubegpu.nodes.package_repository). The role P(kubegpu.nodes.nvidia_driver#role) does
    all steps, with the reboot.
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
      - V(true) is also the consent to Secure Boot with a key that must be enrolled manually.
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
        C(NVreg_RestrictProfilingToAdminUsers). C(MODULE.OPTION) is an option of another module.
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
      - Licence (license) of a vGPU guest, for C(/etc/nvidia/gridd.conf) and the token.
      - After a change the module waits until the guest has the licence, and fails if it has none in
        time. The driver and its files remain as requested. It does not wait if the driver runs only
        after a reboot, or in check mode.
    type: dict
    aliases: [license]
    suboptions:
      token_path:
        description:
          - Path on the controller of the client configuration token of NVIDIA's License System,
            which names the server. It is copied to the node and never displayed.
        type: str
      token_sha256:
        description:
          - SHA-256 of the token, by which a plan sees whether the node has this one.
        type: str
      server:
        description:
          - Address of a legacy licence server, for guests without a token.
        type: str
      port:
        description:
          - Port of O(licence.server).
        type: int
      feature_type:
        description:
          - C(FeatureType) of C(gridd.conf). V(1) is the licence that the type of the vGPU needs,
            V(2) RTX Virtual Workstation, V(4) Virtual Compute Server.
        type: int
        choices: [1, 2, 4]
      timeout:
        description:
          - Seconds to wait for the licence after a change, at most 1800; V(0) does not wait.
        type: int
        default: 120
  manage_repository:
    description:
      - Whether RV(plan) includes a repository, as with the role, which adds it. The module adds
        none in any case.
    type: bool
    default: true
  repository_name:
    description:
      - Name of the repository in RV(plan).
    type: str
    default: kubegpu-nvidia-driver
  repository_url:
    description:
      - Address of a mirror of NVIDIA's repository, in RV(plan). V({distribution}) and
        V({architecture}) stand for the names of NVIDIA's folders, such as C(ubuntu2404) and
        C(x86_64).
    type: str
    default: ""
  repository_key_url:
    description:
      - Address of the repository's key, in RV(plan). If empty, NVIDIA's file below the
        repository's address.
    type: str
    default: ""
  key_fingerprints:
    description:
      - Full fingerprints of the keys that may sign the repository, in RV(plan). If empty, NVIDIA's.
    type: list
    elements: str
    default: []
  build_timeout:
    description:
      - Time limit in seconds for the packages, with the build of the kernel modules, or for the
        runfile.
    type: int
    default: 3600
notes:
  - Does not support C(async). Long steps run detached from the connection, and their progress is
    displayed.
  - Installs with apt, dnf (4 and 5) and zypper. With another package manager the module fails with
    the reason and changes nothing.
  - The module never reboots. RV(reboot_required) describes the node, not this run, and remains
    V(true) until the reboot.
requirements:
  - Root on the node (C(become)).
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.driver_tables
  - kubegpu.nodes.driver_tables.repositories
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
  - plugin: kubegpu.nodes.nvidia_driver_plan
    plugin_type: filter
  - name: The driver
    description: How branch, kernel modules and source are selected; vGPU guests and their licence.
    link: https://kubegpu.example/nodes/blob/main/docs/driver.md
"""

EXAMPLES = r"""
- name: Install a driver that serves all GPUs of the node
  kubegpu.nodes.nvidia_driver:
  register: nvidia_driver

# For example after nouveau was blocked, or while a program uses the old module.
- name: Reboot if the driver takes effect only then
  ansible.builtin.reboot:
  when: nvidia_driver.reboot_required

- name: Finish what was left for the time after the reboot
  kubegpu.nodes.nvidia_driver:
  when: nvidia_driver.reboot_required

- name: Predict what another branch would change
  kubegpu.nodes.nvidia_driver:
    branch: "595"
  check_mode: true
  diff: true
  register: nvidia_driver

- name: Show the reasons
  ansible.builtin.debug:
    msg: "{{ nvidia_driver.plan.reasons + [nvidia_driver.reboot_reason] }}"

# The packages are held in this version. The repository has to be on the node.
- name: Install an exact version from NVIDIA's packages
  kubegpu.nodes.nvidia_driver:
    version: 580.95.05
    source: nvidia

- name: Use the proprietary modules, and let all users read performance counters
  kubegpu.nodes.nvidia_driver:
    branch: "580"
    kernel_module: proprietary
    module_options:
      NVreg_RestrictProfilingToAdminUsers: 0

# The installer of a guest comes from the licence portal or the cloud provider.
- name: Install the driver of a vGPU guest, and wait three minutes for its licence
  kubegpu.nodes.nvidia_driver:
    source: runfile
    runfile:
      path: files/NVIDIA-Linux-x86_64-535.129.03-grid.run
      checksum: "{{ grid_sha256 }}"
    licence:
      token_path: files/client_configuration_token.tok
      feature_type: 1
      timeout: 180

- name: Replace the packages by NVIDIA's runfile
  kubegpu.nodes.nvidia_driver:
    source: runfile
    replace_source: true
    runfile:
      url: https://us.download.nvidia.com/tesla/580.95.05/NVIDIA-Linux-x86_64-580.95.05.run
      checksum: "{{ driver_sha256 }}"

- name: Use a branch that is newer than this collection
  kubegpu.nodes.nvidia_driver:
    branch: "625"
    branches:
      "625":
        kind: production
        end: "2027-12-31"

- name: Go back to the driver before the last change
  kubegpu.nodes.nvidia_driver:
    version: previous

- name: Restore the state before the first change
  kubegpu.nodes.nvidia_driver:
    state: absent
  register: nvidia_driver

- name: Reboot if the module could not be unloaded
  ansible.builtin.reboot:
  when: nvidia_driver.reboot_required
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
    version: null
    kernel_module: open
    source: nvidia
    change: true
    reasons:
      - >-
        Branch 580 (long-term support branch, supported until 2028-06-30) serves Tesla T4; of the
        supported ones that NVIDIA's repository for debian 12 has, long-term branches come before
        production ones.
      - "Source: NVIDIA's repository."
      - "Kernel modules: open, NVIDIA's default from branch 560."
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
from ..module_utils._core.proxy_options import use_proxies
from ..module_utils._driver.arguments import ARGUMENT_SPEC, read_request
from ..module_utils._driver.apply.context import Context
from ..module_utils._driver.apply.run import PHASES, plan_phase, run_phase
from ..module_utils._driver.plan.config_files import RECORD
from ..module_utils._driver.record import Record
from ..module_utils._driver.sent_plan import SentPlan
from ..module_utils._facts.gather import gather
from ..module_utils._facts.runtimes import RuntimePaths
from ..module_utils._host.command import module_runner
from ..module_utils._host.reader import NodeReader
from ..module_utils._record.store import StateStore

# The root directory; tests use a temporary one.
_ROOT = "/"
# The plan, with what it was decided by; message and code of the step that failed; path, checksum
# and whether it is a copy of the runfile on the node; the licence token in base64; the ID of the
# run, which stops if another one has taken over its change.
_INTERNAL: dict[str, dict[str, Any]] = {
    "_phase": {"type": "str", "choices": list(PHASES), "default": "plan"},
    "_plan": {"type": "dict", "default": {}},
    "_failure": {"type": "dict"},
    "_runfile": {"type": "dict"},
    "_token": {"type": "str", "default": "", "no_log": True},
    "_run": {"type": "str", "default": ""},
}


def main() -> None:
    module = InternalOptionsModule(
        argument_spec=ARGUMENT_SPEC,
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
    request, sent = read_request(params), SentPlan.from_json(params["_plan"])
    # As gpu_node_facts reads it, from which the plan was made.
    facts = gather(reader, RuntimePaths(), _below_root(params["state_path"]))
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
        sent,
        Record.from_json(store.get(RECORD)),
    )


def _below_root(path: str) -> str:
    """Return a path relative to the root directory."""
    return path[len(_ROOT.rstrip("/")) :] if path.startswith(_ROOT) else path


if __name__ == "__main__":
    main()
