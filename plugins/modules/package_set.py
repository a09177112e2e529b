# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: package_set
short_description: Install packages that belong together in exactly their versions, and hold them
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Brings a whole set of packages to exactly the versions asked for, up or down, in one
    transaction, and holds them, so that no upgrade replaces a part of the set.
  - Obsolete packages go first. They are removed and not purged, because purging
    C(nvidia-docker2) takes C(/etc/docker/daemon.json) away. Only one that this set brought, and
    that has a file in C(/etc/apt/preferences.d) which nobody edited, is purged, because that file
    would go on pinning.
  - No other package is ever removed. Where the set cannot be installed or given back without
    that, nothing is changed and the packages are named.
  - Packages that are half configured are mended first.
  - Versions, holds and marks that stood there before, and what the package manager is going to
    install, are recorded on the node before the first change. O(state=absent) puts them back, and
    removes what came along with the set where nothing else needs it. That holds for a run that
    died at any point, too.
  - The packages are installed by Ansible's own module for the node's package manager
    (M(ansible.builtin.apt), M(ansible.builtin.dnf), M(ansible.builtin.dnf5),
    M(community.general.zypper)). Where nothing differs, it is not called.
options:
  name:
    description:
      - Name under which the set is recorded on the node.
    type: str
    required: true
  state:
    description:
      - Whether the set is there. V(absent) gives back what stood there before; without a record
        under this name it does nothing.
    type: str
    choices: [present, absent]
    default: present
  packages:
    description:
      - Names of the packages, with the exact version of each as the package manager writes it,
        packaging revision included, such as V(1.20.0-1). V(null) is any version.
      - A version with a C(*), such as V(595.58.03*) or V(2.28.3*+cuda12.9), is met by every version
        that begins and ends so; the newest one is installed where none is there.
      - Required with O(state=present).
    type: dict
  hold:
    description:
      - Whether the packages are held; with O(lock), only those that it covers.
    type: bool
    default: true
  optional:
    description:
      - More packages, named like O(packages), that are installed where a package list of the node
        has them.
    type: dict
    default: {}
  lock:
    description:
      - The packages that make up one locked set with O(packages), whether they are named there
        or come along with them.
      - On a change, those that would come in another version are named to the package manager
        with the version of the lock, where a package list has it. All that are installed are held.
      - Those that nobody asks for by name, and that the package manager would remove for
        O(packages), are removed, such as what a failed change has left. It removes none that is
        held; that one has to be named in O(obsolete).
    type: dict
    suboptions:
      patterns:
        description:
          - Patterns for names, such as V(libnvidia-*). One that begins with C(!) takes names out
            again.
        type: list
        elements: str
        required: true
      version:
        description:
          - Beginning of the version, such as V(595.58.03) or V(595.).
        type: str
  obsolete:
    description:
      - Packages that have to go before the set is installed.
    type: list
    elements: str
    default: []
  module_streams:
    description:
      - Streams of dnf's modules by name of the module, such as C(nvidia-driver) with V(580-open).
        A module has one stream at most, and only the packages of that stream are offered.
      - They are switched, by reset and enable, before the packages are changed. What the node had
        before is recorded, and O(state=absent) puts it back, unless somebody has switched since. A
        change that fails puts back what this run found.
      - For dnf 4 alone (RHEL 8 and 9 and those that build on them, Amazon Linux 2023). Elsewhere
        there are no modules, and the option is refused.
    type: dict
    default: {}
    version_added: 0.1.0
  update_cache:
    description:
      - Whether the package lists may be refreshed. This is done only where they do not have a
        version that is asked for.
    type: bool
    default: true
  repository_expected:
    description:
      - Whether a repository may be missing that the same play adds before this module is run for
        real. Check mode then takes it that packages which no list has will be there.
      - With V(false), check mode fails where the run would. It reads the repositories into a folder
        of its own for that, where the node's lists lack something and O(update_cache=true).
    type: bool
    default: true
  package_manager:
    description:
      - Which package manager is used. V(auto) takes that of the node's distribution.
    type: str
    choices: [auto, apt, dnf, dnf5, zypper]
    default: auto
  background:
    description:
      - Whether the package manager runs detached from the connection and is waited for, so that a
        connection that is lost does not kill it amid its work. For what takes minutes, such as
        packages that build kernel modules.
      - Without it there is no limit to its time but the task's own (C(timeout)).
    type: bool
    default: false
  timeout:
    description:
      - Seconds after which the package manager is stopped, with O(background).
    type: int
    default: 3600
  _phase:
    description:
      - Internal. What the module's action plugin asks for.
    type: str
    choices: [plan, record]
    default: plan
  _failure:
    description:
      - Internal. What the package manager said where it failed.
    type: str
    default: ""
  _named:
    description:
      - Internal. What was named to the package manager only for its version.
    type: list
    elements: str
    default: []
  _streams:
    description:
      - Internal. The streams of modules that this run found before its change.
    type: dict
    default: {}
  _run:
    description:
      - Internal. The run that works on the set. One that another run has gone on from stops.
    type: str
    default: ""
