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
  - Decides by the GPUs that are really there which driver a node needs, as the filter
    P(kubegpu.nodes.nvidia_driver_plan#filter) does, and brings it there by the distribution's
    packages, NVIDIA's packages or a runfile.
  - Holds the whole set of packages in one version, turns nouveau and nova off, rebuilds the
    initial RAM disk, enables the services and loads the kernel module where that needs no reboot.
    Programs that use the module are named and never stopped.
  - A working driver that serves all GPUs is left alone with O(branch=auto). What cannot work is
    refused with the reasons before anything is changed.
  - Where the packages cannot be installed, what stood there before is put back. Where the module
    does not load, the cause is looked for and said.
  - Does not add the repository; the role P(kubegpu.nodes.nvidia_driver#role) does, by
    M(kubegpu.nodes.nvidia_repository).
options:
  state:
    description:
      - Whether the driver is there. V(absent) gives back what stood there before us, nouveau and
        the initial RAM disk included. It does nothing where nothing is recorded.
    type: str
    choices: [present, absent]
    default: present
  branch:
    description:
      - The driver's branch, such as V(580). Any version of the branch meets it.
      - V(auto) keeps a working driver, and takes the newest supported branch for these GPUs
        otherwise.
    type: str
    default: auto
  version:
    description:
      - The exact version, such as V(580.95.05), or V(previous) for the one that stood here before
        the last change. It goes up and down.
      - A second run with V(previous) changes nothing; to go forth again, name the version.
    type: str
    default: ""
  kernel_module:
    description:
      - Which kernel modules are used. V(auto) takes the open ones where all GPUs can.
    type: str
    choices: [auto, open, proprietary]
    default: auto
  source:
    description:
      - Where the driver comes from.
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
          - Where the node gets it from. This or O(runfile.path) is needed.
        type: str
      path:
        description:
          - Where it lies, on the controller, or on the node with O(runfile.remote).
        type: str
      checksum:
        description:
          - Its SHA-256, as C(sha256:...) or 64 digits, or the URL or path of a file that has it,
            such as C(NAME.run.sha256sum) or NVIDIA's C(redistrib_VERSION.json). A URL has to begin
            with C(https://) or C(file://), and the file may have 4 MiB.
        type: str
      version:
        description:
          - The driver's version, where the file's name does not tell.
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
      - Whether the kernel module is loaded where that needs no reboot.
    type: bool
    default: true
  replace_source:
    description:
      - Whether a driver from another source is removed by that source's own uninstaller. Otherwise
        it is kept where it meets the wish, and a reason to refuse where it does not.
    type: bool
    default: false
  dkms:
    description:
      - Whether the kernel modules are built on the node by DKMS. V(auto) takes prebuilt signed
        modules where there are some.
    type: str
    choices: ["auto", "true", "false"]
    default: auto
  compute_only:
    description:
      - Whether everything for displays is left out, where the source has such packages.
    type: bool
    default: false
  module_options:
    description:
      - Options of the kernel module C(nvidia), by name, such as
        C(NVreg_OpenRmEnableUnsupportedGpus).
    type: dict
    default: {}
  coherent_memory:
    description:
      - Who manages the GPUs' memory on boards with a Grace CPU (GH200, GB200, GB300), by the
        option C(NVreg_CoherentGPUMemoryMode) of the kernel module. It counts from the next load of
        the module on; until then the result asks for a reboot.
      - V(driver) is coherent driver-based memory management (CDMM), which Kubernetes needs. V(numa)
        gives the memory to the kernel, as a node of the system's own memory.
      - V(auto) writes nothing. The driver's default is V(numa) before 615 and V(driver) from then
        on. So it is on all other nodes, and with a driver before 580, which has no such option.
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
      - Whether the fabric manager is there, in the driver's exact version, enabled and running.
        V(auto) is where the node has NVSwitches, or GPUs of a board that has them.
      - V(false) leaves alone what is there.
    type: str
    choices: ["auto", "true", "false"]
    default: auto
  imex:
    description:
      - Whether the package of NVIDIA's IMEX service is there, in the driver's exact version.
        V(auto) is where the GPUs are those of a rack with NVLink between nodes (GB200, GB300).
    type: str
    choices: ["auto", "true", "false"]
    default: auto
  imex_nodes:
    description:
      - Addresses or names of all nodes of the IMEX domain, this one included, the same list on
        each. With it C(/etc/nvidia-imex/nodes_config.cfg) is written, and the service is enabled
        and started.
      - Empty leaves file and service alone. In Kubernetes NVIDIA's driver of dynamic resource
        allocation starts IMEX for each job by itself, and asks for the service to be off.
    type: list
    elements: str
    default: []
  licence:
    description:
      - Licence of a vGPU guest, for C(/etc/nvidia/gridd.conf), with the keys of the filter
        P(kubegpu.nodes.nvidia_driver_plan#filter). C(token_path) is the token's file on the
        controller.
    type: dict
    default: {}
  repository_name:
    description:
      - Name of the repository, for the plan alone.
    type: str
    default: kubegpu-nvidia-driver
  repository_url:
    description:
      - Address of the repository, for the plan alone.
    type: str
    default: ""
  repository_key_url:
    description:
      - Address of the repository's key, for the plan alone.
    type: str
    default: ""
  key_fingerprints:
    description:
      - Fingerprints that the repository's key may have, for the plan alone.
    type: list
    elements: str
    default: []
  manage_repository:
    description:
      - Whether the repository is added by the role, for the plan alone.
    type: bool
    default: true
  branches:
    description:
      - Rows that are merged over the built-in table of driver branches.
    type: dict
    default: {}
  gpus:
    description:
      - Rows that are merged over the built-in table of GPUs.
    type: dict
    default: {}
  repositories:
    description:
      - Rows that are merged over the built-in table of repositories.
    type: dict
    default: {}
  build_timeout:
    description:
      - Seconds that the packages, with the build of the kernel modules, or the runfile may take.
    type: int
    default: 3600
  _phase:
    description:
      - Internal. What the module's action plugin asks for.
    type: str
    choices: [plan, begin, runfile, finish, explain, rollback]
    default: plan
  _failure:
    description:
      - Internal. What was said where something failed.
    type: str
    default: ""
  _runfile:
    description:
      - Internal. Where the runfile is on the node, and whether we brought it there.
    type: dict
  _token:
    description:
      - Internal. The licence token, in base64.
    type: str
    default: ""
  _today:
    description:
      - Internal. The controller's date.
    type: str
    default: ""
  _run:
    description:
      - Internal. The run that works on the driver. One that another run has gone on from stops.
    type: str
    default: ""
notes:
  - Is not run with C(async). What takes long runs detached from the connection by itself, and the
    progress is told.
  - Needs root. Installs with apt, dnf (4 and 5) and zypper; where another tool is, the reason is
    said and nothing is changed.
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
  - module: kubegpu.nodes.nvidia_repository
  - module: kubegpu.nodes.package_set
"""

EXAMPLES = r"""
- name: Have a driver that serves all GPUs of the node
  kubegpu.nodes.nvidia_driver:

- name: Have an exact version of NVIDIA's packages
  kubegpu.nodes.nvidia_driver:
    version: 580.95.05
    source: nvidia

- name: Go back to the version before
  kubegpu.nodes.nvidia_driver:
    version: previous

- name: Install by NVIDIA's own file, in place of the packages
  kubegpu.nodes.nvidia_driver:
    source: runfile
    replace_source: true
    runfile:
      url: https://us.download.nvidia.com/tesla/580.95.05/NVIDIA-Linux-x86_64-580.95.05.run
      checksum: "{{ driver_sha256 }}"

- name: Give back what stood there before
  kubegpu.nodes.nvidia_driver:
    state: absent
"""

RETURN = r"""
plan:
  description: What was, or would be, done and why, as the filter
    P(kubegpu.nodes.nvidia_driver_plan#filter) returns it.
  returned: success
  type: dict
  sample:
    action: install
    branch: "580"
    version: 580.95.05
    kernel_module: open
    source: nvidia
    change: true
    reasons: [Tesla T4 (turing) is served by branch 580.]
loaded:
  description: Version of the kernel module that is loaded now; V(null) where none is.
  returned: success
  type: str
  sample: 580.95.05
reboot_required:
  description: Whether the driver, or nouveau's end, takes effect only with the next boot.
  returned: success
  type: bool
  sample: false
reboot_reason:
  description: Why.
  returned: success
  type: str
  sample: The loaded module 575.57.08 is in use by python3 (pid 4711).
previous:
  description: The driver before the last change to another one, which O(version=previous) brings
    back; V(null) where there is none. C(version), C(branch), C(source) and C(kernel_module).
  returned: success
  type: dict
  sample: {version: 575.57.08, branch: "575", source: nvidia, kernel_module: open}
code:
  description: A name for the cause, such as V(dkms_build_failed) or V(secure_boot).
  returned: failure of the packages or of the kernel module
  type: str
  sample: dkms_build_failed
rolled_back:
  description: Whether what stood there before was put back.
  returned: failure of a change that was begun
  type: bool
  sample: true
diff:
  description: Configuration files, packages and what else differs, before and after.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: ""
      after: "blacklist nouveau\n"
      before_header: /etc/modprobe.d/kubegpu-nouveau.conf
      after_header: /etc/modprobe.d/kubegpu-nouveau.conf
"""

import os
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._driver.apply import config_files as configuration
from ..module_utils._driver import record as flow
from ..module_utils._driver.apply import installer
from ..module_utils._driver.apply import host as machine
from ..module_utils._record.transaction import applied
from ..module_utils._host.command import module_runner
from ..module_utils._distro.data import without_dkms
from ..module_utils._driver.plan.plan import plan_driver, read_options
from ..module_utils._diagnosis.codes import UNKNOWN
from ..module_utils._diagnosis.evidence import uptime
from ..module_utils._driver.plan.config_files import GRIDD, PERSISTENCED, RECORD, TOKEN
from ..module_utils._driver.apply.units import start_services
from ..module_utils._driver.plan.packages import module_streams
from ..module_utils._driver.plan.sources import system_of
from ..module_utils._driver.types import INSTALLS
from ..module_utils._driver.apply.run import Diagnosed, Work, diagnosis
from ..module_utils._core.errors import InputError, KubegpuError
from ..module_utils._facts.gather import gather
from ..module_utils._host.reader import NodeReader
from ..module_utils._core.redact import redact
from ..module_utils._core.printable import printable
from ..module_utils._core.proxy_options import PROXY_ARGUMENTS, use_proxies
from ..module_utils._facts.runtimes import RuntimePaths
from ..module_utils._record.store import StateStore

# Below this everything is; tests have a folder of their own.
_ROOT = "/"
# Causes that a failure of packages can have; others of the node's troubles do not explain it.
_BY_PACKAGES = ("dkms_build_failed", "kernel_headers_missing")
# Causes that an installer names itself; others are found beside its words.
_IN_WORDS = (*_BY_PACKAGES, "disk_full", "nouveau_loaded")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "branch": {"type": "str", "default": "auto"},
            "version": {"type": "str", "default": ""},
            "kernel_module": {
                "type": "str",
                "choices": ["auto", "open", "proprietary"],
                "default": "auto",
            },
            "source": {
                "type": "str",
                "choices": ["auto", "distro", "nvidia", "runfile"],
                "default": "auto",
            },
            "runfile": {
                "type": "dict",
                "options": {
                    "url": {"type": "str"},
                    "path": {"type": "str"},
                    "checksum": {"type": "str"},
                    "version": {"type": "str"},
                    "remote": {"type": "bool", "default": False},
                },
            },
            "hold": {"type": "bool", "default": True},
            "load": {"type": "bool", "default": True},
            "replace_source": {"type": "bool", "default": False},
            "dkms": {"type": "str", "choices": ["auto", "true", "false"], "default": "auto"},
            "compute_only": {"type": "bool", "default": False},
            "module_options": {"type": "dict", "default": {}},
            "coherent_memory": {
                "type": "str",
                "choices": ["auto", "driver", "numa"],
                "default": "auto",
            },
            "persistence": {"type": "bool", "default": True},
            "fabric": {"type": "str", "choices": ["auto", "true", "false"], "default": "auto"},
            "imex": {"type": "str", "choices": ["auto", "true", "false"], "default": "auto"},
            "imex_nodes": {"type": "list", "elements": "str", "default": []},
            "licence": {"type": "dict", "default": {}},
            "repository_name": {"type": "str", "default": "kubegpu-nvidia-driver"},
            "repository_url": {"type": "str", "default": ""},
            "repository_key_url": {"type": "str", "default": "", "no_log": False},
            "key_fingerprints": {
                "type": "list",
                "elements": "str",
                "default": [],
                "no_log": False,
            },
            "manage_repository": {"type": "bool", "default": True},
            "branches": {"type": "dict", "default": {}},
            "gpus": {"type": "dict", "default": {}},
            "repositories": {"type": "dict", "default": {}},
            "lock_timeout": {"type": "int", "default": 120},
            **PROXY_ARGUMENTS,
            "build_timeout": {"type": "int", "default": 3600},
            "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
            # For the action plugin alone.
            "_phase": {"type": "str", "choices": list(_PHASES), "default": "plan"},
            "_failure": {"type": "str", "default": ""},
            "_runfile": {"type": "dict"},
            "_token": {"type": "str", "default": "", "no_log": True},
            "_today": {"type": "str", "default": ""},
            "_run": {"type": "str", "default": ""},
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
                work = _look(module, store)
                if phase != "begin":
                    _see_run(work, phase)
                result = _PHASES[phase](work)
        module.exit_json(**result)
    except KubegpuError as error:
        code = {"code": error.code} if isinstance(error, Diagnosed) else {}
        module.fail_json(msg=redact(str(error)), **code)


def _look(module: AnsibleModule, store: StateStore) -> Work:
    params = module.params
    run = module_runner(module)
    reader = NodeReader(_ROOT, run)
    options = {**params, "today": params["_today"], "controller": module.ansible_version}
    wish, data = read_options(options)
    facts = gather(reader, RuntimePaths(), _seen(params["state_path"]), fresh=True)
    return Work(
        module.params,
        module._diff,
        lambda text: module.warn(printable(text)),
        lambda: _look(module, store),
        _ROOT,
        run,
        reader,
        store,
        wish,
        facts,
        plan_driver(facts, wish, data),
        flow.Memory.from_json(store.get(RECORD)),
    )


def _see_run(work: Work, phase: str) -> None:
    """Stop a run whose change another one has gone on with: the node is that one's now."""
    # What failed before anything was recorded is explained, and nothing is to be put back.
    nothing = work.memory.pending is None and phase in ("explain", "rollback")
    if nothing or not flow.taken_over(work.memory, work.params["_run"]):
        return
    raise KubegpuError(
        "Another run has gone on with the driver of this node since this one began; this one "
        "stops here.",
        next_step="Wait for that run to end, and start no two runs for one node at a time.",
    )


# What each call of the action does.


def _plan(work: Work) -> dict[str, Any]:
    """Return what differs, and what is to be done; nothing is changed."""
    plan, memory = work.plan, work.memory
    if plan.action == "refuse" and (work.present or memory.installed or not memory.managed):
        raise InputError(
            "No driver can be set up as asked for; nothing was changed.\n"
            + "\n".join(f"- {reason}" for reason in plan.reasons)
        )
    look = work.look()
    loading = work.loading(look)
    for text in (*plan.warnings, loading.warning):
        if text:
            work.warn(text)
    changes = configuration.file_changes(work)
    before, after = _states(work, look, loading)
    diff = [
        {
            "before": flow.shown_text(path, change.before.content),
            "after": flow.shown_text(path, change.after.content),
            "before_header": path,
            "after_header": path,
        }
        for path, change in changes.items()
        if change.changed
    ]
    if before != after:
        title = "NVIDIA driver"
        diff.append(
            {"before": before, "after": after, "before_header": title, "after_header": title}
        )
    interrupted = memory.pending is not None
    changed = bool(diff) or interrupted
    result = _answer(work, memory, look.loaded, "" if loading.now else loading.reboot)
    result["changed"] = changed
    if work.diff:
        result["diff"] = diff
    if work.present:
        needed = changed or plan.change
        sets = flow.package_tasks(plan) if needed else []
        runfile = flow.runfile_to_do(plan, memory)
    else:
        # A change that was begun and not finished is undone by the sets' own records.
        foreign = plan.action == "remove" and not memory.managed and not interrupted
        needed = changed or memory.managed or foreign
        sets = flow.removal_tasks(plan) if foreign else flow.absent_tasks() if needed else []
        runfile = None
    result["_tasks"] = {
        "needed": needed,
        "sets": sets,
        "runfile": None if runfile is None else dict(runfile),
        "dkms": without_dkms(work.facts["os"]["id"] or ""),
    }
    return result


def _begin(work: Work) -> dict[str, Any]:
    """Record what is going to be done, remove another source's driver, write the files."""
    changes = configuration.file_changes(work)
    plan = work.plan
    files = {
        path: configuration.for_record(change.before)
        for path, change in changes.items()
        if change.changed
    }
    runfile = flow.runfile_to_do(plan, work.memory) if work.present else None
    if runfile is not None:
        runfile = {**runfile, **(work.params["_runfile"] or {})}
    memory = flow.begun(
        work.memory,
        plan,
        work.facts,
        files,
        machine.read_services(work.run, plan.services),
        plan.initramfs or flow.needs_initramfs(list(files)),
        runfile,
        work.params["_run"],
    )
    uninstall = plan.uninstall == "runfile"
    if work.present:
        if uninstall:
            installer.see_packages(work)
    else:
        uninstall = flow.uninstalls(plan, work.memory, work.facts)
    work.keep(memory)
    installer.drop_cached(work, memory)
    if uninstall:
        machine.uninstall_runfile(work.run, work.facts["driver"]["uninstaller"])
    if work.present:
        with applied(work.store, list(changes.values())):
            pass
        configuration.read_again(work, files)
    return {"changed": True}


def _finish(work: Work) -> dict[str, Any]:
    """Do what follows the packages, see that all is as planned, and finish the record."""
    return _finish_present(work) if work.present else _finish_absent(work)


def _explain(work: Work) -> dict[str, Any]:
    """Say why the packages or the runfile failed, and what has to be put back."""
    words = work.params["_failure"]
    if not work.pending:
        # It failed before anything was recorded, and nothing is changed before that.
        return {
            "changed": False,
            "message": words,
            "code": "",
            "keep": False,
            "unchanged": True,
            "before": "",
            "sets": [],
        }
    before = work.pending.get("before")
    # Its files can be there, of this run or of one that died.
    ran = bool(work.pending.get("runfile_begun"))
    by_installer = flow.from_installer(words)
    there, broken = installer.driver_packages(work)
    old = dict(before["packages"]) if before else {}
    unchanged = not broken and there == old
    finding = diagnosis(work, words=words)
    passing = flow.passing(words)
    telling = finding.code != UNKNOWN if by_installer else finding.code in _BY_PACKAGES
    told = telling and not passing and (broken or by_installer or flow.about_build(words))
    message = finding.message if told else words
    if told and by_installer and finding.code not in _IN_WORDS:
        message += f"\nWhat failed: {words}"
    keep = bool(work.pending.get("boot_first")) or (passing and not (unchanged and not ran))
    if ran and not keep:
        installer.clear_runfile(work, before)
    return {
        "changed": False,
        "message": message,
        "code": finding.code if told else "",
        "keep": keep,
        "unchanged": unchanged and not ran,
        "before": _named(before),
        "sets": []
        if passing and unchanged
        else flow.rollback_tasks(
            before,
            sorted({*there, *broken}),
            managed=bool(work.pending.get("managed")),
            streams=_streams(work, before),
        ),
    }


def _streams(work: Work, before: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the streams of dnf's modules that the packages of the driver before are in.

    Of a record that does not say which were enabled, by its version.
    """
    if before and "streams" in before:
        return dict(before["streams"])
    if not before or not before["branch"] or not before["kernel_module"]:
        return {}
    _wish, data = read_options(work.params)
    system = system_of(work.facts, data)
    return module_streams(system, before["source"], before["branch"], before["kernel_module"], data)


def _rollback(work: Work) -> dict[str, Any]:
    """Put files and initial RAM disk back to what they were before this change."""
    pending = work.pending
    if not pending:
        return {"changed": False, "files": []}
    done = []
    for path, kept in pending["files"].items():
        if configuration.put_back(work, path, kept):
            done.append(path)
    configuration.read_again(work, done)
    notes = [installer.runfile_again(work, pending.get("before"))]
    if flow.needs_initramfs(done):
        machine.rebuild_initramfs(work.run, work.reader, work.facts["os"]["family"])
    notes.append(machine.load_again(work.run, work.reader, pending.get("loaded")))
    memory = flow.given_back(work.memory)
    installer.drop_cached(work, memory)
    if memory is None:
        work.store.drop(RECORD)
    else:
        work.keep(memory)
    return {"changed": True, "files": done, "notes": [note for note in notes if note]}


def _finish_present(work: Work) -> dict[str, Any]:
    run, reader = work.run, work.reader
    if machine.build_missing(run, work.facts):
        work = work.again()
    wrong = _verify(work)
    if wrong:
        raise KubegpuError(
            "The driver is not as it should be after the change.",
            evidence="; ".join(wrong),
            next_step="Run again: it goes on where this run stopped.",
        )
    if work.pending.get("initramfs"):
        skipped = machine.rebuild_initramfs(run, reader, work.facts["os"]["family"])
        if skipped:
            work.warn(f"The initial RAM disk was not rebuilt: {skipped}.")
    for text in machine.enable_services(run, work.plan.services, start=False):
        work.warn(text)
    if {GRIDD, TOKEN} & set(work.pending.get("files", ())):
        # It reads them when it starts. Before the record: a run that dies here does it again.
        run(["systemctl", "try-restart", f"{flow.GRIDD_UNIT}.service"], timeout=120)
    memory = flow.finished(work.memory, work.facts, back=work.wish.version == "previous")
    installer.drop_cached(work, memory)
    work.keep(memory)
    # From here on nothing is half done: whatever the kernel says, the driver is installed.
    reboot = _load(work)
    loaded = machine.loaded_version(reader)
    if loaded:
        start_services(work, reboot)
    return {**_answer(work, memory, loaded, reboot), "changed": True}


def _load(work: Work) -> str:
    """Load the module where that is asked for; return why a reboot is needed, or nothing."""
    other_kernel = flow.kernel_without_module(work.facts)
    look = work.look()
    loading = work.loading(look)
    if loading.warning:
        work.warn(loading.warning)
    if other_kernel and not loading.warning:
        return other_kernel
    if not loading.now:
        return loading.reboot
    modules = machine.Modules(work.run, work.reader, work.daemons)
    stays = modules.unload() if look.loaded else modules.unload_nouveau()
    if stays is not None:
        # What was stopped for it is started again by the caller.
        return f"A module that is loaded cannot be unloaded: {stays.words()}"
    begin = uptime(work.reader)
    answer = modules.load()
    complaint = None if not answer.ok else machine.ask_driver(work.run)
    if not answer.ok or complaint is not None:
        raise Diagnosed(diagnosis(work.again(), answer.words(), since=begin))
    return ""


def _finish_absent(work: Work) -> dict[str, Any]:
    run, reader = work.run, work.reader
    changes = configuration.file_changes(work)
    look = work.look()
    loading = work.loading(look)
    # Before the files: a unit can be one of them.
    machine.give_back_services(run, work.memory.services)
    reboot = loading.reboot
    if loading.now:
        stays = machine.Modules(run, reader, work.daemons).unload()
        if stays is not None:
            reboot = f"The driver's module cannot be unloaded: {stays.words()}"
    with applied(work.store, list(changes.values())):
        pass
    configuration.read_again(work, changes)
    if work.pending.get("initramfs"):
        skipped = machine.rebuild_initramfs(run, reader, work.facts["os"]["family"])
        if skipped:
            work.warn(f"The initial RAM disk was not rebuilt: {skipped}.")
    installer.drop_cached(work, None)
    work.store.drop(RECORD)
    answer = _answer(work, flow.Memory(), machine.loaded_version(reader), reboot)
    return {**answer, "changed": True}


def _verify(work: Work) -> list[str]:
    """Return in what the node differs from the wish, after the change."""
    wrong = []
    if work.plan.action in INSTALLS or work.plan.action == "refuse":
        wrong.append(machine.differences(work.plan))
    driver = work.facts["driver"]
    if work.plan.hold and driver["packages"] and driver["held"] is False:
        wrong.append("not all of the driver's packages are held")
    wrong.extend(
        f"{path} differs"
        for path, change in configuration.file_changes(work).items()
        if change.changed
    )
    return wrong


def _answer(work: Work, memory: flow.Memory, loaded: str | None, reboot: str) -> dict[str, Any]:
    return {
        "plan": work.plan.to_json(),
        "loaded": loaded,
        "reboot_required": bool(reboot),
        "reboot_reason": reboot,
        "previous": _public(memory.previous),
    }


def _public(driver: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if driver is None:
        return None
    return {name: driver[name] for name in ("version", "branch", "source", "kernel_module")}


def _states(work: Work, look: flow.Look, loading: flow.Loading) -> tuple[str, str]:
    """Return what is no file and no package, before and after, as the lines of a diff."""
    plan, memory, facts = work.plan, work.memory, work.facts
    now = flow.standing(facts)
    before = {"driver": _named(now), "loaded module": look.loaded or ""}
    after = dict(before)
    if work.present:
        if plan.action in INSTALLS:
            after["driver"] = flow.named(
                plan.version, plan.branch, plan.kernel_module, plan.source or ""
            )
        if loading.now:
            after["loaded module"] = (
                plan.version or plan.branch or facts["driver"]["installed"] or ""
            )
        services = {unit: (state, "enabled") for unit, state in _units(work, plan.services).items()}
    else:
        if memory.installed:
            after["driver"] = _named(memory.original)
        elif plan.action == "remove" and not memory.managed:
            after["driver"] = ""
        if loading.now:
            after["loaded module"] = ""
        services = {
            unit: (state, memory.services[unit])
            for unit, state in _units(work, memory.services).items()
            if state == "enabled" and not memory.services[unit].startswith("enabled")
        }
    for unit, (state, wanted) in services.items():
        before[f"service {unit}"] = "" if state == machine.NO_UNIT else state
        after[f"service {unit}"] = "" if wanted == machine.NO_UNIT else wanted
    return flow.shown_driver(before), flow.shown_driver(after)


def _named(driver: Mapping[str, Any] | None) -> str:
    if driver is None:
        return ""
    return flow.named(
        driver["version"], driver["branch"], driver["kernel_module"], driver["source"] or ""
    )


def _units(work: Work, units: Mapping[str, str]) -> dict[str, str]:
    """Return the units whose state can be changed, with that state."""
    states = machine.read_services(work.run, units)
    comes = work.plan.action in INSTALLS or PERSISTENCED in work.plan.files
    return {
        unit: state
        for unit, state in states.items()
        if state in ("enabled", "disabled") or (state == machine.NO_UNIT and comes)
    }


def _seen(path: str) -> str:
    """Return a place as it is seen from the root."""
    return path[len(_ROOT.rstrip("/")) :] if path.startswith(_ROOT) else path


_PHASES = {
    "plan": _plan,
    "begin": _begin,
    "runfile": installer.run_runfile,
    "finish": _finish,
    "explain": _explain,
    "rollback": _rollback,
}


if __name__ == "__main__":
    main()
