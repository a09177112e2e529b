# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: package_repository
short_description: Set up a package repository with a key that is checked by its fingerprint
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Writes one entry for a package repository, the key that signs it and, if requested, the proxy
    and the certificate authority of its host. All of these files are written, or none is.
  - The key is compared with full fingerprints before anything is written. A key file with any
    other key in it is refused.
  - Earlier entries for the same repository, in any file and format, are disabled, because apt
    refuses all of them with C(Conflicting values set for option Signed-By) or mixes them up. The
    rest of such a file is not changed.
  - The previous files are recorded on the node, and O(state=absent) restores them.
options:
  name:
    description:
      - Stem of the file names, and the name under which the change is recorded.
    type: str
    required: true
  state:
    description:
      - Whether the repository is set up. V(absent) restores the previous files; from a file that
        was edited since, it removes only the lines of this module.
    type: str
    choices: [present, absent]
    default: present
  format:
    description:
      - The package manager whose files are written. V(auto) is that of the node.
    type: str
    choices: [auto, apt, dnf, dnf5, zypper]
    default: auto
  url:
    description:
      - Address of the repository, or of a mirror of it. Required with O(state=present).
      - Diffs and logs do not show its user and password. apt's own place for them is
        C(/etc/apt/auth.conf.d).
    type: str
  suite:
    description:
      - The suite. One that ends with a slash is a path below O(url) and has no components, as in
        all repositories of NVIDIA. C($(ARCH)) is replaced by apt.
      - With dnf and zypper it is the path of the repository below O(url); C($basearch) is replaced
        by them, and V(/) is the address itself.
      - The default is V($(ARCH\)/) for apt and V($basearch) for the others.
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
      - Only the keys in it are written. Text outside of the armored blocks, except for white
        space, is an error.
    type: str
  key_url:
    description:
      - URL of the key, instead of O(key). The node downloads it with O(http_proxy),
        O(https_proxy), O(no_proxy) and O(ca_file), also in check mode, within 60 seconds and up to
        1 MB. The file is ASCII-armored or binary.
    type: str
  key_fingerprints:
    description:
      - Full fingerprints of the accepted keys, with or without spaces. O(key) and O(key_url)
        require them, and may contain no other key. They are optional for O(keyring); leave them out
        for the distribution's own file, which gets new keys.
    type: list
    elements: str
    aliases: [key_fingerprint]
  keyring:
    description:
      - An existing key file of the node, such as the distribution's own
        V(/usr/share/keyrings/debian-archive-keyring.gpg), instead of O(key) or O(key_url). It is
        neither written nor removed.
      - Other entries for the same address and suite are then not disabled, so that an entry can add
        components of the distribution's archive. The entry has the same Signed-By as they, because
        apt refuses entries that differ in it. Only entries named in O(replaces) are disabled.
    type: path
  replaces:
    description:
      - More addresses of the same repository. Entries for them, or for addresses below them, are
        disabled, too. Name the vendor's own address here if O(url) is a mirror.
    type: list
    elements: str
    default: []
  check_packages:
    description:
      - Let dnf and zypper refuse packages that are not signed. NVIDIA's repository of the container
        toolkit signs its metadata and not its packages.
    type: bool
    default: true
  check_metadata:
    description:
      - Let dnf and zypper refuse metadata that is not signed. NVIDIA's CUDA repositories sign their
        packages. One of the two must be V(true); apt always requires signed metadata.
    type: bool
    default: true
  http_proxy:
    description:
      - Proxy for HTTP to the repository's host. No other host is affected.
    type: str
  no_proxy:
    description: >-
      Hosts that are reached without a proxy, separated by commas: names, domains (V(.example.com))
      or V(*). The repository's host is then written as such for apt and dnf.
    type: str
  https_proxy:
    description:
      - The same for HTTPS.
    type: str
  ca_file:
    description:
      - File on the node with the CA certificates for the repository's host. No other host is
        affected.
    type: path
  proxies:
    description:
      - Mappings with the keys O(http_proxy), O(https_proxy), O(no_proxy) and O(ca_file), instead of
        these options. Of a key that several mappings have, the last value counts; an empty one is
        not set.
    type: list
    elements: dict
  settings:
    description:
      - The repository's mapping of a role, such as C(nvidia_driver_repository), if O(url) and
        O(key_url) are those of a plan, which has no passwords. Its C(url) and C(key_url) have the
        user, the password and the query of them; C(key_file) is the file of the controller with
        O(key), which then replaces O(key_url). With O(keyring) none of them is used.
    type: dict
  validate:
    description:
      - Validate the result with the package manager (C(apt-get indextargets), C(dnf repolist),
        C(zypper repos)). If it fails, all files are restored. The network is not used.
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
      - Directory of the key file; by default V(/etc/apt/keyrings) or
        V(/etc/pki/rpm-gpg).
    type: path
  configuration_directory:
    description:
      - Directory of apt's configuration with proxy and certificate authority, by default
        V(/etc/apt/apt.conf.d). dnf has them in the entry itself.
    type: path
