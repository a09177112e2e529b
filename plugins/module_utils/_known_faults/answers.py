# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of programs by which a caller decides what it does next. Pure.

They have no other form, and are no faults to explain: a resource that the scheduler misses, a GPU
that is in use.
"""

from __future__ import annotations

import re

_INSUFFICIENT = re.compile(r"\bInsufficient (?P<resource>[\w./-]{1,253}\w)")
# Of the scheduler's plugin DynamicResources.
_NO_DEVICE_LEFT = "cannot allocate all claims"
_NO_ACCOUNT = "error looking up service account"
# NVIDIA's plugin says why (an Xid, an error of NVML), then names each device in its own line.
_UNHEALTHY = (
    re.compile(r"marking (?:it|all devices|device(?: \S+)?)(?: as)? unhealthy", re.IGNORECASE),
    re.compile(r"marked unhealthy", re.IGNORECASE),
)
_IN_USE = ("In use", "being used by")
# nvidia-smi ends its output with them, also after a failed change.
_NO_EVIDENCE = ("All done", "Reboot the system or try")
# dnf and the installer of CUDA mark no line as an error.
_COMPLAINT = re.compile(r"error|fail|ignoring repositories|cannot|no space|not enough", re.I)
# dnf without a yes ends with a failure.
_DECLINED = re.compile(r"Operation aborted(?: by the user)?\.")
_NO_SMI = re.compile(r"nvidia-smi\W*: (?:executable file not found|no such file)")
# Slurm's own reasons, which replace another one when a node is rebooted.
_BY_SLURM = ("Node unexpectedly rebooted", "Not responding")
# Of modprobe.
_NO_MODULE = "not found in directory"
# 'nodes "n1" is forbidden: User "u" cannot patch resource "nodes" in API group "" at the cluster
# scope', with ' in the namespace "x"' at the end for objects in namespaces. Quota, Pod Security and
# other admission refuse with the same status, reason and details.
_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) (?:path "(?P<path>[^"]*)"'
    r'|resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?)'
)
# 'conflict with "kubectl-label" using v1 at 2026-11-21T10:00:00Z', or without the time.
_CONFLICT = re.compile(r'conflict with "(?P<manager>(?:[^"\\]|\\.)*)"')
# 'The disruption budget b1 needs 1 healthy pods and has 1 currently'; just after it was made, 'The
# disruption budget b1 is still being processed by the server.'
_BUDGET = re.compile(
    r"disruption budget (?P<budget>\S+) (?:needs (?P<needs>\d+) healthy pods and has (?P<has>\d+))?"
)
_TWO_BUDGETS = "more than one PodDisruptionBudget"
_NO_DRY_RUN = "does not support dry run"
# Older releases of Slurm drain a node whose GPUs are missing while its driver is changed.
_GPUS_MISSING = re.compile(r"gres/\S+ count (?:reported lower than configured|too low)")
_UNREADABLE = "permission denied"
# Of Ansible's become plugins, where a password is asked for and none was given.
_NO_PASSWORD = ("missing sudo password", "a password is required", "missing su password")
# A password was given, and sudo or su asks again: over ssh, and on the controller itself.
_WRONG_PASSWORD = re.compile(r"\bincorrect \w{1,20} password|duplicate become password", re.I)
# OpenSSH does not know the machine, or knows it by another key.
_HOST_KEY = "host key verification failed"
# It lists the ways in that the machine has.
_NO_KEY = "permission denied (publickey"
# Before the message of any failure, since ansible-core 2.19.
_TASK_FAILED = "Task failed: "


def lacking(message: str) -> frozenset[str]:
    """Return the resources of which the scheduler says that no node has enough."""
    return frozenset(match["resource"] for match in _INSUFFICIENT.finditer(message))


def has_no_device_left(message: str) -> bool:
    """Return whether the scheduler finds no device for the claims of a pod."""
    return _NO_DEVICE_LEFT in message


def has_no_account(message: str) -> bool:
    """Return whether the API server does not know the namespace's service account yet."""
    return _NO_ACCOUNT in message


