# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cuda_toolkit
short_description: Install CUDA toolkits side by side, or give back what stood there before
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Brings the CUDA toolkits that are asked for to the node, by NVIDIA's packages, the
    distribution's, or NVIDIA's runfile. The driver inside a runfile, and the package C(cuda) that
    brings one, are never installed.
  - The versions are checked against the GPUs and the driver first, and refused where these cannot
    run them. A toolkit that is there in the version asked for is kept, whoever put it there.
  - One version is the default, by the link C(/usr/local/cuda), through alternatives where they
    manage the link, as NVIDIA's packages have it. The loader and the login shells get to know it.
  - Each compiler then has to say its version and compile a small program, which needs no GPU.
  - What stood there before is recorded on the node, and O(state=absent) gives it back. Toolkits
    that are no longer named in O(versions) stay until then, with a warning.
  - Decides by the same rules as the filter P(kubegpu.nodes.cuda_toolkit_plan#filter).
options:
  state:
    description:
      - V(absent) removes the toolkits that this module installed, packages and runfiles, and puts
        link and files back. Toolkits that were there before stay.
    type: str
    choices: [present, absent]
    default: present
  versions:
    description:
      - The CUDA versions that shall be there side by side, such as V(12.9) (any update of it) or
        V(12.4.1). In quotes.
    type: list
    elements: str
    default: []
  default:
    description:
      - The version that C(/usr/local/cuda) leads to. Empty is the newest of O(versions), V(none)
        leaves the link alone.
    type: str
    default: ""
  source:
    description:
      - Where the toolkits come from. V(package) is NVIDIA's repository, V(distro) the
        distribution's own package, V(auto) is V(runfile) for versions that O(runfiles) has, and
        V(package) for the others.
    type: str
    choices: [auto, package, runfile, distro]
    default: auto
  runfiles:
    description:
      - NVIDIA's C(cuda_*_linux.run) by version, as written in O(versions).
      - Each has C(url) or C(path) (on the controller; with C(remote=true), on the node) and
        C(checksum), a sha256 or the address of a file that has it (C(https://), C(file://) or a
        path). Without it the file is not run.
    type: dict
    default: {}
  libraries:
    description:
      - Libraries beside the toolkit, by NVIDIA's packages for the default version, C(cudnn) and
        C(nccl), with their version. It may be empty, for the newest (of C(cudnn) 9).
      - That of C(nccl) is the build for this CUDA; where NVIDIA has none, give one for another CUDA
        of the same major version in full, such as V(2.28.3-1+cuda12.8).
    type: dict
    default: {}
  hold:
    description:
      - Whether the packages are held, and what came along with the toolkits.
    type: bool
    default: true
  configure:
    description:
      - Whether the loader (C(/etc/ld.so.conf.d/kubegpu-cuda.conf)) and the login shells
        (C(/etc/profile.d/kubegpu-cuda.sh)) get to know the toolkits.
    type: bool
    default: true
  verify:
    description:
      - Whether the compilers have to compile a small program after a change.
    type: bool
    default: true
  host_compiler:
    description:
      - The host compiler of that proof, such as V(/usr/bin/g++-11). Empty is nvcc's own choice.
    type: str
    default: ""
  temporary:
    description:
      - Where a runfile is unpacked, which takes about 10 GB. Empty is its own choice, C(/tmp).
    type: str
    default: ""
  driver_version:
    description:
      - Version or branch of the driver to check against. Empty is the loaded one, else the
        installed one.
    type: str
    default: ""
  manage_repository:
    description:
      - Whether the plan looks at the package repository. The module itself never adds one.
    type: bool
    default: true
  repository_name:
    description:
      - Stem of the repository's file, for the plan.
    type: str
    default: kubegpu-nvidia-cuda
  repository_url:
    description:
      - Address of the repository's mirror, for the plan.
    type: str
    default: ""
  repository_key_url:
    description:
      - Where the repository's key is read, for the plan.
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
      - Addresses of repositories that are there by the time of this task, for the plan.
    type: list
    elements: str
    default: []
  data:
    description:
      - Rows that are merged over the tables of P(kubegpu.nodes.driver_required_by#filter).
    type: dict
    default: {}
  repositories:
    description:
      - Rows that are merged over the table of NVIDIA's repositories.
    type: dict
    default: {}
  install_timeout:
    description:
      - Seconds after which the package manager or an installer is stopped.
    type: int
    default: 3600
  _phase:
    description:
      - Internal. What the module's action plugin asks for.
    type: str
    choices: [plan, begin, runfile, uninstall, finish]
    default: plan
  _runfile:
    description:
      - Internal. Where the runfile is on the node.
    type: str
    default: ""
  _version:
    description:
      - Internal. The version that the runfile is for.
    type: str
    default: ""
notes:
  - Is not run with C(async). What takes long runs detached from the connection by itself.
  - Needs root. Packages are installed with apt, dnf (4 and 5) and zypper, runfiles on any Linux.
  - NVIDIA's runfile needs a host compiler on the node for the proof; where there is none, it is
    refused before it is run.
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
    platforms: debian
seealso:
  - module: kubegpu.nodes.gpu_node_facts
  - module: kubegpu.nodes.nvidia_driver
  - module: kubegpu.nodes.package_set
"""

EXAMPLES = r"""
- name: Two versions side by side, the older one as default
  kubegpu.nodes.cuda_toolkit:
    versions: ['12.9', '13.0']
    default: '12.9'

- name: By NVIDIA's own file, without the driver in it
  kubegpu.nodes.cuda_toolkit:
    versions: ['12.2']
    runfiles:
      '12.2':
        path: cuda_12.2.2_535.104.05_linux.run
        checksum: "{{ cuda_sha256 }}"

- name: Give back what stood there before
  kubegpu.nodes.cuda_toolkit:
    state: absent
"""

RETURN = r"""
plan:
  description: What was, or would be, done and why, as the filter
    P(kubegpu.nodes.cuda_toolkit_plan#filter) returns it. Empty for O(state=absent).
  returned: success
  type: dict
  sample:
    action: install
    default: "12.9"
    change: true
    packages: {cuda-toolkit-12-9: null}
default:
  description: Where C(/usr/local/cuda) leads, or would lead, afterwards; V(null) where nowhere.
  returned: success
  type: str
  sample: /usr/local/cuda-12.9
compilers:
  description: The version that each compiler says, where they were proven in this run.
  returned: success
  type: dict
  sample: {"12.9": 12.9.86}
left:
  description: Folders that an uninstaller did not empty.
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
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import KubegpuError
from ..module_utils._core.proxy_options import PROXY_ARGUMENTS, use_proxies
from ..module_utils._core.redact import redact
from ..module_utils._cuda.apply import PHASES, Dependencies, run_phase
from ..module_utils._cuda.host import CudaNode
from ..module_utils._facts.gather import gather
from ..module_utils._facts.runtimes import RuntimePaths
from ..module_utils._host.command import module_runner
from ..module_utils._host.reader import NodeReader
from ..module_utils._record.store import StateStore

# Below this everything is; tests have a folder of their own.
_ROOT = "/"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "versions": {"type": "list", "elements": "str", "default": []},
            "default": {"type": "str", "default": ""},
            "source": {
                "type": "str",
                "choices": ["auto", "package", "runfile", "distro"],
                "default": "auto",
            },
            "runfiles": {"type": "dict", "default": {}},
            "libraries": {"type": "dict", "default": {}},
            "hold": {"type": "bool", "default": True},
            "configure": {"type": "bool", "default": True},
            "verify": {"type": "bool", "default": True},
            "host_compiler": {"type": "str", "default": ""},
            "temporary": {"type": "str", "default": ""},
            "driver_version": {"type": "str", "default": ""},
            "manage_repository": {"type": "bool", "default": True},
            "repository_name": {"type": "str", "default": "kubegpu-nvidia-cuda"},
            "repository_url": {"type": "str", "default": ""},
            # An address and fingerprints: nothing to hide.
            "repository_key_url": {"type": "str", "default": "", "no_log": False},
            "key_fingerprints": {
                "type": "list",
                "elements": "str",
                "default": [],
                "no_log": False,
            },
            "planned_repositories": {"type": "list", "elements": "str", "default": []},
            "data": {"type": "dict", "default": {}},
            "repositories": {"type": "dict", "default": {}},
            "lock_timeout": {"type": "int", "default": 120},
            **PROXY_ARGUMENTS,
            "install_timeout": {"type": "int", "default": 3600},
            "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
            # For the action plugin alone.
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
        module.fail_json(msg=redact(str(error)))


def _dependencies(module: AnsibleModule) -> Dependencies:
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
