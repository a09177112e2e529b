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

import os
import platform
from dataclasses import replace
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._record.transaction import FileChange, applied
from ..module_utils._host.command import Runner, module_runner
from ..module_utils._core.errors import InputError, KubegpuError, RolledBackError
from ..module_utils._host.files import FileState, read_file
from ..module_utils._repository.key_download import download_key
from ..module_utils._distro.os_release import read_os
from ..module_utils._host.reader import NodeReader
from ..module_utils._core.printable import printable
from ..module_utils._record.file_record import Undo
from ..module_utils._core.redact import changed_parts, redact, redact_lines, secrets
from ..module_utils._repository.plan import check, plan
from ..module_utils._repository.types import (
    CONFIGURATION,
    KEY,
    SOURCES,
    Format,
    Plan,
    Request,
    SeenFile,
    State,
)
from ..module_utils._repository.apt import AptFormat
from ..module_utils._repository.rpm import RPM_FORMATS, rpm_format
from ..module_utils._repository.rpm_keyring import RING, Ring, plan_ring, read_ring
from ..module_utils._record.store import StateStore

_DIRECTORIES = (
    *("sources_directory", "sources_list", "keyring_directory", "configuration_directory"),
)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
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
        },
        required_if=[
            ("state", "present", ("url",)),
            ("state", "present", ("key", "key_url", "keyring"), True),
        ],
        mutually_exclusive=[("key", "key_url", "keyring")],
        required_by={"key": "key_fingerprints", "key_url": "key_fingerprints"},
        supports_check_mode=True,
    )
    try:
        module.exit_json(**_run(module))
    except KubegpuError as error:
        module.fail_json(msg=redact(str(error)))