notes:
  - In check mode the answer comes from the versions that are installed and those that are asked
    for, so that it is right even where the repository is not there yet (O(repository_expected)).
  - dnf holds with its plugin C(versionlock), which is installed where it is missing, and zypper
    with its locks. A hold is released for a change and set again after it.
  - Modules are switched with C(dnf module). M(ansible.builtin.dnf) knows a stream only together
    with the packages of one of its profiles. Which profiles of a module were installed is not given
    back.
  - What an earlier removal has left of configuration files is known for apt alone. rpm keeps an
    edited file as C(.rpmsave) when its package goes.
  - M(ansible.builtin.apt) needs python3-apt on the node and installs it where it is missing. It
    then belongs to what came along with the set.
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
    platforms: debian, rhel, suse
seealso:
  - module: kubegpu.nodes.nvidia_repository
  - module: ansible.builtin.apt
  - module: ansible.builtin.dnf
  - module: community.general.zypper
"""

EXAMPLES = r"""
- name: Install the container toolkit as one set
  kubegpu.nodes.package_set:
    name: nvidia-container-toolkit
    packages:
      nvidia-container-toolkit: 1.20.0-1
      nvidia-container-toolkit-base: 1.20.0-1
      libnvidia-container-tools: 1.20.0-1
      libnvidia-container1: 1.20.0-1
    obsolete:
      - nvidia-docker2

- name: Install a driver and all that comes along with it, in one version
  kubegpu.nodes.package_set:
    name: nvidia-driver
    packages:
      nvidia-open: 595.58.03*
      linux-headers-amd64: null
    optional:
      linux-headers-6.1.0-40-amd64: null
    lock:
      patterns: [nvidia-*, libnvidia-*, "!nvidia-container-*", "!libnvidia-container*"]
      version: 595.58.03
    background: true

- name: Install a driver of one stream of NVIDIA's module, on Rocky Linux 9
  kubegpu.nodes.package_set:
    name: nvidia-driver
    module_streams:
      nvidia-driver: 580-open
    packages:
      nvidia-open: 580.178.04*
    background: true

- name: Give back what stood there before
  kubegpu.nodes.package_set:
    name: nvidia-container-toolkit
    state: absent
"""

RETURN = r"""
packages:
  description: The packages of the set, as they are, or would be, afterwards. The version V(any)
    is that of a package which check mode cannot know.
  returned: success
  type: dict
  sample:
    nvidia-container-toolkit:
      version: 1.20.0-1
      held: true
previous:
  description: The same packages as they were before this run. Those that were not there are left
    out.
  returned: success
  type: dict
  sample:
    nvidia-container-toolkit:
      version: 1.19.0-1
      held: true
module_streams:
  description: The streams of the modules of O(module_streams), or of those that are given back, as
    they are, or would be, afterwards. An empty string is none, V(!disabled) that none may be
    enabled.
  returned: success
  type: dict
  sample:
    nvidia-driver: 580-open
not_available:
  description: Packages that were there before and that no repository of the node has now. The
    record keeps them, so that O(state=absent) can put them back once one has.
  returned: success
  type: list
  elements: str
  sample: [nvidia-docker2]
broken:
  description: Packages of the node that are half installed or half configured, with the package
    manager's word for it. Looked for where something differs, and mended before a change.
  returned: success
  type: dict
  sample:
    nvidia-kernel-dkms: half-configured
reasons:
  description: Why something was, or would be, changed.
  returned: success
  type: list
  elements: str
  sample:
    - nvidia-container-toolkit is 1.19.0-1, asked for is 1.20.0-1.
diff:
  description: The packages before and after, one a line.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: "nvidia-container-toolkit 1.19.0-1 held\n"
      after: "nvidia-container-toolkit 1.20.0-1 held\n"
      before_header: packages nvidia-container-toolkit
      after_header: packages nvidia-container-toolkit