def why_unhealthy(log: str) -> str:
    """Return the last line of a device plugin with a reason, or else one that names a device."""
    lines = log.splitlines()
    found = ([line for line in lines if words.search(line)] for words in _UNHEALTHY)
    return next((some[-1] for some in found if some), "")


def is_in_use(output: str) -> bool:
    """Return whether nvidia-smi says that a program or a module uses the GPU or the instance."""
    return any(words in output for words in _IN_USE)


def said_by_smi(output: str) -> list[str]:
    """Return the lines of nvidia-smi that say what it did, or why it did not."""
    lines = (line.strip() for line in output.splitlines())
    return [line for line in lines if line and not line.startswith(_NO_EVIDENCE)]


def complaints(output: str) -> list[str]:
    """Return the lines about a failure, of a program that does not mark them."""
    lines = (line.strip() for line in output.splitlines())
    return [line for line in lines if _COMPLAINT.search(line)]


def is_declined(output: str) -> bool:
    """Return whether dnf ended because nobody said yes to its transaction."""
    return _DECLINED.search(output) is not None


def has_no_smi(text: str) -> bool:
    """Return whether a runtime finds no nvidia-smi in a container."""
    return _NO_SMI.search(text) is not None


def gpus_are_missing(reason: str) -> bool:
    """Return whether Slurm drained a node because it registered fewer GPUs than configured."""
    return _GPUS_MISSING.match(reason) is not None


def is_of_slurm(reason: str) -> bool:
    """Return whether Slurm itself drained a node, which was rebooted or did not answer."""
    return reason.startswith(_BY_SLURM)


def has_no_module(output: str) -> bool:
    """Return whether modprobe finds no module of the name."""
    return _NO_MODULE in output


def missing_right(message: str) -> dict[str, str] | None:
    """Return the right that the API server misses: of whom, and to do what; None for no right."""
    found = _FORBIDDEN.search(message)
    return {name: value or "" for name, value in found.groupdict().items()} if found else None


def field_owner(message: str) -> str:
    """Return the field manager that a cause of a conflict names."""
    found = _CONFLICT.search(message)
    return found["manager"] if found else "unknown"


def budget_of(message: str) -> dict[str, str]:
    """Return the budget that forbids an eviction, and how many pods it needs and has."""
    found = _BUDGET.search(message)
    names = ("budget", "needs", "has")
    return {name: (found[name] or "") if found else "" for name in names}


def has_two_budgets(message: str) -> bool:
    """Return whether the API server evicts a pod in no case: several budgets have it."""
    return _TWO_BUDGETS in message


def has_no_dry_run(message: str) -> bool:
    """Return whether a webhook cannot be asked without doing what is asked."""
    return _NO_DRY_RUN in message


def is_unreadable(message: str) -> bool:
    """Return whether a program was not allowed to read its file, so that it says nothing of it."""
    return _UNREADABLE in message


def wants_password(output: str) -> bool:
    """Return whether Ansible lacks the password with which the user becomes root."""
    low = output.lower()
    return any(words in low for words in _NO_PASSWORD)


def has_wrong_password(output: str) -> bool:
    """Return whether the password with which the user becomes root was not accepted."""
    return _WRONG_PASSWORD.search(output) is not None


def has_other_host_key(output: str) -> bool:
    """Return whether ssh refuses the key with which the machine proves who it is."""
    return _HOST_KEY in output.lower()


def has_no_key(output: str) -> bool:
    """Return whether the machine accepts none of the keys that ssh has for the user."""
    return _NO_KEY in output.lower()


def of_task(message: str) -> str:
    """Return a message without the words that Ansible puts before that of any failure."""
    return message.removeprefix(_TASK_FAILED)
