# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the first play says of hosts that it could not read, and of those that it refuses.

The playbook ``groups`` registers how the read ended in ``__kubegpu_read``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import (
    PARTS,
    failure,
    parts,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.message import (
    ABOVE,
    message,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vendors import gpu_vendors
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.answers import (
    has_other_host_key,
    has_wrong_password,
    wants_password,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.results import (
    result_message,
    result_parts,
)

from ._command_line import ping

Variables = Mapping[str, Any]

READ = "__kubegpu_read"
#: Set by the play that takes out hosts.
EARLIER = "__kubegpu_unread"
#: The first task of the playbook, which runs once for all hosts.
CHECKED = "__kubegpu_variables"
# Set by the playbooks that read more of a machine than its files, or change it.
_ON_THE_MACHINE = ("__kubegpu_changes_nodes", "__kubegpu_reports")
_NOT_READ = ("failed", "unreachable", "skipped")
_TEXTS = ("msg", "module_stdout", "module_stderr", *PARTS)
# The table of hosts that could not be read has the message.
_TAKEN_OUT = f"The host could not be read, and is taken out of the run. {ABOVE}"
_UNREACHABLE = "the node cannot be reached"
_FAILED = "the node could not be read"
_PASSWORD = (
    "The user of the connection needs a password to become root: -K asks for it, or set "
    "ansible_become_password (in a vault)."
)
_WRONG_PASSWORD = (
    "The password with which the user becomes root is wrong: run it again, and type the password "
    "that `sudo -v` accepts on the node."
)
_HOST_KEY = (
    "ssh does not know this machine yet, or knows it by another key: log in once with ssh, with "
    "the same address and user, and accept the key if it is the machine's. If it has changed and "
    "you know why, remove the old one with ssh-keygen -R."
)
_CONNECT = (
    "See that the machine is up, and that its address (ansible_host, ansible_port), "
    "user (ansible_user, -u) and key (ansible_ssh_private_key_file, --private-key) are right, and "
    "try:\n{}"
)
# What of Ansible and ssh decides on another step.
_STEPS = (
    (wants_password, _PASSWORD),
    (has_wrong_password, _WRONG_PASSWORD),
    (has_other_host_key, _HOST_KEY),
)
_TRY = "Correct that, and try:\n{}"
# The variables of an inventory that name the user, by which of Ansible's plugins reads them.
_USERS = (
    *("ansible_become_user", "ansible_sudo_user", "ansible_su_user", "ansible_doas_user"),
    *("ansible_pbrun_user", "ansible_pfexec_user", "ansible_runas_user"),
)


def _ending(variables: Variables) -> Mapping[str, Any]:
    """Return how the read of a host ended.

    The playbook keeps the result of the task, and then what :func:`endings` returns.
    """
    read = variables.get(READ)
    if not isinstance(read, Mapping):
        return {}
    if "endings" in read:
        own: Mapping[str, Any] = read["endings"].get(variables.get("inventory_hostname")) or {}
        return own
    return read


def endings(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> dict[str, Any]:
    """Return how the reads ended that failed or were left out, by host, without facts."""
    found = {}
    for host in hosts:
        ending = _ending(hostvars.get(host) or {})
        if any(ending.get(key) for key in _NOT_READ):
            found[host] = {key: ending[key] for key in (*_NOT_READ, *_TEXTS) if key in ending}
    return found


def was_read(variables: Variables) -> bool:
    """Return whether the first play read the host, or did not run."""
    ending = _ending(variables)
    return not any(ending.get(key) for key in _NOT_READ)


def is_lost(variables: Variables) -> bool:
    """Return whether the first play tried to read the host, and could not."""
    ending = _ending(variables)
    return bool(ending.get("failed") or ending.get("unreachable"))


def read_parts(variables: Variables) -> dict[str, Any]:
    """Return a failed read as ``kubegpu_failure`` has a failure; empty otherwise."""
    if not is_lost(variables):
        return {}
    ending = _ending(variables)
    return {"message": result_message(ending), **result_parts(ending)}


def why_not_read(host: str, variables: Variables) -> tuple[str, list[str]]:
    """Return why a host was not read, in short, and the whole message with a next step."""
    read = _ending(variables)
    if not is_lost(variables):
        return _FAILED, []
    found = result_parts(read)
    step = (_CONNECT if read.get("unreachable") else _TRY).format(ping(host))
    output = "\n".join(str(read.get(name)) for name in _TEXTS[:3])
    for applies, own_step in _STEPS:
        if applies(output):
            found["next_step"] = own_step
    reason = _UNREACHABLE if read.get("unreachable") else _FAILED
    return f"{reason}, see below", [message({"next_step": step, **found})]


def left_out(variables: Variables) -> InputError | None:
    """Return the error of a run whose condition leaves out the first host; None without one.

    Tasks that run once for all hosts are those of the first host: with it, they are left out.
    """
    checked = variables.get(CHECKED)
    if not isinstance(checked, Mapping) or not checked.get("skipped"):
        return None
    hosts = variables.get("ansible_play_hosts_all") or ["the first host"]
    return InputError(
        f"The condition (when) of the import does not apply to {hosts[0]}, the first host of the "
        "play. What runs once for all hosts is left out with it, so that no host can be grouped, "
        "and nothing was done.",
        next_step="Import the playbook without a condition, and name the hosts with the variable "
        "kubegpu_hosts or with --limit.",
    )


def role_left_out(hosts: Sequence[str]) -> InputError:
    """Return the error of a role whose condition leaves out the first host of the play."""
    return InputError(
        f"The condition (when) of the role does not apply to {hosts[0]}, the first host of the "
        "play. What runs once for all hosts is left out with it, and was not done.",
        next_step="Use ansible.builtin.include_role with the condition, which makes the first host "
        "it applies to the first one, or leave the other hosts out of the play.",
    )


def _tree_refused(variables: Variables, root: str) -> dict[str, Any]:
    """Return the failure of a tree in a playbook that works on the machine; empty without one."""
    if root == "/" or not any(variables.get(name) for name in _ON_THE_MACHINE):
        return {}
    return failure(
        InputError(
            f"kubegpu_root is {root}: only kubegpu.nodes.plan reads a directory tree, and this "
            "playbook works on the running machine.",
            next_step="Leave kubegpu_root out for this host, or run kubegpu.nodes.plan.",
        )
    )


def known_result(variables: Variables, root: str = "/") -> dict[str, Any] | None:
    """Return the result of ``gpu_node_facts`` that needs no node; None if none is known.

    How an earlier call ended is the result of the task that takes a host out of the run. The
    variable of that task only marks it: an action gets it as a template.
    """
    if EARLIER in variables:
        earlier = _ending(variables)
        how = {key: True for key in ("failed", "unreachable") if earlier.get(key)}
        cause = str(earlier.get("msg") or "It was not read.").partition("\n")[0]
        # A failure was shown by the task that read the host.
        return {"changed": False, "msg": _TAKEN_OUT if "failed" in how else cause, **how}
    error = left_out(variables)
    told = failure(error) if error else _tree_refused(variables, root)
    return {"failed": True, "changed": False, **told} if told else None


def refusals(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> list[dict[str, Any]]:
    """Return the hosts that are refused for what was read of them, each with its reasons.

    Only machines with GPUs that are read as they run, not trees.
    """
    facts = {}
    for host in hosts:
        variables = hostvars.get(host) or {}
        node = (variables.get("ansible_facts") or {}).get("gpu_node") or {}
        tree = str(variables.get("kubegpu_root") or "/") != "/"
        if was_read(variables) and not tree and gpu_vendors(node.get("gpus") or ()):
            facts[host] = node
    twins = _twins(facts)
    found = []
    for host, node in facts.items():
        reasons = [_not_root(host, hostvars[host], node), _twin(host, twins.get(host) or (), node)]
        shown = [one for one in reasons if one]
        if shown:
            found.append({"host": host, "refusals": shown})
    return found


def _not_root(host: str, variables: Variables, node: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the refusal of a node that root should have read."""
    read = _ending(variables)
    # A variable that import_playbook passes is not among those of the host.
    wanted = read.get("become", boolean(variables.get("kubegpu_become", True), strict=False))
    if node.get("as_root") is not False or not wanted:
        return None
    users = [(name, str(variables[name])) for name in _USERS if variables.get(name)]
    others = [f"{name} is {value}" for name, value in users if value != "root"]
    if not boolean(variables.get("ansible_become", True), strict=False):
        others = ["ansible_become is false"]
    seen = " and ".join(others) or (
        "become_user of ansible.cfg, ANSIBLE_BECOME_USER or --become-user names another user"
    )
    return _refusal(
        "not read as root",
        InputError(
            f"{host} was not read as root, though the playbook becomes root: variables of the "
            "inventory and settings of Ansible are stronger than the play.",
            evidence=seen,
            next_step="Take that away, or set ansible_become: true and ansible_become_user: root "
            "for this host.",
        ),
    )


def _twins(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the hosts that are one machine, by each of them.

    A machine id is cloned with the disk, and containers have the boot of their host.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    for host, node in facts.items():
        system = node.get("os") or {}
        key = tuple(str(system.get(name) or "") for name in ("machine_id", "boot_id", "hostname"))
        if all(key[:2]):
            found.setdefault(key, []).append(host)
    return {host: names for names in found.values() if len(names) > 1 for host in names}


def _twin(host: str, names: Sequence[str], node: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the refusal of a machine that the inventory has under several names."""
    if not names:
        return None
    system = node["os"]
    other = next(one for one in names if one != host)
    return _refusal(
        f"one machine with {other}",
        InputError(
            f"{' and '.join(names)} are one machine, which would be changed several times at once, "
            "or a machine answers with the identity of another one, which nothing here can tell "
            "apart.",
            evidence=f"machine id {system['machine_id']}, boot id {system['boot_id']} of all of "
            "them",
            next_step="Keep one of the names in the inventory, or leave the others out, as with "
            f"--limit 'all:!{names[-1]}'. If they are different machines, leave out the one whose "
            "own /proc/sys/kernel/random/boot_id is another one, and check it for intruders.",
        ),
    )


def _refusal(why: str, error: InputError) -> dict[str, Any]:
    own = {"variable": "", "part": "node", "why": why, "message": str(error), "cluster": False}
    return {**own, **parts(error)}
