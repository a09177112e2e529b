# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rollout in batches: sizes, failures of nodes, and when the next batch is not started."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import PARTS, parts
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.message import ABOVE
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.results import (
    result_message,
    result_parts,
)

from ._hosts import plans, select_hosts, uses_role
from ._variables_data import AMD_ROLES, NODE_ROLES

ALL = "100%"
# Actions of tasks that fail before anything was changed: a value or the plan is refused.
_REFUSING = ("fail", "fleet_fail", "validate_argument_spec")
# Of a host whose tasks were ended by the failure of another one.
_OF_ANOTHER = "that another host failed in"
_ENDED = (
    "A task that runs once for all hosts failed on another host, and Ansible ended the tasks of "
    "this one as well."
)
_ENDED_STEP = "fix what that host says, and run again."
# Tags of the playbook site, by the role that it runs.
_TAGS = {
    "nvidia_driver": ("driver",),
    "nvidia_mig": ("mig",),
    "cuda_toolkit": ("cuda",),
    "nvidia_container_toolkit": ("toolkit", "runtime"),
    "amd_driver": ("driver",),
    "amd_container_toolkit": ("toolkit", "runtime"),
}
_PERCENTAGE = re.compile(r"\d{1,3}%\Z", re.ASCII)


def serial_error(value: Any) -> str:
    """Return what a wrong value of ``kubegpu_serial`` must be; empty if the value is right."""
    items = value if isinstance(value, (list, tuple)) else [value]
    for item in items or [None]:
        text = str(item).strip()
        if isinstance(item, bool) or not (
            (text.isascii() and text.isdigit() and int(text) > 0)
            or (_PERCENTAGE.match(text) and 0 < int(text[:-1]) <= 100)
        ):
            return "a number of nodes from 1 on, a percentage such as '25%', or a list of these"
    return ""


def percentage_error(value: Any) -> str:
    """Return what a wrong ``kubegpu_max_fail_percentage`` must be; empty if the value is right."""
    try:
        good = not isinstance(value, bool) and 0 <= float(str(value)) <= 100
    except ValueError:
        good = False
    return "" if good else "a number from 0 to 100"


def serial(values: Sequence[Any], count: int) -> Any:
    """Return Ansible's ``serial`` for a play, from the values of its hosts.

    A play has one value. If the hosts' values differ, the one whose largest batch is the smallest
    applies to all, so that no host is in a larger batch than its own value allows.

    :param values: the values of the hosts that set one.
    :param count: number of hosts of the play, to which percentages refer.
    """
    return min(values, key=lambda value: max(batch_sizes(value, count), default=0), default=ALL)


def hosts_serial(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], select: str | None = None
) -> Any:
    """Return :func:`serial` of the values that ``fleet_variables`` found for the hosts of a play.

    :param hostvars: empty for ``ansible-playbook --syntax-check``.
    :param select: which of the hosts are those of the play (:func:`select_hosts`); None for all.
    """
    if select:
        hosts = select_hosts(hosts, hostvars, select)
    for host in hosts:
        found = hostvars[host].get("__kubegpu_variables") if host in hostvars else None
        if found:
            serials = found["serials"]
            return serial([serials[one] for one in hosts if one in serials], len(hosts))
    return ALL


def hosts_stop(
    batch: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]
) -> str:
    """Return :func:`stop_message` for a batch; empty if no host of the play waits.

    :param hosts: all hosts of the play.
    """
    if all(hostvars[host].get("kubegpu_begun") is True for host in hosts):
        return ""
    checked = hostvars[batch[0]].get("__kubegpu_variables") or {} if batch else {}
    failures = {host: hostvars[host].get("kubegpu_failure") for host in batch}
    return stop_message(failures, float(checked.get("max_fail_percentage", 0)))


