# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options that the modules of container runtimes have in common."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended as C(kubegpu.nodes.runtime), and by containerd and CRI-O as C(runtime.cri)."""

    DOCUMENTATION = r"""
options:
  name:
    description: Name of the handler, as used in a RuntimeClass or in C(docker run --runtime).
    type: str
    default: nvidia
  state:
    description:
      - V(present) adds the handler, or corrects differences in an existing one.
      - V(absent) reverts the changes of this module. Without a record, a handler of containerd or
        Docker is removed only if it is exactly as the module writes it.
    type: str
    choices: [present, absent]
    default: present
  set_default:
    description:
      - Make the handler the default runtime. V(false) reverts a default that this module set, and
        does not change any other default.
    type: bool
    default: false
"""

    CRI = r"""
options:
  runtime_path:
    description: Binary of the handler. If it does not exist, the module warns, and the handler
      works once it does.
    type: path
    default: /usr/bin/nvidia-container-runtime
  restart:
    description:
      - Restart the daemon if it has not loaded the current files, and wait until it is ready
        and, if it lists them, has the handler. Running containers are not affected.
      - If it does not become ready, the files are restored, it is restarted once more, and the
        module fails with an excerpt of its journal.
    type: bool
    default: false
  toolkit_expected:
    description:
      - Whether the same play installs the container toolkit before this module runs without check
        mode. Check mode then does not warn if O(runtime_path) does not exist.
    type: bool
    default: false
"""

    FINGERPRINT = r"""
options:
  fingerprint:
    description:
      - Fingerprint of the caller's settings. If nothing has to change, it is stored on the node and
        M(kubegpu.nodes.gpu_node_facts) returns it in C(converged) until a relevant file or the
        daemon changes. Callers that find their fingerprint there can skip this module.
    type: str
    default: ""
"""