"""

import contextlib
import functools
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._packages import streams as modules
from ..module_utils._host.command import Result, module_runner
from ..module_utils._core.errors import InputError, KubegpuError
from ..module_utils._packages.types import Streams
from ..module_utils._distro.os_release import read_os
from ..module_utils._host.reader import NodeReader
from ..module_utils._packages.manager import Database, PackageManager, Simulation, Work
from ..module_utils._packages.registry import MANAGERS, choose
from ..module_utils._packages.types import fits
from ..module_utils._packages.plan import (
    best,
    check,
    exact,
    in_the_way,
    members,
    missing,
    not_available,
    plan_absent,
    plan_present,
    shown,
    uncovered,
    verify,
    with_streams,
    without,
)
from ..module_utils._packages.record import (
    begun,
    finished,
    left,
    ours,
    removable,
    resumed,
    to_hold_again,
)
from ..module_utils._packages.types import (
    BROKEN,
    CONFIGURATION,
    INSTALLED,
    Lock,
    Package,
    Plan,
    Record,
    Request,
)
from ..module_utils._packages.failures import explain
from ..module_utils._core.redact import redact
from ..module_utils._core.printable import printable
from ..module_utils._core.proxy_options import PROXY_ARGUMENTS, use_proxies
from ..module_utils._record.store import StateStore

# Packages in these states have configuration files.
_LEAVES = (INSTALLED, CONFIGURATION)


class Node:
    """The node's packages, as far as they have been asked for."""

    def __init__(
        self,
        find: Callable[[], PackageManager],
        lock_timeout: int,
        streams: Streams | None = None,
    ) -> None:
        self._find = find
        self._lock_timeout = lock_timeout
        # Of modules: what there is, and what packages are planned for.
        self.streams = streams or Streams()

    @functools.cached_property
    def manager(self) -> PackageManager:
        # Where nothing is to be done, it does not matter which one it is.
        return self._find()

    def patiently(self, argv: Sequence[str], timeout: int = 60) -> Result:
        """Run a command of the package manager, waiting while another run holds its lock."""
        deadline = time.monotonic() + self._lock_timeout
        while True:
            answer = self.manager.run(argv, timeout=timeout)
            if not self.manager.locked(answer) or time.monotonic() >= deadline:
                return answer
            time.sleep(1)

    @contextlib.contextmanager
    def apart(self) -> Iterator[Node]:
        """Give a node whose package lists are read again, into a folder that goes afterwards."""
        with tempfile.TemporaryDirectory(prefix="kubegpu-lists-") as folder:
            # apt reads what it is sent as a user of its own.
            os.chmod(folder, 0o755)
            apart = self.manager.apart(folder)
            for directory in apart.directories:
                os.makedirs(directory)
            for path, text in apart.files.items():
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            yield Node(lambda: apart.manager, self._lock_timeout, self.streams)

    def assuming(self, streams: Streams) -> Node:
        """Give the node as packages are to be planned for it: with these streams of modules."""
        if not streams.after:
            return self
        changes = streams.changes
        manager = self.manager.assuming(changes) if changes else self.manager
        return Node(lambda: manager, self._lock_timeout, streams)

    def lacking(self) -> tuple[str, ...]:
        """Return the streams to be enabled that no repository has."""
        return modules.unknown(self.streams, self.streams_offered(self.streams))

    def streams_offered(self, streams: Streams) -> dict[str, tuple[str, ...]]:
        names = sorted(streams.changes)
        return self.manager.streams_offered(names) if names else {}

    def interrupted(self) -> bool:
        if not self.manager.journal:
            return False
        try:
            return bool(os.listdir(self.manager.journal))
        except OSError:
            return False


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "packages": {"type": "dict"},
            "hold": {"type": "bool", "default": True},
            "obsolete": {"type": "list", "elements": "str", "default": []},
            "update_cache": {"type": "bool", "default": True},
            "optional": {"type": "dict", "default": {}},
            "module_streams": {"type": "dict", "default": {}},
            "lock": {
                "type": "dict",
                "options": {
                    "patterns": {"type": "list", "elements": "str", "required": True},
                    "version": {"type": "str"},
                },
            },
            "repository_expected": {"type": "bool", "default": True},
            # How the action plugin has the packages installed.
            "background": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 3600},
            "package_manager": {
                "type": "str",
                "choices": ["auto", *MANAGERS],
                "default": "auto",
            },
            "lock_timeout": {"type": "int", "default": 120},
            **PROXY_ARGUMENTS,
            "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
            # For the action plugin alone: what to do in this call, and what the package manager
            # said where it failed.
            "_phase": {"type": "str", "choices": ["plan", "record"], "default": "plan"},
            "_failure": {"type": "str", "default": ""},
            "_named": {"type": "list", "elements": "str", "default": []},
            "_streams": {"type": "dict", "default": {}},
            "_run": {"type": "str", "default": ""},
        },
        required_if=[("state", "present", ("packages",))],
        supports_check_mode=True,
    )
    use_proxies(module.params, os.environ)
    store = StateStore(module.params["state_path"])
    try:
        node = Node(lambda: _manager(module), module.params["lock_timeout"])
        if module.check_mode:
            result = _plan(module, node, store)
        else:
            with store.transaction():
                phase = _plan if module.params["_phase"] == "plan" else _record
                result = phase(module, node, store)
        module.exit_json(**result)
    except KubegpuError as error:
        module.fail_json(msg=redact(str(error)))


def _manager(module: AnsibleModule) -> PackageManager:
    run = module_runner(module)
    name = module.params["package_manager"]
    if name == "auto":
        name = read_os(NodeReader(run=run))["package_manager"]
    return choose(name, run)


