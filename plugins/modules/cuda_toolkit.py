# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cuda_toolkit
short_description: Install CUDA toolkits side by side, or restore the previous state
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Installs the requested CUDA toolkits from NVIDIA's packages, the distribution's packages or
    NVIDIA's runfile. The driver inside a runfile and the package C(cuda), which depends on one,
    are never installed.
  - Checks the versions against the GPUs and the driver first, and refuses those that cannot run. A
    toolkit that is installed in the requested version is kept, whoever installed it.
  - Points the link C(/usr/local/cuda) at the default version, by C(update-alternatives) where that
    manages the link, as with NVIDIA's packages. Adds the toolkits to the configuration of the
    loader and of the login shells.
  - Then checks the version of each compiler and compiles a small program, which needs no GPU.
  - Records the previous state on the node, which O(state=absent) restores. Toolkits that are no
    longer listed in O(versions) remain until then, with a warning.
  - Makes the same decisions as the filter P(kubegpu.nodes.gpu_plan#filter).
options:
  state:
    description:
      - V(absent) removes the toolkits that this module installed from packages and runfiles, and
        restores the link and the files. Toolkits that were installed before are kept.
    type: str
    choices: [present, absent]
    default: present
  versions:
    description:
      - The CUDA versions to install side by side, such as V(12.9) (any update of it) or V(12.4.1).
        A list of texts, so put each in quotes; YAML reads 12.10 as the number 12.1.
    type: raw
    default: []
  default:
    description:
      - The version that C(/usr/local/cuda) points to. If empty, the newest of O(versions). V(none)
        leaves the link unchanged.
    type: raw
    default: ""
  source:
    description:
      - Where the toolkits come from. V(package) is NVIDIA's repository, V(distro) is the
        distribution's own package. V(auto) is V(runfile) for versions listed in O(runfiles), and
        V(package) for the others.
    type: str
    choices: [auto, package, runfile, distro]
    default: auto
  runfiles:
    description:
      - NVIDIA's C(cuda_*_linux.run) by version, as written in O(versions).
    type: dict
    default: {}
    suboptions:
      VERSION:
        description: A version in quotes, such as C("12.9").
        type: dict
        suboptions:
          url:
            description: URL from which the node downloads the file.
            type: str
          path:
            description: Path of the file on the controller, or on the node.
            type: str
          remote:
            description: Whether O(runfiles.VERSION.path) is on the node.
            type: bool
            default: false
          checksum:
            description: >-
              A SHA-256, or the URL (C(https://), C(file://)) or path of a file that contains it. A
              file without a checksum is not run.
            type: str
  libraries:
    description:
      - Libraries to install from NVIDIA's packages for the default version. Keys are C(cudnn) and
        C(nccl), values their versions. An empty value is the newest version (of C(cudnn) 9).
      - A version of C(nccl) is the build for the default CUDA version. If NVIDIA has none, give the
        full version for another CUDA of the same major version, such as V(2.28.3-1+cuda12.8).
    type: dict
    default: {}
    suboptions:
      cudnn:
        description: Version of cuDNN.
        type: str
      nccl:
        description: Version of NCCL.
        type: str
  hold:
    description:
      - Hold the packages and their dependencies at their versions.
    type: bool
    default: true
  configure:
    description:
      - Configure the loader (C(/etc/ld.so.conf.d/kubegpu-cuda.conf)) and the login shells
        (C(/etc/profile.d/kubegpu-cuda.sh)) for the toolkits.
    type: bool
    default: true
  verify:
    description:
      - Compile a small program with each compiler after a change.
    type: bool
    default: true
  host_compiler:
    description:
      - The host compiler of that test, such as V(/usr/bin/g++-11). If empty, nvcc chooses one.
    type: str
    default: ""
  temporary:
    description:
      - The directory to unpack a runfile in, which takes about 10 GB. If empty,
        C(/var/cache/kubegpu/unpacked), which is removed afterwards.
    type: str
    default: ""
  driver_version:
    description:
      - Version or branch of the driver to check against. If empty, the loaded driver, or else the
        installed one.
    type: str
    default: ""
  manage_repository:
    description:
      - Include the package repository in the plan. The module itself never adds one.
    type: bool
    default: true
  repository_name:
    description:
      - Name of the repository's file without its ending, for the plan.
    type: str
    default: kubegpu-nvidia-cuda
  repository_url:
    description:
      - Address of the repository's mirror, for the plan.
    type: str
    default: ""
  repository_key_url:
    description:
      - Address of the repository's key, for the plan.
    type: str
    default: ""
  key_fingerprints:
    description:
      - Full fingerprints of the keys that may sign the repository, for the plan.
    type: list
    elements: str
    default: []
  planned_repositories:
    description:
      - Addresses of repositories that were added before this task, for the plan.
    type: list
    elements: str
    default: []
  data:
    description:
      - >-
        Rows to merge over the tables of CUDA releases, as with
        P(kubegpu.nodes.driver_required_by#filter), such as C({releases: {"13.6.0": "620.10"}}).
    type: dict
    default: {}
  install_timeout:
    description:
      - Seconds after which the package manager or an installer is stopped.
    type: int
    default: 3600
notes:
  - Does not support C(async). Long operations run in the background of the node by themselves.
  - Needs root. Supports apt, dnf (4 and 5) and zypper for packages, and any Linux for runfiles.
  - The compiler test of a runfile needs a host compiler on the node. If there is none, the runfile
    is refused before it is run.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
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
  - module: kubegpu.nodes.nvidia_driver
  - module: kubegpu.nodes.package_set
"""

EXAMPLES = r"""
- name: Install two versions side by side, with the older one as default
  kubegpu.nodes.cuda_toolkit:
    versions: ['12.9', '13.0']
    default: '12.9'

- name: Install from NVIDIA's runfile, without the driver in it
  kubegpu.nodes.cuda_toolkit:
    versions: ['12.2']
    runfiles:
      '12.2':
        path: cuda_12.2.2_535.104.05_linux.run
        checksum: "{{ cuda_sha256 }}"

- name: Restore the previous state
  kubegpu.nodes.cuda_toolkit:
    state: absent
"""

RETURN = r"""
plan:
  description: The changes and their reasons, as returned by the filter
    P(kubegpu.nodes.gpu_plan#filter). Empty for O(state=absent).
  returned: success
  type: dict
  sample:
    action: install
    default: "12.9"
    change: true
    packages: {cuda-toolkit-12-9: null}
default:
  description: The target of C(/usr/local/cuda) after the change; V(null) if it does not exist.
  returned: success
  type: str
  sample: /usr/local/cuda-12.9
compilers:
  description: The version of each compiler, if they were tested in this run.
  returned: success
  type: dict
  sample: {"12.9": 12.9.86}
left:
  description: Directories that are not empty after their uninstaller.
  returned: success
  type: list
  elements: str
  sample: []
diff:
  description: Link, files, runfile toolkits and packages, before and after.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: "absent\n"
      after: "/usr/local/cuda-12.9\n"
      before_header: /usr/local/cuda
      after_header: /usr/local/cuda
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
from ..module_utils._core.proxy_options import PROXY_ARGUMENTS, use_proxies
from ..module_utils._cuda.apply import PHASES, Dependencies, run_phase
from ..module_utils._cuda.host import CudaNode
from ..module_utils._cuda.options import MODULE_ARGUMENTS
from ..module_utils._facts.gather import gather
from ..module_utils._facts.runtimes import RuntimePaths
from ..module_utils._host.command import module_runner
from ..module_utils._host.reader import NodeReader
from ..module_utils._record.options import STATE_ARGUMENTS
from ..module_utils._record.store import StateStore

# The root of the node; tests use a directory of their own.
_ROOT = "/"


def main() -> None:
    module = InternalOptionsModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            **MODULE_ARGUMENTS,
            "lock_timeout": {"type": "int", "default": 600},
            **PROXY_ARGUMENTS,
            "install_timeout": {"type": "int", "default": 3600},
            **STATE_ARGUMENTS,
        },
        # Path of the runfile on the node, and the version in it.
        internal={
            "_phase": {"type": "str", "choices": list(PHASES), "default": "plan"},
            "_runfile": {"type": "str", "default": ""},
            "_version": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    use_proxies(module.params, os.environ)
    try:
        phase = "plan" if module.check_mode else module.params["_phase"]
        module.exit_json(**run_phase(phase, _dependencies(module)))
    except KubegpuError as error:
        fail(module, error)


def _dependencies(module: InternalOptionsModule) -> Dependencies:
    run = module_runner(module)
    reader = NodeReader(_ROOT, run)
    state_path = module.params["state_path"]

    def facts() -> dict[str, Any]:
        return gather(reader, RuntimePaths(), state_path, fresh=True)

    return Dependencies(
        params={**module.params, "controller": module.ansible_version},
        node=CudaNode(run, reader),
        store=StateStore(state_path),
        facts=facts,
        warn=module.warn,
        temporary=lambda: str(module.tmpdir),
        diff=module._diff,
    )


if __name__ == "__main__":
    main()
