# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_repository
short_description: Set up a vendor's package repository with a key that is checked by fingerprint
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Writes one entry for a package repository, the key that signs it and, where asked for, how its
    host is reached. All of these files are written, or none is.
  - The key is compared with full fingerprints before anything is written. A key file with any
    other key in it is refused.
  - Earlier entries for the same repository, in whatever file and of whatever format, are switched
    off, because apt refuses all of them with C(Conflicting values set for option Signed-By) or
    mixes them up. The rest of such a file stays as it is.
  - What stood there before is recorded on the node, and O(state=absent) puts it back.
options:
  name:
    description:
      - Stem of the files' names, and the name under which the change is recorded.
    type: str
    required: true
  state:
    description:
      - Whether the repository is there. V(absent) gives back what stood there before; of a file
        that somebody edited since, only our own lines go.
    type: str
    choices: [present, absent]
    default: present
  format:
    description:
      - Which package manager's files are written. V(auto) takes that of the node.
    type: str
    choices: [auto, apt, dnf, dnf5, zypper]
    default: auto
  url:
    description:
      - Address of the repository, or of a mirror of it. Required with O(state=present).
      - User and password in it are kept out of diffs and logs; apt's own place for them is
        C(/etc/apt/auth.conf.d).
    type: str
  suite:
    description:
      - The suite. One that ends with a slash is a path below O(url) and has no components, as in
        all repositories of NVIDIA. C($(ARCH)) is replaced by apt.
      - With dnf and zypper it is the path of the repository below O(url); C($basearch) is replaced
        by them, and V(/) is the address itself.
      - Where it is not given, it is V($(ARCH\)/) for apt and V($basearch) for the others.
    type: str
  components:
    description:
      - Components of the suite.
    type: list
    elements: str
    default: []
  key:
    description:
      - The key or keys that sign the repository, as ASCII-armored text. One of O(key), O(key_url)
        and O(keyring) is required with O(state=present).
      - What is written is made from the keys in it, and nothing else. Text outside of the armored
        blocks, but for white space, is an error.
    type: str
  key_url:
    description:
      - Address of the key, instead of O(key). The node reads it with O(http_proxy),
        O(https_proxy), O(no_proxy) and O(ca_file), in check mode too, within a minute and up to
        1 MB. The file is ASCII-armored or binary.
    type: str
  key_fingerprints:
    description:
      - Full fingerprints of the keys that may be in O(key) or at O(key_url), with or without
        spaces. Required with these. With O(keyring), where they are given, it may hold no other key
        either; leave them out for the distribution's own file, which gets new keys.
    type: list
    elements: str
    aliases: [key_fingerprint]
  keyring:
    description:
      - A key file that is on the node already, such as the distribution's own
        V(/usr/share/keyrings/debian-archive-keyring.gpg), instead of O(key) or O(key_url). It is
        neither written nor removed.
      - The entry is then one beside others for the same address and suite, such as more components
        of the distribution's archive. They stay, and the entry names its keys as they do, since apt
        refuses entries that differ in this. Only what O(replaces) names is switched off.
    type: path
  replaces:
    description:
      - More addresses of the same repository. Entries for them, or for anything below them, are
        switched off as well. Name the vendor's own address here where O(url) is a mirror.
    type: list
    elements: str
    default: []
  check_packages:
    description:
      - Whether dnf and zypper refuse packages that are not signed. NVIDIA's repository of the
        container toolkit signs its metadata and not its packages.
    type: bool
    default: true
  check_metadata:
    description:
      - Whether dnf and zypper refuse metadata that is not signed. NVIDIA's CUDA repositories sign
        their packages. One of the two has to be true; apt always wants signed metadata.
    type: bool
    default: true
  http_proxy:
    description:
      - Proxy through which the repository's host is reached with HTTP. No other host is affected.
    type: str
  no_proxy:
    description: >-
      Hosts that are reached without proxy, separated by commas: names, domains (V(.example.com)) or
      V(*). The repository's host is then written as such for apt.
    type: str
  https_proxy:
    description:
      - The same for HTTPS.
    type: str
  ca_file:
    description:
      - File on the node with the certificates of the authority that signs the host's certificate.
        No other host is affected.
    type: path
  validate:
    description:
      - Whether the package manager has to accept the result (C(apt-get indextargets),
        C(dnf repolist), C(zypper repos)). Where it does not, all files are put back. It uses no
        network.
    type: bool
    default: true
  sources_directory:
    description:
      - Directory of the source entries; by default V(/etc/apt/sources.list.d),
        V(/etc/yum.repos.d) or V(/etc/zypp/repos.d).
    type: path
  sources_list:
    description:
      - Apt's main list of source entries, by default V(/etc/apt/sources.list).
    type: path
  keyring_directory:
    description:
      - Directory in which the key is written; by default V(/etc/apt/keyrings) or
        V(/etc/pki/rpm-gpg).
    type: path
  configuration_directory:
    description:
      - Directory of apt's configuration, for the proxy and the authority, by default
        V(/etc/apt/apt.conf.d). dnf has both in the entry itself.
    type: path
notes:
  - M(ansible.builtin.deb822_repository) needs python3-debian on the node and fails in check mode
    where it is missing, does not look at entries in other files, and records nothing that a
    teardown could go by. That is why this module is here.
  - rpm has one keyring for the whole node. Where packages have to be signed, and with zypper
    always, the keys are imported there. With O(state=absent) they are erased again if it was this
    module that imported them and no other repository of its record needs them.
  - zypper takes its proxy and its certificate authorities from the whole system
    (C(/etc/sysconfig/proxy), C(update-ca-certificates)). Where they are given here, the entry is
    written without them, and a warning says so.
  - Package lists are not refreshed. M(kubegpu.nodes.package_set) does so when it has to.
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
    platforms: debian, rhel, suse