def _plan(module: AnsibleModule, node: Node, store: StateStore) -> dict[str, Any]:
    """Return what differs; where something does, record the intent and what has to be done."""
    request = _wish(module.params)
    present = module.params["state"] == "present"
    key = _key(module.params)
    record = Record.from_json(store.get(key))
    node = node.assuming(_streams(node, request, present, record))
    if present:
        plan = _plan_of_set(node, request, record)
        if not plan.changed and (record is None or record.pending is None):
            return _result(module, plan, {})
    elif record is None:
        return _result(module, plan_absent(None, {}, {}), {})
    if not module.check_mode:
        _wait(node, module.params["name"], record is not None and record.pending is not None)
    database = node.manager.everything()
    record = resumed(record, database.packages)
    if record is not None and not present and not module.check_mode:
        _refresh_for_earlier(module, node, record, database)
    plan = promised = _plan_now(node, request, present, record, database)
    broken = _broken(database.packages)
    said: str | None = ""
    if not module.check_mode:
        if (plan.install or plan.going) and (broken or node.interrupted()):
            _mend(node, plan, broken, (record.coming or ()) if record else ())
            database = node.manager.everything()
            # What was promised stays; what is left to do can have become less.
            plan = _plan_now(node, request, present, record, database)
        said = _refresh(module, node, plan, database)
        if said is not None and present:
            # More of what may be there can be known now.
            plan = _plan_now(node, request, present, record, database)
    change = Change()
    if not module.check_mode:
        change = _try(node, request, plan, module.params["name"], said or "", may_be_missing=False)
        plan = without(plan, change.removed, database.packages)
    elif not broken:
        change = _ahead(module, node, request, plan, record, database)
    result = _result(module, without(promised, change.removed, database.packages), broken)
    if not module.check_mode and not plan.changed:
        _settle(module, node, store, plan, record, database)
    elif not module.check_mode:
        named = [name for name in change.named if _is_automatic(database, name)]
        run = module.params["_run"]
        freed = _to_free(node, plan, change, database)
        if present:
            coming = (
                _coming(node, change, database, request.hold) if plan.install or plan.going else ()
            )
            begin = begun(record, plan, database.packages, request, coming, named, run, freed)
            store.put(key, begin.to_json())
        elif record is not None:
            released = tuple(dict.fromkeys((*record.released, *freed)))
            store.put(key, replace(record, run=run, released=released).to_json())
        result["_tasks"] = _tasks(module, node, request, plan, change, database, freed)
    return result


def _settle(
    module: AnsibleModule,
    node: Node,
    store: StateStore,
    plan: Plan,
    record: Record | None,
    database: Database,
) -> None:
    """Finish the record where nothing is left to do.

    Mending was all that there was, or the run that did it died before it could write that down.
    """
    key, name = _key(module.params), module.params["name"]
    earlier = record or Record()
    held = to_hold_again(earlier, plan, database.packages)
    if module.params["state"] == "absent":
        _mark(node, plan, name, (), held)
        _forget(store, key, earlier, database.packages)
    elif record is not None:
        _mark(node, plan, name, _there(record.named, database.packages), held)
        store.put(key, finished(record, node.manager.everything().packages).to_json())


def _tasks(
    module: AnsibleModule,
    node: Node,
    request: Request,
    plan: Plan,
    change: Change,
    database: Database,
    freed: Sequence[str],
) -> dict[str, Any]:
    """Do what has to come first, and return what the action plugin has to do.

    The record is written by now.
    """
    # What is half configured fails in every call of apt until it is gone, and Ansible's module
    # takes it away by purging alone.
    going = set(plan.going)
    # apt takes nothing away below a package that is held and not named.
    held = [name for name in plan.along if database.packages[name].held]
    purge = [name for name in (*plan.purge, *held) if name not in change.replaced]
    remove = [name for name in plan.remove if name not in change.replaced]
    hold = module.params["state"] == "present" and request.hold
    work = Work(
        broken=[name for name in _broken(database.packages) if name in going],
        # That is so too for what is below one of those that are removed alone.
        remove=[*remove, *(_there(purge, database.packages) if remove else ())],
        purge=purge,
        install=change.install,
        helpers=node.manager.helpers(database.packages, hold=hold),
        along=[name for name in plan.along if name not in {*held, *change.replaced}],
        replacing=bool(change.replaced),
    )
    # What can fail by itself comes before what is released.
    _switch(node)
    _free(node, freed)
    return {
        "calls": node.manager.tasks(work, module.params["lock_timeout"]),
        "named": [name for name in change.named if _is_automatic(database, name)],
        "streams": dict(node.streams.before),
    }


def _streams(node: Node, request: Request, present: bool, record: Record | None) -> Streams:
    """Return the streams of modules as they are and as they shall be."""
    modules.check(request.streams)
    kept = record.streams if record else modules.StreamRecord()
    names = list(request.streams if present else kept.before)
    if not names:
        return Streams()
    if not node.manager.has_streams:
        raise InputError(
            f"module_streams: {node.manager.module.rpartition('.')[2]}, the package manager of "
            "this node, has no streams of modules.",
            next_step="Leave module_streams out here; it is for dnf 4 on RHEL 8 and 9, those that "
            "build on them, and Amazon Linux 2023.",
        )
    found = node.manager.streams(names)
    if present:
        return Streams(found, request.streams)
    back = modules.given_back(kept, found)
    # One whose repository has gone cannot be enabled any more.
    return modules.without_unknown(back, node.streams_offered(back))


