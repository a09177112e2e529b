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
from dataclasses import dataclass, replace
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._cuda import record as flow
from ..module_utils._record.transaction import FileChange, applied
from ..module_utils._host.command import module_runner
from ..module_utils._cuda.config_files import LINK, LOADER, PATHS, PROFILE
from ..module_utils._cuda.host import CudaNode
from ..module_utils._cuda.options import read_options
from ..module_utils._cuda.plan import plan_cuda
from ..module_utils._cuda.types import PACKAGE, RUNFILE, CudaPlan, CudaWish
from ..module_utils._core.errors import InputError, KubegpuError
from ..module_utils._host.files import FileState, read_file
from ..module_utils._facts.gather import gather
from ..module_utils._host.reader import NodeReader
from ..module_utils._core.printable import printable
from ..module_utils._core.proxy_options import PROXY_ARGUMENTS, use_proxies
from ..module_utils._record.file_record import Undo
from ..module_utils._core.redact import redact
from ..module_utils._facts.runtimes import RuntimePaths
from ..module_utils._record.store import StateStore

# Below this everything is; tests have a folder of their own.
_ROOT = "/"
_MODE = 0o644


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
            "_phase": {"type": "str", "choices": list(_PHASES), "default": "plan"},
            "_runfile": {"type": "str", "default": ""},
            "_version": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    use_proxies(module.params, os.environ)
    try:
        phase = "plan" if module.check_mode else module.params["_phase"]
        store = StateStore(module.params["state_path"])
        if phase == "plan":
            result = _plan(_look(module, store))
        else:
            with store.transaction():
                result = _PHASES[phase](_look(module, store))
        module.exit_json(**result)
    except KubegpuError as error:
        module.fail_json(msg=redact(str(error)))


@dataclass(frozen=True)
class Work:
    """The node as it stands, what is wished, and what follows from both."""

    module: AnsibleModule
    node: CudaNode
    store: StateStore
    wish: CudaWish
    plan: CudaPlan
    memory: flow.Memory | None

    @property
    def present(self) -> bool:
        return bool(self.module.params["state"] == "present")

    @property
    def known(self) -> flow.Memory:
        return self.memory or flow.Memory()

    def keep(self, memory: flow.Memory) -> None:
        self.store.put(flow.RECORD, memory.to_json())


def _look(module: AnsibleModule, store: StateStore) -> Work:
    params = module.params
    run = module_runner(module)
    reader = NodeReader(_ROOT, run)
    memory = flow.Memory.from_json(store.get(flow.RECORD))
    wish, tables = read_options({**params, "controller": module.ansible_version})
    plan = CudaPlan()
    if params["state"] == "present":
        facts = gather(reader, RuntimePaths(), params["state_path"], fresh=True)
        # What an installer left that was killed is no toolkit.
        pending = memory.pending if memory else ()
        toolkits = [kit for kit in facts["cuda"]["toolkits"] if kit["path"] not in pending]
        facts = {**facts, "cuda": {**facts["cuda"], "toolkits": toolkits}}
        plan = plan_cuda(facts, wish, tables)
    return Work(module, CudaNode(run, reader), store, wish, plan, memory)


# What each call of the action does.


def _plan(work: Work) -> dict[str, Any]:
    """Return what differs, and what is to be done; nothing is changed."""
    return _plan_present(work) if work.present else _plan_absent(work)


def _plan_present(work: Work) -> dict[str, Any]:
    plan, module = work.plan, work.module
    if plan.action == "refuse":
        raise InputError(
            "The CUDA toolkits cannot be set up as asked for; nothing was changed.\n"
            + "\n".join(f"- {reason}" for reason in plan.reasons)
        )
    for text in plan.warnings:
        module.warn(printable(text))
    _see_compiler(work)
    link = work.node.read_link()
    diff = [
        _entry(f"CUDA {entry['version']} by runfile", "absent\n", f"{entry['path']}\n")
        for entry in plan.runfiles
    ]
    change = flow.LinkChange(link, link)
    if plan.link is not None:
        change = flow.set_link(LINK, link, plan.link["target"])
    if change.changed:
        diff.append(_entry(LINK, change.before.shown(), change.after.shown()))
    diff.extend(
        _entry(path, _text(file.before), _text(file.after))
        for path, file in _file_changes(work).items()
        if file.changed
    )
    sets = []
    if plan.change_packages:
        sets.append(
            {
                "name": flow.SET,
                "packages": dict(plan.packages),
                "hold": plan.hold,
                **({"lock": dict(plan.lock)} if plan.lock["patterns"] else {}),
                "obsolete": list(plan.obsolete),
                "background": True,
            }
        )
    result = _answer(work, change.after, diff)
    result["_tasks"] = {
        # The repository is the role's work.
        "needed": plan.change_packages or bool(diff),
        "sets": sets,
        "runfiles": [dict(entry) for entry in plan.runfiles],
    }
    return result


