# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: runfile_download
short_description: Download a runfile or its checksum to a node (internal)
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The playbooks and roles of this collection use it. Its options can change in any release.
  - The action plugins of M(kubegpu.nodes.nvidia_driver) and M(kubegpu.nodes.cuda_toolkit) call it
    for a runfile with an address; other uses are rare.
  - The sha256 of the file is verified before the file gets its name. The download fails if the
    server sends more than O(max_bytes) or takes longer than O(max_seconds).
  - The proxy is taken from the environment of the task.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
options:
  url:
    description: Address of the file. User, password and query are not shown.
    type: str
    required: true
  dest:
    description: >-
      The file on the node. Without it the text at the address is returned as RV(content), and a
      redirection to another scheme is refused.
    type: path
  sha256:
    description: The required sha256 of the file, as 64 hexadecimal digits.
    type: str
  partial:
    description: >-
      A folder on the file system of O(dest) for the file until it is verified. Default is
      the folder of O(dest).
    type: path
  max_bytes:
    description: Maximum size of the file in bytes.
    type: int
    default: 17179869184
  max_seconds:
    description: Time limit of the whole download in seconds. A single response may take a minute.
    type: int
    default: 86400
attributes:
  check_mode:
    description: >-
      Returns whether O(dest) would change. A HEAD request checks whether the file exists, if
      the server supports it. Without O(dest) the text is also read in check mode.
    support: full
  diff_mode:
    description: A runfile is not a text file.
    support: none
  idempotent:
    description: An existing file with this sha256 is not downloaded again.
    support: full
  platform:
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Download the driver's runfile
  kubegpu.nodes.runfile_download:
    url: https://mirror.example/NVIDIA-Linux-x86_64-580.95.05.run
    dest: /var/cache/kubegpu/NVIDIA-Linux-x86_64-580.95.05.run
    sha256: "{{ driver_sha256 }}"
"""

RETURN = r"""
content:
  description: The text at the address.
  returned: without O(dest)
  type: str
  sample: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  x.run\n"
found_sha256:
  description: The sha256 of the downloaded file.
  returned: failed, where the file is another one
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
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

import hashlib
import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._host.download import WrongChecksum, read_text, save, check_exists
from ..module_utils._core.errors import KubegpuError
from ..module_utils._core.failure import fail
from ..module_utils._core.redact import secrets


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            # What is logged of a call has no address, which can have a password; see below.
            "url": {"type": "str", "required": True, "no_log": True},
            "dest": {"type": "path"},
            "sha256": {"type": "str"},
            "partial": {"type": "path"},
            "max_bytes": {"type": "int", "default": 16 << 30},
            "max_seconds": {"type": "int", "default": 86400},
        },
        required_together=[("dest", "sha256")],
        supports_check_mode=True,
    )
    url = module.params["url"]
    # In messages the address is shown, without what is secret in it.
    module.no_log_values.discard(url)
    module.no_log_values.update(secrets(url))
    try:
        module.exit_json(**_run(module, url))
    except WrongChecksum as error:
        fail(module, error, found_sha256=error.found)
    except KubegpuError as error:
        fail(module, error)


def _run(module: AnsibleModule, url: str) -> dict[str, Any]:
    params = module.params
    limits = (params["max_bytes"], params["max_seconds"])
    path = params["dest"]
    if path is None:
        return {"changed": False, "content": read_text(url, *limits)}
    wanted = params["sha256"].lower()
    if _sha256(path) == wanted:
        return {"changed": False}
    if module.check_mode:
        check_exists(url, params["max_seconds"])
    else:
        save(url, path, wanted, *limits, params["partial"] or os.path.dirname(path))
    return {"changed": True}


def _sha256(path: str) -> str | None:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as handle:
            while part := handle.read(1 << 20):
                digest.update(part)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KubegpuError(
            f"{path} cannot be read.",
            evidence=str(error),
            next_step="Run with become, and give the path of a file.",
        ) from error
    return digest.hexdigest()


if __name__ == "__main__":
    main()