seealso:
  - module: kubegpu.nodes.package_set
"""

EXAMPLES = r"""
- name: Set up the repository of the container toolkit
  kubegpu.nodes.nvidia_repository:
    name: kubegpu-nvidia-container-toolkit
    url: https://nvidia.github.io/libnvidia-container/stable/deb
    key: "{{ lookup('ansible.builtin.file', 'files/nvidia-container-toolkit.asc') }}"
    key_fingerprints:
      - C95B 321B 61E8 8C18 09C4 F759 DDCA E044 F796 ECB0

- name: Use a mirror with a private certificate authority in its place
  kubegpu.nodes.nvidia_repository:
    name: kubegpu-nvidia-container-toolkit
    url: https://mirror.example.org/nvidia/stable/deb
    key_url: https://mirror.example.org/nvidia/gpgkey
    key_fingerprints:
      - C95B321B61E88C1809C4F759DDCAE044F796ECB0
    replaces:
      - https://nvidia.github.io/libnvidia-container/stable
    ca_file: /usr/local/share/ca-certificates/site.crt

- name: Add a component of the distribution, signed by its own keys
  kubegpu.nodes.nvidia_repository:
    name: kubegpu-nvidia-driver
    url: http://deb.debian.org/debian
    suite: bookworm
    components: [contrib, non-free, non-free-firmware]
    keyring: /usr/share/keyrings/debian-archive-keyring.gpg

- name: Give back what stood there before
  kubegpu.nodes.nvidia_repository:
    name: kubegpu-nvidia-container-toolkit
    state: absent
"""

RETURN = r"""
files:
  description: The files of this repository, by what they are. The configuration is there only
    where a proxy or an authority is given.
  returned: success
  type: dict
  sample:
    key: /etc/apt/keyrings/kubegpu-nvidia-container-toolkit.asc
    sources: /etc/apt/sources.list.d/kubegpu-nvidia-container-toolkit.sources
disabled:
  description: Earlier entries that were switched off by this run.
  returned: success
  type: list
  elements: dict
  sample:
    - file: /etc/apt/sources.list.d/nvidia-container-toolkit.list
      entry: https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /
key_fingerprints:
  description: Fingerprints of the keys in the key file.
  returned: success
  type: list
  elements: str
  sample: [C95B321B61E88C1809C4F759DDCAE044F796ECB0]
reasons:
  description: Why something was, or would be, changed.
  returned: success
  type: list
  elements: str
  sample:
    - /etc/apt/sources.list.d/kubegpu-nvidia-container-toolkit.sources is not there.
diff:
  description: >-
    What changes in each file, with the lines around it. Passwords and tokens are covered.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: ""
      after: "Types: deb\n"
      before_header: /etc/apt/sources.list.d/kubegpu-nvidia-container-toolkit.sources
      after_header: /etc/apt/sources.list.d/kubegpu-nvidia-container-toolkit.sources
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import KubegpuError
from ..module_utils._core.printable import printable
from ..module_utils._core.redact import redact
from ..module_utils._host.command import module_runner
from ..module_utils._record.store import StateStore
from ..module_utils._repository.apply import Result, apply
from ..module_utils._repository.options import read_options
from ..module_utils._repository.rpm import RPM_FORMATS

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "format": {"type": "str", "choices": ["auto", "apt", *RPM_FORMATS], "default": "auto"},
    "url": {"type": "str"},
    "suite": {"type": "str"},
    "components": {"type": "list", "elements": "str", "default": []},
    # A public key: nothing to hide.
    "key": {"type": "str", "no_log": False},
    "key_url": {"type": "str", "no_log": False},
    "key_fingerprints": {
        "type": "list",
        "elements": "str",
        "aliases": ["key_fingerprint"],
        "no_log": False,
    },
    # The path of a public key.
    "keyring": {"type": "path", "no_log": False},
    "replaces": {"type": "list", "elements": "str", "default": []},
    "http_proxy": {"type": "str"},
    "https_proxy": {"type": "str"},
    "no_proxy": {"type": "str"},
    "ca_file": {"type": "path"},
    "validate": {"type": "bool", "default": True},
    "check_packages": {"type": "bool", "default": True},
    "check_metadata": {"type": "bool", "default": True},
    "sources_directory": {"type": "path"},
    "sources_list": {"type": "path"},
    "keyring_directory": {"type": "path", "no_log": False},
    "configuration_directory": {"type": "path"},
    "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        required_if=[
            ("state", "present", ("url",)),
            ("state", "present", ("key", "key_url", "keyring"), True),
        ],
        mutually_exclusive=[("key", "key_url", "keyring")],
        required_by={"key": "key_fingerprints", "key_url": "key_fingerprints"},
        supports_check_mode=True,
    )
    try:
        result = _run(module)
    except KubegpuError as error:
        module.fail_json(msg=redact(str(error)))
    for text in result.warnings:
        module.warn(printable(text))
    if module._diff:
        result.values["diff"] = list(result.diff)
    module.exit_json(**result.values)


def _run(module: AnsibleModule) -> Result:
    run = module_runner(module)
    options = read_options(module.params, run, check_mode=module.check_mode)
    # Ansible returns and logs the invocation, so that its passwords have to be covered there, too.
    module.no_log_values.update(options.secrets())
    return apply(options, run, StateStore(module.params["state_path"]))


if __name__ == "__main__":
    main()
