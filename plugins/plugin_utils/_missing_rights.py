# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A task that the API server refuses for want of a right: name all rights that the run lacks.

Nothing is asked of the API server before a first refusal, so that a run without one costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from ansible import context
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import failure
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    with_internal,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.answers import (
    missing_right,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.client import KUBE_ARGUMENTS

from ._rights import NAMESPACE, Right, Settings, missing_rights, needed_parts, read_rights

_ASKS = "kubegpu.nodes.gpu_cluster_info"
_VENDORS = ("nvidia", "amd", "intel")
# Variables by the option of the settings; those of the hosts of the cluster.
_OPTIONS: Mapping[str, str] = {
    "monitoring": "gpu_monitoring_enabled",
    "dra": "nvidia_dra_driver_enabled",
    "compute_domains": "nvidia_dra_driver_compute_domains",
    "pull_secret": "nvidia_device_plugin_pull_secret_login",
}
# Variables of the plays of plan and site, which a playbook of somebody else may import.
_OF_SITE = ("__kubegpu_deployed", "__kubegpu_changes_cluster", "__kubegpu_plans_cluster")
_TOLD = ("msg", "evidence")


def with_all_rights(
    action: Any, result: dict[str, Any], variables: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the result of a task, if it lacks a right with all that the run lacks.

    :param action: that of the task, whose options have the connection to the cluster.
    :param variables: of the task.
    """
    found = _refused(result)
    if found is None:
        return result
    namespace = _namespace(variables)
    rights = read_rights(namespace)
    part = next((one.part for one in rights if _is_refused(one, found)), None)
    if part is None:
        # An option of its own needs it, and no part has it.
        return result
    parts = {*needed_parts(_settings(action, variables)), part}
    needed = [one for one in rights if one.part in parts]
    answer = action._execute_module(
        module_name=_ASKS,
        module_args=with_internal(
            _connection(action._task.args), _rights=[one.attributes() for one in needed]
        ),
        task_vars=variables,
    )
    lacking = answer.get("lacking") or ()
    missing = [one for number, one in enumerate(needed) if number in lacking]
    # An API server that answers no such question, or a role that it has learned of since.
    if answer.get("failed") or not missing:
        return result
    server = str(answer.get("server"))
    error = missing_rights(missing, needed, found["user"], server, namespace)
    # Ansible would print the first message from there.
    kept = {name: one for name, one in result.items() if name != "exception"}
    return {**kept, **failure(error)}


def _refused(result: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Return the right for want of which a task failed; None for another result."""
    if not result.get("failed"):
        return None
    for name in _TOLD:
        found = missing_right(str(result.get(name) or ""))
        if found and found["resource"]:
            return found
    return None


def _is_refused(right: Right, found: Mapping[str, str]) -> bool:
    return all(
        getattr(right, name) == found[name] for name in ("group", "resource", "verb")
    ) and right.namespace in ("", found["namespace"])


def _connection(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in KUBE_ARGUMENTS if options.get(name) is not None}


def _namespace(variables: Mapping[str, Any]) -> str:
    return str(_value(variables, variables["inventory_hostname"], "kubegpu_kube_namespace")
               or NAMESPACE)  # fmt: skip


def _value(variables: Mapping[str, Any], host: str, name: str) -> Any:
    hostvars = variables.get("hostvars") or {}
    try:
        return hostvars[host].get(name) if host in hostvars else None
    except AnsibleError:
        # A template of what is not known yet: the message is about something else.
        return None


def _settings(action: Any, variables: Mapping[str, Any]) -> Settings:
    groups = variables.get("groups") or {}
    members = groups.get("kubegpu_cluster") or [variables["inventory_hostname"]]
    options = [
        option
        for option, name in _OPTIONS.items()
        if any(_is_set(_value(variables, host, name)) for host in members)
    ]
    playbooks = _stems(context.CLIARGS.get("args") or ())
    if any(name in variables for name in _OF_SITE):
        playbooks.append("site")
    names = [variables.get("role_name"), *(variables.get("ansible_parent_role_names") or ())]
    tasks = [*filter(None, names)] or [action._task.action]
    return Settings(
        playbooks=playbooks,
        tasks=[str(one).rpartition(".")[2] for one in tasks],
        run_tags=variables.get("ansible_run_tags") or ["all"],
        skip_tags=variables.get("ansible_skip_tags") or [],
        vendors=[one for one in _VENDORS if set(groups.get(f"kubegpu_{one}") or ()) & set(members)],
        options=[*options, *(["lease"] if action._task.args.get("lease") else [])],
    )


def _is_set(value: Any) -> bool:
    return bool(value) if isinstance(value, (Mapping, list)) else boolean(value, strict=False)


def _stems(playbooks: Iterable[str]) -> list[str]:
    """Return the names of playbooks: of 'kubegpu.nodes.site' and of 'playbooks/site.yml'."""
    return [
        PurePath(one).stem if one.endswith((".yml", ".yaml")) else one.rpartition(".")[2]
        for one in playbooks
    ]