def _switch(node: Node) -> None:
    """Switch to the streams of modules that are planned for."""
    before, changes = node.streams.before, node.streams.changes
    for argv in node.manager.stream_commands(before, changes) if changes else ():
        answer = node.patiently(argv, timeout=300)
        if not answer.ok:
            _streams_back(node, before)
            raise explain(answer.words(), f"Switching to {modules.shown(changes).strip()}")


def _ahead(
    module: AnsibleModule,
    node: Node,
    request: Request,
    plan: Plan,
    record: Record | None,
    database: Database,
) -> Change:
    """Fail as the run would, as far as that can be known; return what it would do."""
    params = module.params
    said = ""
    with contextlib.ExitStack() as stack:
        unknown = missing(plan, node.manager.available([*plan.install])) if plan.install else ()
        unknown += node.lacking()
        if unknown and params["update_cache"] and not params["repository_expected"]:
            node = stack.enter_context(node.apart())
            said = _update(node)
            plan = _plan_now(node, request, params["state"] == "present", record, database)
        return _try(
            node, request, plan, params["name"], said, may_be_missing=params["repository_expected"]
        )


def _coming(node: Node, change: Change, database: Database, hold: bool) -> list[str]:
    """Return the packages that the package manager will install."""
    coming = list(change.incoming)
    for name in node.manager.helpers(database.packages, hold=hold):
        # Brought in a call of its own.
        helper = node.manager.simulate({name: None}, ())
        coming.extend(other for other in (name, *helper.incoming) if other not in coming)
    return coming


def _to_free(node: Node, plan: Plan, change: Change, database: Database) -> list[str]:
    """Return what is held and would not be touched by the package manager."""
    if not (node.manager.releases_first and plan.changed):
        return []
    return [
        name
        for name in dict.fromkeys((*plan.install, *plan.going, *change.install, *change.incoming))
        if database.packages.get(name, Package()).held
    ]


def _free(node: Node, names: Sequence[str]) -> None:
    """Release what has to be; the record names it by now, and what follows holds it again."""
    try:
        _release(node, names)
    except KubegpuError:
        # Nothing was changed, so that nothing may stay released.
        still = node.manager.read(names).packages
        loose = [name for name in names if not still.get(name, Package()).held]
        for argv in node.manager.mark_commands(loose, (), ()):
            node.patiently(argv)
        _streams_back(node, node.streams.before)
        raise


def _release(node: Node, names: Sequence[str]) -> None:
    for argv in node.manager.mark_commands((), names, ()):
        answer = node.patiently(argv)
        if not answer.ok:
            raise explain(answer.words(), f"Releasing {', '.join(names)}")
    still = node.manager.read(names).packages if names else {}
    held = [name for name in names if still.get(name, Package()).held]
    if held:
        raise KubegpuError(
            f"{', '.join(held)} cannot be changed: a lock that covers more than this one package "
            "holds it, and was not made by this module.",
            next_step="Take that lock out of the package manager's list (dnf versionlock list, "
            "zypper locks), then run again; the set is then held package by package.",
        )


def _streams_back(node: Node, earlier: Mapping[str, str]) -> None:
    """Put the streams back that a change which failed has found; what fails is seen next time."""
    if not earlier:
        return
    found = node.manager.streams([*earlier])
    changes = Streams(found, earlier).changes
    for argv in node.manager.stream_commands(found, changes):
        node.patiently(argv, timeout=300)


def _there(names: Sequence[str], packages: Mapping[str, Package]) -> list[str]:
    """Return the names whose packages dpkg has."""
    return [name for name in names if packages.get(name, Package()).status in (INSTALLED, BROKEN)]


def _wait(node: Node, name: str, begun_before: bool) -> None:
    """Wait for another run of the package manager where that has to be done before.

    What a run that died has left at work has to end, so that all that it installs is there. And
    what does not wait by itself must not meet another one's lock.
    """
    if node.manager.waits and not begun_before:
        return
    answer = node.patiently(node.manager.nothing)
    if node.manager.locked(answer):
        which = ", which an earlier run began" if begun_before else ""
        raise explain(answer.words(), f"The package set {name}{which}")


def _is_automatic(database: Database, name: str) -> bool:
    """Return whether a package is one that nobody asked for, or was not there."""
    package = database.packages.get(name, Package())
    return package.automatic or package.status not in (INSTALLED, BROKEN)