def _plan_absent(work: Work) -> dict[str, Any]:
    memory = work.known
    link = work.node.read_link()
    mine = (*memory.runfiles, *memory.pending)
    diff = [_entry(f"{path} by runfile", f"{path}\n", "absent\n") for path in mine]
    after = link
    if memory.link is not None and memory.target in ("", link.target):
        after = memory.link if memory.target else link
    if link.shown() != after.shown():
        diff.append(_entry(LINK, link.shown(), after.shown()))
    diff.extend(
        _entry(path, _text(file.before), _text(file.after))
        for path, file in _file_changes(work).items()
        if file.changed
    )
    result = _answer(work, after, diff)
    needed = bool(diff) or work.memory is not None
    result["_tasks"] = {
        "needed": needed,
        "sets": [{"name": flow.SET, "state": "absent", "background": True}] if needed else [],
        "runfiles": [],
    }
    return result


def _begin(work: Work) -> dict[str, Any]:
    """Record what stands there, before anything is changed."""
    memory = work.known
    if memory.link is None:
        memory = replace(memory, link=work.node.read_link())
    work.keep(memory)
    return {"changed": True}


def _run_runfile(work: Work) -> dict[str, Any]:
    """Install by the runfile that lies on the node."""
    params = work.module.params
    entry = next((one for one in work.plan.runfiles if one["version"] == params["_version"]), None)
    if entry is None:
        return {"changed": False}
    path = str(entry["path"])
    if path in work.known.pending:
        work.node.remove(path)
    memory = work.known.begun(path)
    work.keep(memory)
    try:
        work.node.install(
            entry["version"],
            params["_runfile"],
            path,
            entry["arguments"],
            params["install_timeout"],
        )
    except KubegpuError:
        work.keep(memory.ended(path, installed=False))
        raise
    work.keep(memory.ended(path, installed=True))
    return {"changed": True}


def _uninstall(work: Work) -> dict[str, Any]:
    """Remove the toolkits that we installed by runfile, by their own uninstallers."""
    memory = work.known
    left = []
    for path in memory.pending:
        work.node.remove(path)
        memory = memory.ended(path, installed=False)
        work.keep(memory)
    for path in memory.runfiles:
        rest = work.node.uninstall(path)
        if rest:
            left.append(rest)
            work.module.warn(
                f"{rest} is not empty after its uninstaller; what is left there was not "
                "installed by it."
            )
        memory = replace(memory, runfiles=tuple(one for one in memory.runfiles if one != path))
        work.keep(memory)
    return {"changed": True, "left": left}


def _finish(work: Work) -> dict[str, Any]:
    """Do what follows packages and runfiles: link, proof, files; then finish the record."""
    return _finish_present(work) if work.present else _finish_absent(work)


def _finish_present(work: Work) -> dict[str, Any]:
    plan, node, memory = work.plan, work.node, work.known
    if plan.action not in ("none", "refuse") or plan.change_packages:
        raise KubegpuError(
            "The CUDA toolkits are not as they should be after the change.",
            evidence="; ".join(plan.reasons),
            next_step="Run again: it goes on where this run stopped.",
        )
    link = node.read_link()
    if plan.link is not None:
        change = flow.set_link(LINK, link, plan.link["target"])
        added = tuple(choice for choice in change.after.choices if choice not in link.choices)
        if any("--install" in command for command in change.commands):
            added = (plan.link["target"],)
        memory = replace(
            memory,
            link=memory.link or link,
            target=plan.link["target"],
            choices=tuple(dict.fromkeys((*memory.choices, *added))),
        )
        work.keep(memory)
        node.change_link(change)
        link = change.after
    compilers = _prove(work)
    files = _file_changes(work)
    # The profile is written last. Until it is there a run is not through, and the next one goes
    # on, with the proof.
    for path in (LOADER, PROFILE):
        if path not in files:
            continue
        with applied(work.store, [files[path]] if files[path].changed else []):
            pass
        if path == LOADER:
            _refresh(work)
    return {**_answer(work, link, []), "changed": True, "compilers": compilers}