notes:
  - This module exists because M(ansible.builtin.deb822_repository) needs python3-debian on the node
    and fails in check mode without it, ignores entries in other files, and keeps no record for a
    teardown.
  - rpm has one keyring for the whole node. The keys are imported there if packages have to be
    signed, and always with zypper. O(state=absent) erases keys that this module imported and that
    no other recorded repository needs.
  - zypper uses the system's proxy and certificate authorities (C(/etc/sysconfig/proxy),
    C(update-ca-certificates)). If they are given here, the entry is written without them, with a
    warning.
  - Package lists are not refreshed. M(kubegpu.nodes.package_set) refreshes them if needed.
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
  kubegpu.nodes.package_repository:
    name: kubegpu-nvidia-container-toolkit
    url: https://nvidia.github.io/libnvidia-container/stable/deb
    key: "{{ lookup('ansible.builtin.file', 'files/nvidia-container-toolkit.asc') }}"
    key_fingerprints:
      - C95B 321B 61E8 8C18 09C4 F759 DDCA E044 F796 ECB0

- name: Use a mirror with a private certificate authority
  kubegpu.nodes.package_repository:
    name: kubegpu-nvidia-container-toolkit
    url: https://mirror.example.org/nvidia/stable/deb
    key_url: https://mirror.example.org/nvidia/gpgkey
    key_fingerprints:
      - C95B321B61E88C1809C4F759DDCAE044F796ECB0
    replaces:
      - https://nvidia.github.io/libnvidia-container/stable
    ca_file: /usr/local/share/ca-certificates/site.crt

- name: Add a component of the distribution, signed by its own keys
  kubegpu.nodes.package_repository:
    name: kubegpu-nvidia-driver
    url: http://mirror.example/debian
    suite: bookworm
    components: [contrib, non-free, non-free-firmware]
    keyring: /usr/share/keyrings/debian-archive-keyring.gpg

- name: Restore the previous files
  kubegpu.nodes.package_repository:
    name: kubegpu-nvidia-container-toolkit
    state: absent
"""

RETURN = r"""
files:
  description: The files of this repository by purpose. The configuration is listed only with a
    proxy or a certificate authority.
  returned: success
  type: dict
  sample:
    key: /etc/apt/keyrings/kubegpu-nvidia-container-toolkit.asc
    sources: /etc/apt/sources.list.d/kubegpu-nvidia-container-toolkit.sources
disabled:
  description: Earlier entries that this run disabled.
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
  description: The reasons for changes.
  returned: success
  type: list
  elements: str
  sample:
    - /etc/apt/sources.list.d/kubegpu-nvidia-container-toolkit.sources is not there.
diff:
  description: >-
    The changed lines of each file with their context. Passwords and tokens are redacted.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: ""
      after: "Types: deb\n"
      before_header: /etc/apt/sources.list.d/kubegpu-nvidia-container-toolkit.sources
      after_header: /etc/apt/sources.list.d/kubegpu-nvidia-container-toolkit.sources
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

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import KubegpuError
from ..module_utils._core.failure import fail
from ..module_utils._core.printable import printable
from ..module_utils._core.proxy_options import MERGED
from ..module_utils._host.command import module_runner
from ..module_utils._record.options import STATE_ARGUMENTS
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
    "proxies": MERGED,
    "settings": {"type": "dict", "no_log": True},
    "validate": {"type": "bool", "default": True},
    "check_packages": {"type": "bool", "default": True},
    "check_metadata": {"type": "bool", "default": True},
    "sources_directory": {"type": "path"},
    "sources_list": {"type": "path"},
    "keyring_directory": {"type": "path", "no_log": False},
    "configuration_directory": {"type": "path"},
    **STATE_ARGUMENTS,
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
        fail(module, error)
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
