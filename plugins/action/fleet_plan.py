# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the parts of nodes, for all hosts of a play or for the host of the task."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.release import __version__

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import failure
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.parts import OF_NODES, PARTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.plan import (
    in_cluster,
    plan_node,
    refuse,
    variables_of,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import (
    CLUSTER_PARTS,
    LABELS,
    Node,
    Plan,
    Run,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._connection import FLEET, connected
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._controller_paths import (
    HostValues,
    foreign_keys,
    wrong_runfiles,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fact_names import refusal
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._host_variables import (
    HostVariables,
    play_names,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import (
    OTHER_FORM,
    facts,
    one_cluster,
    planned_parts,
    plans,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._paths import find_file
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._runs import this_run

_OF_CLUSTER = (LABELS, *CLUSTER_PARTS)
_OPTIONS = {
    "hosts": {"type": "list", "elements": "str"},
    "parts": {"type": "list", "elements": "str", "choices": [*PARTS, *_OF_CLUSTER]},
    "cluster": {"type": "dict", "default": {}},
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
}
_CLUSTER = "ansible_collections.kubegpu.nodes.plugins.module_utils._plan.cluster"
# What a host says of a part of its cluster is registered by the role that asks it.
_ROLES = {
    "amd_device_plugin": "gpu_device_plugin",
    "intel_device_plugin": "gpu_device_plugin",
}
_REGISTERED = {LABELS: f"{LABELS}_plan"}
_NO_FACT = (
    "fleet_plan needs the fact gpu_node. Next step: run kubegpu.nodes.gpu_node_facts on the host "
    "first."
)
_DRIVER = "nvidia_driver"
_LICENCE = "nvidia_driver_licence"
# Whether pods that use GPUs leave the node before its layout changes.
_DRAINS = "__kubegpu_drains"

Variables = Mapping[str, Any]


def needs_token(values: Variables) -> bool:
    """Return whether the plan of the driver depends on the token of a licence."""
    licence = values.get(_LICENCE)
    return (
        isinstance(licence, Mapping)
        and bool(licence.get("token_path"))
        and "token_sha256" not in licence
        and values.get("nvidia_driver_state") != "absent"
    )


class ActionModule(ActionBase):
    """Runs on the controller only and connects to no node."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(argument_spec=_OPTIONS)
        self._given = task_vars or {}
        self._cluster = options["cluster"]
        self._digests: dict[str, str] = {}
        own = self._given["inventory_hostname"]
        result["changed"] = False
        of_cluster = [part for part in options["parts"] or () if part in _OF_CLUSTER]
        if of_cluster:
            try:
                if len(options["parts"]) > 1:
                    raise InputError(
                        f"fleet_plan: parts has {of_cluster[0]} of a cluster and another part.",
                        next_step="Plan each part of a cluster by a task of its own.",
                    )
                return {**result, **self._of_cluster(of_cluster[0], options)}
            except InputError as error:
                told = failure(error)
                raise AnsibleActionFail(told["msg"], result=told) from None
        if options["hosts"] is None:
            if facts(self._given) is None:
                raise AnsibleError(_NO_FACT)
            planned = self._plan(own, self._given, options["parts"], plans(self._given))
            result["plans"] = {own: planned}
            return result
        hosts = HostVariables(self._given, play_names(self._task))
        result["plans"] = {}
        for host in options["hosts"]:
            every = hosts.every(host)
            if facts(every) is not None:
                result["plans"][host] = self._plan(host, every, options["parts"], {})
        return result

    def _of_cluster(self, part: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return what this host says of a part of its cluster, or the plan of the part."""
        cluster = importlib.import_module(_CLUSTER)
        own = self._given["inventory_hostname"]
        if options["hosts"] is None:
            row = self._own_row(cluster, part, options["state"])
            if row is not None:
                return {"plans": {own: {part: row}}}
            namespace = str(self._templar.template(self._given.get(f"{part}_namespace")) or "")
            return {"plan": cluster.plan_teardown(part, namespace, self._cluster)}
        registered, rows = _REGISTERED.get(part) or f"__{_ROLES.get(part, part)}_host", {}
        for host in options["hosts"]:
            # A host that failed before it said something is left out.
            variables = self._given["hostvars"].raw_get(host)
            said = (variables.get(registered) or {}).get("plans") or {}
            node, row = facts(variables), (said.get(host) or {}).get(part)
            if node is not None and row is not None:
                rows[host] = {**row, "gpu_node": node}
        if part == LABELS:
            # One call labels all of them.
            one_cluster(list(rows), self._given["hostvars"])
        first = rows.get(own) or next(iter(rows.values()), {})
        return {"plan": cluster.plan_cluster(part, first, rows, self._cluster)}

    def _own_row(self, cluster: Any, part: str, state: str) -> dict[str, Any] | None:
        names = cluster.variables_of_cluster(part) & self._given.keys()
        values = {
            # Results are no templates, and those of a cluster are large.
            name: self._given[name]
            if name.endswith("_result")
            else self._templar.template(self._given[name])
            for name in names
        }
        host = self._given["inventory_hostname"]
        values[FLEET] = connected(values.get(FLEET), self._given["hostvars"], host)
        run = self._run(host, self._given)
        node = facts(self._given)
        if node is None:
            raise AnsibleError(_NO_FACT)
        planned = plans(self._given)
        make = cluster.host_row if state == "present" else cluster.removed_row
        row: dict[str, Any] | None = make(part, host, Node(node, values, run, planned, ()))
        return row

    def _plan(
        self,
        host: str,
        variables: Variables,
        asked: list[str] | None,
        earlier: Mapping[str, Plan],
    ) -> dict[str, Plan]:
        """Return the plans of a host. What is wrong with it is a plan that refuses it."""
        error = refusal(host, variables.get("ansible_facts"))
        if error is not None:
            # Templates of its variables would read its facts.
            return refuse(asked or OF_NODES, error)
        values, wrong = self._values(variables, asked or OF_NODES)
        parts = planned_parts({**variables, **values}) if asked is None else asked
        if _DRIVER in parts and needs_token(values):
            self._read_token(variables, values, wrong)
        node = facts(variables) or {}
        try:
            planned = plan_node(node, values, parts, self._run(host, variables), earlier, wrong)
            host_values = HostValues((), values, variables.get("inventory_dir"))
            unusable = {
                **wrong_runfiles(planned, host_values, self._search, self._digests),
                **foreign_keys(planned, host_values, self._search),
            }
            for part, error in unusable.items():
                planned[part] = PARTS[part].refused(error)
            return planned
        except OTHER_FORM as fault:
            # One host costs itself only.
            cause = f"The host cannot be planned: {type(fault).__name__}: {fault}."
            step = "Report it with the facts of the host, which the playbook diagnose collects."
            return refuse(parts, InputError(cause, next_step=step))

    def _values(
        self, variables: Variables, parts: Iterable[str]
    ) -> tuple[dict[str, Any], dict[str, InputError]]:
        """Return the values of the variables that plans depend on, and those without a value."""
        templar = self._templar
        if variables is not self._given:
            templar = templar.copy_with_new_env(available_variables=variables)
        values, wrong = {}, {}
        for name in variables_of(parts) & variables.keys():
            try:
                values[name] = templar.template(variables[name])
            except AnsibleError as error:
                evidence = str(error).partition("\n")[0]
                step = f"Correct the template of {name}, or define what it needs."
                wrong[name] = InputError(f"{name} has no value.", evidence=evidence, next_step=step)
        return values, wrong

    def _read_token(
        self, variables: Variables, values: dict[str, Any], wrong: dict[str, InputError]
    ) -> None:
        """Add the checksum of the licence's token: by it a plan sees whether the node has it."""
        option, licence = f"{_LICENCE}.token_path", values[_LICENCE]
        try:
            found = find_file(option, str(licence["token_path"]), variables, self._search)
            if found not in self._digests:
                # Ansible decrypts a file of its vault.
                text = self._loader.get_text_file_contents(found)
                data = text.encode(errors="surrogateescape")
                self._digests[found] = hashlib.sha256(data).hexdigest()
            values[_LICENCE] = {**licence, "token_sha256": self._digests[found]}
        except InputError as missing:
            wrong[_LICENCE] = missing
        except (AnsibleError, OSError, ValueError) as error:
            wrong[_LICENCE] = InputError(
                f"{option}: the token cannot be read.",
                evidence=str(error).partition("\n")[0],
                next_step="Check the file, and the password of the vault if it is encrypted.",
            )

    def _search(self, path: str) -> str:
        """Return a file of the controller that Ansible finds."""
        return str(self._find_needle("files", path))

    def _run(self, host: str, variables: Variables) -> Run:
        drains = boolean(self._templar.template(variables.get(_DRAINS, False)), strict=False)
        return this_run(
            __version__,
            in_cluster(host, self._cluster, drains=drains),
            self._given.get("ansible_run_tags") or ("all",),
            self._given.get("ansible_skip_tags") or (),
            (self._given.get("groups") or {}).get("all"),
        )