def _record(module: AnsibleModule, node: Node, store: StateStore) -> dict[str, Any]:
    """Hold what has to be held, see that all is as promised, and finish the record."""
    params = module.params
    request = _wish(params)
    present = params["state"] == "present"
    key = _key(params)
    record = Record.from_json(store.get(key)) or Record()
    if record.run != params["_run"]:
        raise KubegpuError(
            f"Another run has gone on with the package set {params['name']} since this one began; "
            "this one stops here.",
            evidence=params["_failure"],
            next_step="Wait for that run to end, and start no two runs for one node at a time.",
        )
    database = node.manager.everything()
    plan = _settled(request, present, record, database.packages)
    named = _there([*dict.fromkeys((*params["_named"], *record.named))], database.packages)
    if params["_failure"]:
        released = [
            name
            for name in _there(record.released, database.packages)
            if not database.packages[name].held
        ]
        for argv in node.manager.mark_commands(released, (), named):
            node.patiently(argv)
        error = explain(params["_failure"], f"The package set {params['name']}")
        names = sorted(request.packages)
        offered = node.manager.available(names)
        _streams_back(node, params["_streams"])
        if present and missing(plan, offered):
            raise not_available(missing(plan, offered), plan, offered, error.evidence or str(error))
        raise error
    others = to_hold_again(record, plan, database.packages)
    _mark(node, plan, params["name"], named, others)
    packages = node.manager.everything().packages
    wrong = (
        *verify(_settled(request, present, record, packages), packages),
        *_streams(node, request, present, record).reasons(present=present),
    )
    if wrong:
        raise KubegpuError(
            f"The package set {params['name']} is not as it should be after the change.",
            evidence="; ".join(wrong),
            next_step=f"Run again; if it stays so, look at {node.manager.log}.",
        )
    if present:
        # Somebody else can have installed something while this run waited for the lock.
        settled = resumed(record, packages) or record
        store.put(key, finished(settled, packages).to_json())
    else:
        _forget(store, key, record, packages)
    return {
        "changed": True,
        "packages": _public({name: packages.get(name, Package()) for name in plan.after}),
    }


def _forget(store: StateStore, key: str, record: Record, packages: Mapping[str, Package]) -> None:
    """Drop the record, but for what could not be put back yet."""
    rest = left(record, packages)
    if rest is None:
        store.drop(key)
    else:
        store.put(key, rest.to_json())


def _wish(params: Mapping[str, Any]) -> Request:
    return Request(
        {
            name: None if version is None else str(version)
            for name, version in (params["packages"] or {}).items()
        },
        params["hold"],
        tuple(params["obsolete"]),
        {
            name: None if version is None else str(version)
            for name, version in params["optional"].items()
        },
        Lock(tuple(params["lock"]["patterns"]), params["lock"]["version"])
        if params["lock"]
        else None,
        {name: str(stream) for name, stream in params["module_streams"].items()},
    )


def _key(params: Mapping[str, Any]) -> str:
    return f"package_set:{params['name']}"


def _plan_of_set(node: Node, request: Request, record: Record | None) -> Plan:
    """Return what differs, having looked at the packages of the set alone."""
    check(request)
    names = {*request.packages, *request.optional, *request.obsolete}
    if request.lock:
        # dpkg knows the same patterns.
        names.update(pattern for pattern in request.lock.patterns if pattern[0] != "!")
    packages = node.manager.read(sorted(names)).packages if names else {}
    purged = _purged(node, request, record, packages)
    plan = plan_present(request, packages, _offered(node, request, packages), purged)
    return with_streams(plan, node.streams, present=True)


def _purged(
    node: Node, request: Request, record: Record | None, packages: Mapping[str, Package]
) -> tuple[str, ...]:
    """Return the obsolete packages of ours whose configuration would go on pinning."""
    mine = _there(ours(record, request.obsolete), packages)
    pins = node.manager.pinning(mine)
    edited = node.manager.edited(pins)
    return tuple(name for name in pins if name not in edited)


def _offered(
    node: Node, request: Request, packages: Mapping[str, Package]
) -> dict[str, tuple[str, ...]]:
    """Return what package lists have of the members that are not as they shall be."""
    names = [
        name
        for name, wanted in sorted(members(request, packages).items())
        if not packages.get(name, Package()).installed or not fits(wanted, packages[name].version)
    ]
    return {**dict.fromkeys(names, ()), **node.manager.available(names)}


def _plan_now(
    node: Node, request: Request, present: bool, record: Record | None, database: Database
) -> Plan:
    if present:
        purged = _purged(node, request, record, database.packages)
        offered = _offered(node, request, database.packages)
        plan = plan_present(request, database.packages, offered, purged)
        return with_streams(plan, node.streams, present=True)
    assumed = finished(record, database.packages) if record else None
    along = removable(
        *(assumed, database.packages, database.needs), marks_of_held=node.manager.marks_of_held
    )
    before = record.before if record else {}
    brought = assumed.brought if assumed else {}
    going = [
        name
        for name in dict.fromkeys((*before, *along, *brought))
        if name in database.packages and not before.get(name, Package()).installed
    ]
    plan = plan_absent(
        assumed,
        database.packages,
        node.manager.available([name for name, old in before.items() if old.installed]),
        node.manager.edited([n for n in going if database.packages[n].status in _LEAVES]),
        along,
    )
    return with_streams(plan, node.streams, present=False)


def _settled(
    request: Request, present: bool, record: Record, packages: Mapping[str, Package]
) -> Plan:
    """Return what is still to be done when the packages have been installed: marks alone."""
    return plan_present(request, packages) if present else plan_absent(record, packages, {})


