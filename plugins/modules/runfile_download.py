# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: runfile_download
short_description: Bring a runfile or its checksum to a node, within limits
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - M(kubegpu.nodes.nvidia_driver) and M(kubegpu.nodes.cuda_toolkit) have it called for a runfile
    that is given by its address; there is seldom a reason to call it otherwise.
  - The file is compared with its sha256 before it gets its name. A server that sends more than
    O(max_bytes), or takes longer than O(max_seconds), is not listened to any further.
  - The proxy is that of the task's environment.
extends_documentation_fragment:
  - kubegpu.nodes.attributes
options:
  url:
    description: Where the file is. User, password and query are not shown.
    type: str
    required: true
  dest:
    description: >-
      The file on the node. Without it the text at the address is returned as RV(content), and a
      redirection to another scheme is refused.
    type: path
  sha256:
    description: What the file has to be, as 64 hexadecimal digits.
    type: str
  partial:
    description: >-
      A folder on the file system of O(dest), where the file is until it was compared. Without it,
      the folder of O(dest).
    type: path
  max_bytes:
    description: How large the file may be.
    type: int
    default: 17179869184
  max_seconds:
    description: How many seconds it may take in all. One answer may take a minute.
    type: int
    default: 86400
attributes:
  check_mode:
    description: >-
      Says whether O(dest) would change. The server is asked whether the file is there (HEAD), where
      it answers that. Without O(dest) the text is read in check mode, too.
    support: full
  diff_mode:
    description: A runfile is no text.
    support: none
  idempotent:
    description: A file that is there with its sha256 is not brought again.
    support: full
  platform:
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Bring the driver's runfile
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
  description: The sha256 of the file that was at the address.
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