def batch_sizes(value: Any, count: int) -> list[int]:
    """Return the sizes of the batches that Ansible makes of ``count`` hosts."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    sizes: list[int] = []
    left = count
    while left > 0:
        text = str(items[min(len(sizes), len(items) - 1)]).strip()
        size = int(int(text[:-1]) / 100 * count) or 1 if text.endswith("%") else int(text)
        sizes.append(min(size, left) if size > 0 else left)
        left -= sizes[-1]
    return sizes


def failure(
    task: Mapping[str, Any], result: Mapping[str, Any], changed: bool = False
) -> dict[str, Any]:
    """Return what is stored of a failed task.

    :param task: Ansible's ``ansible_failed_task``; empty for a host that no task failed on. A
        failed task that runs once ends the tasks of all hosts, and their ``rescue`` runs.
    :param result: Ansible's ``ansible_failed_result``, empty as well.
    :param changed: whether the node was changed before it.
    :returns: ``task`` (its name), ``message``, ``changed`` (whether the node was changed, before
        the task or by it), ``refused`` (whether it failed because the plan or a value is
        refused, before anything was changed), ``cause``, and what the result has of ``evidence``,
        ``next_step``, ``code`` and ``names``.
    """
    if not task:
        ended = InputError(_ENDED, next_step=_ENDED_STEP)
        stored = {"task": _OF_ANOTHER, "message": str(ended), "changed": changed}
        return {**stored, "refused": False, **parts(ended)}
    action = str(task.get("action") or "").rpartition(".")[2]
    changed = changed or bool(result.get("changed"))
    return {
        "task": str(task.get("name") or action),
        "message": result_message(result),
        "changed": changed,
        "refused": action in _REFUSING and not changed,
        **result_parts(result),
    }


def refusal(task: str, refused: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is stored of a host that is refused before any change, for several reasons.

    :param task: what found that.
    :param refused: each with ``message`` and the parts of its error.
    """
    first = {name: refused[0][name] for name in PARTS if refused[0].get(name)}
    message = "\n".join(one["message"] for one in refused)
    stored = {"task": task, "message": message, "changed": False, "refused": True}
    return {**stored, "cause": message, **first, "refusals": list(refused)}


def failed_finding(stored: Mapping[str, Any], again: str) -> dict[str, Any]:
    """Return a stored failure as a finding of a report.

    :param again: the end of its next step, such as: run accept again.
    """
    own = str(stored.get("next_step") or "")
    return {
        "code": "task_failed",
        "severity": "error",
        "subject": "",
        "cause": f"{stored['task']}: {stored['cause']}",
        "evidence": str(stored.get("evidence") or ""),
        "next_step": f"{own} Then {again}" if own else f"Fix what the cause names, and {again}",
    }


def failure_message(stored: Mapping[str, Any]) -> str:
    """Return a stored failure as one line: cause and task."""
    cause = stored["cause"]
    if stored["refused"]:
        return f"the run stopped at this node, which is refused: {cause}"
    return f"the run stopped at this node, in the task {stored['task']!r}: {cause}"


def last_message(host: str, failures: Sequence[Mapping[str, Any]]) -> str:
    """Return what the last play says of a host that was only marked before.

    :param failures: the stored failures of the host, empty ones left out.
    """
    lines = []
    for one in filter(None, failures):
        how = "is refused" if one["refused"] else f"failed in the task {one['task']}"
        lines.append(f"{host} {how}: {one['cause']} {ABOVE}")
    return "\n".join(lines)


def stop_message(failures: Mapping[str, Mapping[str, Any] | None], limit: float) -> str:
    """Return why the next batch is not started; empty if it may be.

    :param failures: the stored failure of each host of the batch, None for a host without one.
    :param limit: percentage of the hosts of the batch that may fail.
    """
    failed = [host for host, one in failures.items() if one and not one["refused"]]
    if not failed or len(failed) * 100 / len(failures) <= limit:
        return ""
    share = f"{limit:g} %" if limit else "none"
    return (
        f"not started: {len(failed)} of {len(failures)} nodes of a batch failed ({_some(failed)}), "
        f"and kubegpu_max_fail_percentage allows {share}. Next step: fix what failed and run "
        "again; what is done already is left as it is"
    )


def selected(tag: str, run_tags: Sequence[str], skip_tags: Sequence[str]) -> bool:
    """Return whether a run selects a tag, by Ansible's rules."""
    wanted, skipped = {*run_tags}, {*skip_tags}
    return bool(wanted & {"all", "tagged", tag}) and not skipped & {"all", "tagged", tag}


def roles_to_run(
    variables: Mapping[str, Any], run_tags: Sequence[str], skip_tags: Sequence[str]
) -> list[str]:
    """Return the roles of a host that have something to do, and those after them, in order.

    A later role may depend on what an earlier one changes. A role with several tags is left out
    with each of them.
    """
    found = plans(variables)
    roles = []
    for vendor in (NODE_ROLES, AMD_ROLES):
        own = [role for role in vendor if uses_role(variables, role)]
        working = [number for number, role in enumerate(own) if found.get(role, {}).get("work")]
        roles += own[working[0] :] if working else []
    return [
        role
        for role in roles
        if any(selected(tag, run_tags, ()) for tag in _TAGS[role])
        and all(selected(tag, ("all",), skip_tags) for tag in _TAGS[role])
    ]


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