def _refresh_for_earlier(
    module: AnsibleModule, node: Node, record: Record, database: Database
) -> None:
    """Refresh the package lists where they lack a version that stood there before us."""
    wanted = {
        name: old.version
        for name, old in record.before.items()
        if old.installed and database.packages.get(name, Package()).version != old.version
    }
    if not wanted or not module.params["update_cache"]:
        return
    offered = node.manager.available(sorted(wanted))
    if any(version not in offered.get(name, ()) for name, version in wanted.items()):
        # What cannot be reached is said by the plan, which then does not find the version.
        node.patiently(node.manager.update(), timeout=900)


def _refresh(module: AnsibleModule, node: Node, plan: Plan, database: Database) -> str | None:
    """Refresh the package lists where they lack something; return what apt complained about.

    None where there was no need to.

    One repository among many that cannot be reached is no reason to stop, which is why this is not
    left to Ansible's module: what matters is whether the versions are known afterwards.
    """
    if not module.params["update_cache"]:
        return None
    if node.lacking():
        return _update(node)
    if not plan.install:
        return None
    needed = node.manager.helpers(database.packages, hold=module.params["hold"])
    offered = node.manager.available([*plan.install, *needed])
    if not missing(plan, offered) and all(offered.get(name) for name in needed):
        return None
    return _update(node)


def _update(node: Node) -> str:
    """Read the package lists again; return what apt complained about."""
    return node.manager.complaints(node.patiently(node.manager.update(), timeout=900))


@dataclass(frozen=True)
class Change:
    """What is told to the package manager: versions by name, and why some are named at all.

    ``named`` come along with the set and are named for their version alone; ``removed`` are
    members of the lock that stand in the way; ``incoming`` is all that will be installed,
    ``replaced`` what goes in the same call.
    """

    install: Mapping[str, str | None] = field(default_factory=dict)
    named: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    incoming: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


def _try(
    node: Node, request: Request, plan: Plan, name: str, said: str, *, may_be_missing: bool
) -> Change:
    """Refuse a change that cannot work, or that would take other packages away."""
    lacking = node.lacking()
    if lacking and not may_be_missing:
        raise modules.not_offered(lacking, node.streams_offered(node.streams), said)
    going = plan.going
    if lacking or (not plan.install and not going):
        return Change()
    offered = node.manager.available(list(plan.install))
    unknown = missing(plan, offered)
    if unknown:
        # The repository can be one that this very run would add.
        if may_be_missing:
            return Change()
        raise not_available(unknown, plan, offered, said)
    versions = exact(plan.install, offered)
    install = {other: version for other, version in versions.items() if other not in plan.soft}
    soft = {other: version for other, version in versions.items() if other in plan.soft}
    simulation, named = _simulate(node, request, install, soft, going)
    extra = sorted(set(simulation.removed) - set(going))
    removed = in_the_way(request, extra) if plan.install else ()
    extra = [other for other in extra if other not in removed]
    incoming = dict(simulation.incoming)
    replaced: tuple[str, ...] = ()
    if not extra and plan.install and (going or removed):
        # Removing comes first, in a call of its own. It can bring something in place of what goes.
        leaving = (*going, *removed)
        known = {*leaving, *install, *named}
        alone = node.manager.simulate({}, leaving)
        extra = sorted(set(alone.removed) - known)
        if extra and node.manager.replaces:
            # Others need the one or the other: what goes is taken away by what comes.
            replaced = tuple(other for other in leaving if other in simulation.removed)
            first = tuple(other for other in leaving if other not in replaced)
            alone = node.manager.simulate({}, first) if first else Simulation(alone.answer, (), {})
            extra = sorted(set(alone.removed) - known)
        incoming.update(alone.incoming)
    if extra:
        raise KubegpuError(
            f"The package set {name} cannot be changed without removing "
            f"{', '.join(extra)}; nothing was changed.",
            evidence=f"asked for: install {', '.join(plan.install) or 'nothing'}; "
            f"remove {', '.join((*going, *removed)) or 'nothing'}",
            next_step="Remove them by hand, or name them in obsolete.",
        )
    if not simulation.answer.ok:
        words = f"{simulation.answer.stdout}\n{simulation.answer.stderr}"
        # Sources that apt refuses can be what this very run would mend.
        if may_be_missing and node.manager.broken_sources in words:
            return Change()
        raise explain(words, f"The package set {name} (dry run)")
    along = tuple(other for other in named if other not in install)
    return Change({**install, **named}, along, removed, tuple(incoming), replaced)