def _finish_absent(work: Work) -> dict[str, Any]:
    node, memory = work.node, work.known
    link = node.read_link()
    change = flow.give_link_back(LINK, link, memory)
    node.change_link(change)
    if change.warning:
        work.module.warn(printable(change.warning))
    for file in _file_changes(work).values():
        work.store.write_undone(file.key, file.after)
    _refresh(work)
    work.store.drop(flow.RECORD)
    return {**_answer(work, change.after, []), "changed": True}


_PHASES = {
    "plan": _plan,
    "begin": _begin,
    "runfile": _run_runfile,
    "uninstall": _uninstall,
    "finish": _finish,
}


# Helpers.


def _see_compiler(work: Work) -> None:
    """Refuse a runfile whose toolkit could not compile: only packages bring a host compiler."""
    sources = {one["source"] for one in work.plan.versions if one["action"] != "none"}
    if not work.wish.verify or RUNFILE not in sources or PACKAGE in sources:
        return
    name = work.wish.host_compiler or "g++"
    if not work.node.has_compiler(name):
        raise InputError(
            f"There is no {name} on this node, which nvcc needs to compile; nothing was changed.",
            next_step="Install it (on Debian and Ubuntu: build-essential), name another one with "
            "host_compiler, or leave the proof out (verify: false).",
        )


def _prove(work: Work) -> dict[str, str]:
    found = {}
    for one in work.plan.versions:
        proof = flow.Proof(
            one["version"],
            work.node.place(one["path"]),
            one["architecture"],
            work.wish.host_compiler,
        )
        if not work.wish.verify:
            continue
        found[one["version"]], host = work.node.prove(proof, work.module.tmpdir)
        if host:
            work.module.warn(
                f"nvcc of CUDA {one['version']} does not take this node's default compiler; it "
                f"compiles with nvcc -ccbin {host}."
            )
    return found


def _refresh(work: Work) -> None:
    answer = work.node.refresh_loader()
    if not answer.ok:
        work.module.warn(printable(f"ldconfig failed: {answer.words()}"))


def _file_changes(work: Work) -> dict[str, FileChange]:
    """Return the change of each file that is to be there, or, for absent, of each that we wrote."""
    changes = {}
    for path in PATHS:
        key = f"{flow.FILES}{path}"
        before = read_file(work.node.place(path))
        if work.present:
            if path in work.plan.files:
                text = work.plan.files[path]
                after = replace(before, content=text.encode(), mode=before.mode or _MODE)
                changes[path] = FileChange(key, before, after, details={"text": text})
        elif work.store.record(key) is not None:
            changes[path] = FileChange(key, before, _undone(work, key, before), undo=True)
    return changes


def _undone(work: Work, key: str, before: FileState) -> FileState:
    way, target = work.store.undo_target(key, before)
    if way is not Undo.REMOVE_LINES or before.content is None:
        return target
    record = work.store.record(key)
    ours = set(str(record.details.get("text", "")).splitlines()) if record else set()
    lines = [line for line in _text(before).splitlines(keepends=True) if line.rstrip() not in ours]
    if not lines:
        return FileState(before.path)
    return replace(before, content="".join(lines).encode())


def _text(state: FileState) -> str:
    return "" if state.content is None else state.content.decode(errors="replace")


def _entry(title: str, before: str, after: str) -> dict[str, str]:
    return {"before_header": title, "after_header": title, "before": before, "after": after}


def _answer(work: Work, link: flow.Link, diff: list[dict[str, str]]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "changed": bool(diff),
        "plan": work.plan.to_json() if work.present else {},
        "default": link.target or None,
        "compilers": {},
        "left": [],
    }
    if work.module._diff:
        result["diff"] = diff
    return result


if __name__ == "__main__":
    main()
