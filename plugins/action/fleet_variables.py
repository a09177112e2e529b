# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the variables of all hosts of a play."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from typing import Any

from ansible.errors import AnsibleError

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._controller_action import (
    ControllerAction,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._command_line import inventories
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._connection import (
    FLEET,
    names_cluster,
    public,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._controller_paths import (
    HostValues,
    OUTPUTS,
    check_outputs,
    doubtful_inputs,
    find_outputs,
    wrong_hooks,
    wrong_inputs,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fact_names import refused_facts
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._host_variables import (
    HostVariables,
    play_names,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._preload import preload_options
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables import (
    Unknown,
    known_names,
    mistaken_for_no_cluster,
    prefixed,
    roles_of,
    unknown,
    without_cluster,
    wrong,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import (
    HOSTS,
    MAX_FAIL_PERCENTAGE,
    PLAYBOOK_VARIABLES,
    SERIAL,
    UNKNOWN,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._specifications import (
    fits,
    role_options,
)

_NEXT_STEP = f"Next step: correct the name; set {UNKNOWN} to fail or ignore to change this."
_NO_CLUSTER = (
    "Without it, hosts of a cluster would get what hosts without Kubernetes get. Next step: "
    f"correct the name; set {UNKNOWN} to ignore if it is for something else."
)
_OPTIONS = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "reads": {"type": "bool", "default": False},
    "plans_cluster": {"type": "bool", "default": False},
    "writes": {
        "type": "dict",
        "default": {},
        "options": {name: {"type": "str"} for name in OUTPUTS},
    },
}
# Of the playbook that runs hooks.
_HOOKS = "gpu_upgrade_file"
_STRICTNESS = "ignore warn fail"

preload_options()


class ActionModule(ControllerAction):
    """Runs on the controller only."""

    spec = _OPTIONS

    def work(self, options: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        # The validator adds the others, as None.
        writes = {name: path for name, path in options["writes"].items() if path is not None}
        _check_inventory(options["hosts"], variables)
        hosts = _Hosts(self, variables)
        names: dict[str, list[str]] = {"": prefixed(hosts.play)}
        by_host: dict[str, list[dict[str, Any]]] = {}
        serials: dict[str, Any] = {}
        connections: dict[str, dict[str, Any]] = {}
        read: list[HostValues] = []
        every: dict[str, list[Any]] = {MAX_FAIL_PERCENTAGE: [], UNKNOWN: []}
        for host in options["hosts"]:
            if hosts.is_refused(host):
                # Its facts override its variables.
                continue
            names[host], values = hosts.read(host)
            read.append(hosts.paths(host, names[host], values))
            for name in every.keys() & values.keys():
                every[name].append(values[name])
            if FLEET in values:
                connections[host] = {FLEET: public(values[FLEET])}
            if SERIAL in values:
                serials[host] = values[SERIAL]
            found = hosts.wrong(values)
            if options["reads"]:
                found = [*found, *hosts.wrong_inputs(read[-1])]
            if found:
                by_host[host] = found
        nothing_reads = unknown(names, known_names(hosts.specifications))
        result: dict[str, Any] = {
            "unknown": [{"name": one.name, "nearest": one.nearest} for one in nothing_reads],
            "wrong": by_host,
        }
        outputs = find_outputs(read, writes)
        texts = [*_playbook_texts(by_host), *check_outputs(outputs, writes, read)]
        if _HOOKS in writes:
            texts += wrong_hooks(read, hosts.search)
        strictest = max(map(str, every[UNKNOWN]), key=_STRICTNESS.find, default="warn")
        stops, warnings = _of_unknown(nothing_reads, strictest, names, connections)
        texts += stops
        if options["plans_cluster"] and not connections:
            warnings += [text for text in [without_cluster(names)] if text]
        if options["reads"]:
            warnings += doubtful_inputs(read, hosts.search)
        if warnings:
            result["warnings"] = warnings
        if texts:
            return {**result, "failed": True, "msg": "\n".join(["No node was touched.", *texts])}
        return {
            **result,
            "serials": serials,
            "outputs": outputs,
            "connections": connections,
            "max_fail_percentage": min(map(float, every[MAX_FAIL_PERCENTAGE]), default=0.0),
        }


def _of_unknown(
    found: Sequence[Unknown],
    strictest: str,
    names: Iterable[str],
    connections: Mapping[str, Mapping[str, Any]],
) -> tuple[list[str], list[str]]:
    """Return what ends the run, and the warnings, about variables that are not known.

    With "ignore", an inventory uses such a name for something else.
    """
    if not found or strictest == "ignore":
        return [], []
    if strictest == "fail":
        return [*map(str, found), _NEXT_STEP], []
    alone = [one for one in names if one and not names_cluster(connections.get(one, {}).get(FLEET))]
    meant = mistaken_for_no_cluster(found, alone)
    if meant:
        return [*map(str, meant), _NO_CLUSTER], []
    *most, last = map(str, found)
    return [], [*most, f"{last} {_NEXT_STEP}"]


def _may_select(pattern: str, groups: Mapping[str, Iterable[str]]) -> bool:
    """Return whether a pattern has a name of the inventory, or a form that only Ansible reads."""
    names = {*groups, *groups["all"]}
    return any(
        part[:1] in ("~", "!", "&") or "[" in part or any(fnmatch(name, part) for name in names)
        for part in pattern.replace(":", ",").split(",")
    )


def _check_inventory(hosts: Iterable[str], variables: Mapping[str, Any]) -> None:
    """Check that the inventory has the hosts: without any, the play is for Ansible's own localhost.

    :raises InputError: it has none.
    """
    groups = variables.get("groups") or {}
    every, pattern = groups.get("all"), variables.get(HOSTS) or "all"
    pattern = ",".join(map(str, pattern)) if isinstance(pattern, (list, tuple)) else str(pattern)
    of_play = set(hosts)
    if every is None or (of_play & set(every) and of_play != {"localhost"}):
        return
    if of_play & set(every) and _may_select(pattern, groups):
        return
    raise InputError(
        f"The inventory has no host that {HOSTS} ({pattern}) selects. Nothing was done."
        if every
        else "The inventory has no host. Nothing was done.",
        evidence=f"inventory: {', '.join(inventories())}",
        next_step=f"Correct {HOSTS}, or name the inventory that has the hosts with -i."
        if every
        else "Run it in the folder of the inventory with -i and its name, as in: "
        "ansible-playbook kubegpu.nodes.plan -i inventory",
    )


class _Hosts:
    """Reads and checks the variables of hosts; what they share is read once."""

    def __init__(self, action: ActionModule, variables: Mapping[str, Any]) -> None:
        self._action = action
        #: Of the roles that a host has a variable of.
        self.specifications: dict[str, dict[str, Any]] = {}
        self._seen: set[str] = set()
        self._cache: dict[str, list[dict[str, Any]]] = {}
        self._checked = _checked(PLAYBOOK_VARIABLES)
        self._variables = HostVariables(variables, play_names(action._task))
        self.play = prefixed(self._variables.of_play)
        self._specify(self.play)

    def _specify(self, names: Iterable[str]) -> None:
        """Read the specifications of the roles of these variables, each once."""
        new = set(names) - self._seen
        self._seen |= new
        found = role_options(sorted(roles_of(new) - self.specifications.keys()))
        self.specifications.update(found)
        for options in found.values():
            self._checked.update(_checked(options))

    def read(self, host: str) -> tuple[list[str], dict[str, Any]]:
        """Return the prefixed names that are set for a host, and the values of known variables.

        Values are templated with the variables of the host and of the play.
        """
        every = self._variables.every(host)
        templar = self._action._templar.copy_with_new_env(available_variables=every)
        names = prefixed(self._variables.own(host))
        self._specify(names)
        found = {}
        for name in {*names, *self.play} & self._checked.keys():
            secret = self._checked[name]
            try:
                # A mapping can also be the value of a template.
                value = _without(templar.template(_without(every[name], secret)), secret)
            except AnsibleError:
                # It depends on a variable that is not defined yet.
                continue
            # Roles treat None as not set.
            if value is not None:
                found[name] = value
        return names, found

    def is_refused(self, host: str) -> bool:
        """Return whether a fact of the host has the name of a variable."""
        return bool(refused_facts(host, self._variables.own(host)))

    def paths(self, host: str, names: list[str], values: Mapping[str, Any]) -> HostValues:
        """Return what is known of a host for paths of the controller."""
        folder = self._variables.own(host).get("inventory_dir")
        return HostValues([*names, *self.play], values, folder)

    def wrong_inputs(self, host: HostValues) -> list[dict[str, Any]]:
        """Return the files that a host's variables name and that are not on the controller."""
        return [one.to_json() for one in wrong_inputs(host, self.search)]

    def search(self, path: str) -> str:
        """Return a file of the controller that Ansible finds."""
        found: str = self._action._find_needle("files", path)
        return found

    def wrong(self, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the wrong values. Cached, as hosts of one group usually have the same values."""
        key = repr(sorted(values.items()))
        if key not in self._cache:
            self._cache[key] = [one.to_json() for one in wrong(values, self.specifications, fits)]
        return self._cache[key]


def _checked(options: Mapping[str, Mapping[str, Any]]) -> dict[str, set[str]]:
    """Return the variables whose values are checked, with the keys of each that are not.

    Those are secrets: any text is valid.
    """
    return {
        name: {key for key, one in option.get("options", {}).items() if one.get("no_log")}
        for name, option in options.items()
        if not option.get("no_log")
    }


def _without(value: Any, secret: set[str]) -> Any:
    """Return a mapping without the keys that hold a secret; another value as it is."""
    if not secret or not isinstance(value, Mapping):
        return value
    return {key: item for key, item in value.items() if key not in secret}


def _playbook_texts(by_host: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    """Return the messages about variables of the playbooks, each once."""
    texts = [
        one["message"] for found in by_host.values() for one in found if one["part"] == "playbook"
    ]
    return list(dict.fromkeys(texts))