def _run(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    run = module_runner(module)
    format_, architecture = _format(params, run)
    request = _request(params, format_)
    # The invocation is returned and logged: the passwords in it have to be covered there too.
    module.no_log_values.update(
        secrets(
            *(request.url, request.http_proxy, request.https_proxy, params["key_url"] or ""),
            *request.replaces,
        )
    )
    if request.present and params["key_url"]:
        request = replace(request, key=_downloaded(request, params["key_url"]))
    # Before the node's lock is taken: others do not wait for what a server has sent.
    check(request)
    store = StateStore(params["state_path"])
    if module.check_mode:
        changes, plan_ = _plan(request, store, architecture)
        ring = _plan_ring(run, request, store, plan_)
    else:
        with store.transaction():
            changes, plan_ = _plan(request, store, architecture)
            ring = _plan_ring(run, request, store, plan_)
            complaints = _complaints(run, request) if params["validate"] and changes else ""
            with applied(store, changes):
                if request.present and params["validate"] and changes:
                    _validate(run, request, complaints)
                _change_ring(run, request, store, ring)
    if request.present and any(change.changed for change in changes):
        for text in request.format.warnings(request):
            module.warn(printable(text))
    files = {SOURCES: request.sources_file, KEY: request.signed_by}
    if request.configuration_file and (
        request.http_proxy or request.https_proxy or request.ca_file
    ):
        files[CONFIGURATION] = request.configuration_file
    result: dict[str, Any] = {
        "changed": ring.changed or any(change.changed for change in changes),
        "files": files if request.present else {},
        "disabled": [dict(entry) for entry in plan_.disabled],
        "key_fingerprints": list(plan_.key_fingerprints),
        "reasons": [*plan_.reasons, *ring.reasons],
    }
    if module._diff:
        result["diff"] = [
            *(_diff(change) for change in changes if change.changed),
            *([_diff_of_ring(ring)] if ring.changed else []),
        ]
    return result


def _request(params: dict[str, Any], format_: Format) -> Request:
    return Request(
        name=params["name"],
        format=format_,
        present=params["state"] == "present",
        url=params["url"] or "",
        suite=format_.suite if params["suite"] is None else params["suite"],
        components=tuple(params["components"]),
        key=params["key"] or "",
        key_fingerprints=tuple(params["key_fingerprints"] or ()),
        keyring=params["keyring"] or "",
        keyring_key=read_file(params["keyring"]).content if params["keyring"] else None,
        http_proxy=params["http_proxy"] or "",
        https_proxy=params["https_proxy"] or "",
        no_proxy=params["no_proxy"] or "",
        ca_file=params["ca_file"] or "",
        replaces=tuple(params["replaces"]),
        check_packages=params["check_packages"],
        check_metadata=params["check_metadata"],
    )


def _downloaded(request: Request, url: str) -> str:
    proxies = {
        "http_proxy": request.http_proxy,
        "https_proxy": request.https_proxy,
        "no_proxy": request.no_proxy,
    }
    return download_key(url, proxies, request.ca_file).decode("utf-8", "surrogateescape")


def _format(params: dict[str, Any], run: Runner) -> tuple[Format, str]:
    """Return whose files are written, and the node's architecture in its words."""
    name = params["format"]
    if name == "auto":
        name = read_os(NodeReader(run=run))["package_manager"] or ""
    directories = {
        option: params[option].rstrip("/") for option in _DIRECTORIES if params[option] is not None
    }
    if name == "apt":
        return AptFormat(**directories), _architecture(run, params["format"])
    if name in RPM_FORMATS:
        unknown = sorted({"configuration_directory", "sources_list"} & set(directories))
        if unknown:
            raise InputError(f"{', '.join(unknown)} is an option for apt alone.")
        return rpm_format(name, **directories), platform.machine()
    raise InputError(
        f"This node installs packages with {name or 'a tool that is not known'}, whose "
        "repositories this release does not set up.",
        next_step="Set up the repository with the module of its package manager "
        "(ansible.builtin.yum_repository, community.general.zypper_repository).",
    )


def _architecture(run: Runner, wanted: str) -> str:
    answer = run(["dpkg", "--print-architecture"])
    if answer.ok:
        return answer.stdout.strip()
    if wanted == "apt":
        return ""
    raise InputError(
        "This node does not use apt, and no other package manager is known to this release.",
        evidence=answer.words(),
        next_step="Set up the repository with the module of its package manager "
        "(ansible.builtin.yum_repository, community.general.zypper_repository).",
    )


def _plan(request: Request, store: StateStore, architecture: str) -> tuple[list[FileChange], Plan]:
    prefix = f"nvidia_repository:{request.name}:"
    paths = {request.sources_file, request.key_file, request.configuration_file} - {""}
    paths.update(_source_files(request.format))
    paths.update(key[len(prefix) :] for key in store.records(prefix))
    states = {path: read_file(path) for path in sorted(paths)}
    plan_ = plan(
        request,
        State(
            {path: _seen(path, state, store, prefix) for path, state in states.items()},
            architecture,
        ),
    )
    changes = []
    for change in plan_.changes:
        before = states[change.path]
        after = _after(store, prefix + change.path, before, change.text, change.mode, change.undo)
        changes.append(
            FileChange(prefix + change.path, before, after, change.undo, dict(change.details))
        )
    return changes, plan_


def _source_files(format_: Format) -> list[str]:
    folder = os.path.dirname(format_.sources_file("any"))
    try:
        names = os.listdir(folder)
    except OSError:
        names = []
    paths = [f"{folder}/{name}" for name in names if format_.source_file.match(name)]
    return [path for path in (*format_.more_sources, *paths) if os.path.isfile(path)]


def _plan_ring(run: Runner, request: Request, store: StateStore, plan_: Plan) -> Ring:
    """Return what has to be done to the keyring of the whole node, where there is one."""
    record = store.get(RING) or {}
    asked = request.present and request.format.imports(request)
    ours = any(request.name in value["for"] for value in record.values())
    if not request.format.keyring or not (asked or ours):
        return Ring(record=record)
    wanted = plan_.key_fingerprints if asked else ()
    return plan_ring(request.name, wanted, read_ring(run), record)


def _change_ring(run: Runner, request: Request, store: StateStore, ring: Ring) -> None:
    """Import and erase keys; what is imported is recorded before, what is erased after."""
    if ring.add:
        store.put(RING, dict(ring.record))
        _rpm(run, ["rpm", "--import", request.key_file])
    for package in ring.erase:
        _rpm(run, ["rpm", "--erase", package])
    if ring.record:
        store.put(RING, dict(ring.record))
    else:
        store.drop(RING)


def _rpm(run: Runner, argv: list[str]) -> None:
    answer = run(argv)
    if not answer.ok:
        raise RolledBackError(
            "rpm's keyring could not be changed; all files were put back.",
            evidence=answer.words(),
            next_step="Run it by hand to see why: " + " ".join(argv),
        )


def _diff_of_ring(ring: Ring) -> dict[str, str]:
    return {
        "before": "".join(f"{key}\n" for key in ring.before),
        "after": "".join(f"{key}\n" for key in ring.after),
        "before_header": "keys that rpm trusts",
        "after_header": "keys that rpm trusts",
    }


def _seen(path: str, state: FileState, store: StateStore, prefix: str) -> SeenFile:
    record = store.record(prefix + path)
    if record is None:
        return SeenFile(path, _text(state), state.mode)
    way, target = store.undo_target(prefix + path, state)
    restored = target if way is Undo.RESTORE else None
    return SeenFile(
        path,
        _text(state),
        state.mode,
        recorded=True,
        way=way,
        restored=None if restored is None else _text(restored),
        restored_mode=None if restored is None else restored.mode,
        details=record.details,
    )


def _after(
    store: StateStore, key: str, before: FileState, text: str | None, mode: int | None, undo: bool
) -> FileState:
    if undo:
        way, target = store.undo_target(key, before)
        if way is Undo.RESTORE:
            return target
    if text is None:
        return FileState(before.path)
    content = text.encode("utf-8", "surrogateescape")
    return replace(before, content=content, mode=mode)


def _complaints(run: Runner, request: Request) -> str:
    """Return what the package manager says against its sources, or an empty string."""
    answer = run(list(request.format.validation(request)))
    return "" if answer.ok else answer.words()


def _validate(run: Runner, request: Request, earlier: str) -> None:
    complaints = _complaints(run, request)
    # What it had against other entries before is not for us to judge.
    if complaints and complaints != earlier:
        raise RolledBackError(
            f"{request.format.name} refuses its source entries with the new one; all files were "
            "put back.",
            evidence=complaints,
            next_step=f"Correct the entry that {request.format.name} names, or name its URL in "
            "replaces.",
        )


def _text(state: FileState) -> str | None:
    return None if state.content is None else state.content.decode("utf-8", "surrogateescape")


def _diff(change: FileChange) -> dict[str, str]:
    before, after = changed_parts(_shown(change.before), _shown(change.after))
    return {
        "before": before,
        "after": after,
        "before_header": _header(change.before, change),
        "after_header": _header(change.after, change),
    }


def _shown(state: FileState) -> str:
    return redact_lines((_text(state) or "").encode("utf-8", "replace").decode())


def _header(state: FileState, change: FileChange) -> str:
    if change.before.content != change.after.content or state.mode is None:
        return state.path
    return f"{state.path} (mode {state.mode:04o})"


if __name__ == "__main__":
    main()