def _simulate(
    node: Node,
    request: Request,
    install: Mapping[str, str | None],
    soft: Mapping[str, str | None],
    going: Sequence[str],
) -> tuple[Simulation, dict[str, str | None]]:
    """Ask apt, naming members of the lock until all that are there or come are of its version.

    :param soft: members that are there and are not as they shall be, unless they have to go.
    """
    named: dict[str, str | None] = {}
    # What is asked for without a version was tried with the newest one.
    steps = dict.fromkeys(install, 0)
    lock = request.lock
    while True:
        simulation = node.manager.simulate({**install, **named}, going)
        if simulation.answer.ok:
            touched = {*named, *simulation.removed, *simulation.incoming}
            more = {name: version for name, version in soft.items() if name not in touched}
            if more:
                named.update(more)
                continue
        if lock is None or lock.version is None:
            return simulation, named
        # Where apt refuses, it names what it does not get together.
        seen = (
            [name for name, new in simulation.incoming.items() if not fits(lock.wanted, new)]
            if simulation.answer.ok
            else node.manager.mentioned(simulation.answer)
        )
        names = [
            name
            for name in seen
            if lock.covers(name) and name not in {*install, *named, *going, *request.obsolete}
        ]
        offered = node.manager.available(names)
        found = {
            name: version
            for name in names
            for version in [best(lock.wanted, offered.get(name, ()))]
            if version is not None
        }
        if not found and not simulation.answer.ok:
            may_differ = {**dict.fromkeys([*names, *steps]), **install}
            found = _other(node, lock, may_differ, seen, steps)
        if not found:
            return simulation, named
        named.update(found)


def _other(
    node: Node,
    lock: Lock,
    names: Mapping[str, str | None],
    seen: Sequence[str],
    steps: dict[str, int],
) -> dict[str, str]:
    """Return other versions, from the newest on, of what apt does not get together with the lock.

    Modules that a distribution builds have the kernel's version, and fit one driver's: which one
    only apt can tell.

    :param names: what may be named, with the version that it has to have.
    :param steps: the version that was tried last, by name, the newest is 0; kept between calls.
    """
    free = [name for name in seen if names.get(name, "") is None]
    next_ones = {
        name: (steps.get(name, -1) + 1, versions)
        for name, versions in node.manager.available(free).items()
        if not any(fits(lock.wanted, one) for one in versions)
    }
    untried = {name: one for name, one in next_ones.items() if one[0] < len(one[1])}
    # Those of which least was tried: they depend on each other, and all at once go past the fit.
    least = min((step for step, _versions in untried.values()), default=0)
    found = {name: versions[step] for name, (step, versions) in untried.items() if step == least}
    steps.update(dict.fromkeys(found, least))
    return found


def _mend(node: Node, plan: Plan, broken: Mapping[str, str], coming: Sequence[str] = ()) -> None:
    """Let the package manager finish what is half done, but for what the plan does away with.

    :param coming: what a change that was begun would install.
    """
    ours = {*plan.before, *coming}
    others = node.manager.mends([name for name in broken if name in ours], uncovered(plan, broken))
    if not others:
        # It takes in what a killed dpkg has left in its journal, too.
        if node.interrupted():
            node.patiently(node.manager.nothing)
        if not node.interrupted():
            return
    answers = [node.patiently(argv, timeout=1800) for argv in node.manager.mend(others)]
    failed = [answer for answer in answers if not answer.ok]
    if not failed:
        return
    still = _broken(node.manager.everything().packages)
    left_over = node.manager.mends([name for name in still if name in ours], uncovered(plan, still))
    if node.interrupted() or left_over:
        raise explain(
            failed[0].words(),
            f"Mending half-configured packages ({', '.join(broken) or 'interrupted dpkg'})",
        )


def _mark(
    node: Node, plan: Plan, name: str, named: Sequence[str] = (), held: Sequence[str] = ()
) -> None:
    automatic = (*plan.automatic, *named)
    for argv in node.manager.mark_commands((*plan.to_hold(), *held), plan.to_release(), automatic):
        answer = node.patiently(argv)
        if not answer.ok:
            raise explain(answer.words(), f"Marking the packages of {name}")


def _broken(packages: Mapping[str, Package]) -> dict[str, str]:
    return {
        name: package.detail
        for name, package in sorted(packages.items())
        if package.status == BROKEN
    }


def _public(packages: Mapping[str, Package]) -> dict[str, dict[str, Any]]:
    return {
        name: {"version": package.version, "held": package.held}
        for name, package in sorted(packages.items())
        if package.installed
    }


def _result(module: AnsibleModule, plan: Plan, broken: Mapping[str, str]) -> dict[str, Any]:
    for text in plan.warnings:
        module.warn(printable(text))
    result: dict[str, Any] = {
        "changed": plan.changed,
        "packages": _public(plan.after),
        "previous": _public(plan.before),
        "module_streams": dict(plan.streams.after),
        "broken": dict(broken),
        "not_available": list(plan.lost),
        "reasons": [*plan.reasons, *plan.warnings],
    }
    if module._diff:
        title = f"packages {module.params['name']}"
        streams = plan.streams
        before = modules.shown(streams.before) + shown(plan.before)
        after = modules.shown(streams.after) + shown(plan.after)
        result["diff"] = (
            [{"before": before, "after": after, "before_header": title, "after_header": title}]
            if before != after
            else []
        )
    return result


if __name__ == "__main__":
    main()
