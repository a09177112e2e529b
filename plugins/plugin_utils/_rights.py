# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights of playbooks/files/rbac.yml: which parts a run needs, and a message of those missing.

The rights are in that file alone, by parts. Here are the parts that a run needs.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError

from ._rollout import selected

FILE = Path(__file__).resolve().parents[2] / "playbooks" / "files" / "rbac.yml"
LABEL = "kubegpu.nodes/rights"
#: Of the file; the namespace can be another one.
NAMESPACE, ACCOUNT = "kubegpu", "kubegpu-ansible"

#: The parts that a kind of run needs, by the name of a playbook, a tag of ``site`` with the vendor
#: where it matters, or an option. docs/rights.md has them in words.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "labels": ("base", "nodes"),
    "nvidia_device_plugin": ("base", "read", "pods", "nvidia"),
    "pull_secret": ("image-secret",),
    "amd_device_plugin": ("base", "read", "amd"),
    "intel_device_plugin": ("base", "read", "intel"),
    "monitoring": ("base", "read", "monitoring"),
    "dra": ("base", "read", "teardown", "dra"),
    "compute_domains": ("nodes", "compute-domains"),
    "mig": ("base", "read", "nodes"),
    "verify": ("base", "read", "pods"),
    "diagnose": ("base", "read"),
    "accept": ("base", "read", "nodes", "maintenance"),
    "upgrade": ("base", "read", "nodes", "pods", "maintenance", "upgrade"),
    "teardown": ("base", "read", "nodes", "pods", "teardown"),
    "maintenance": ("base", "read", "nodes", "maintenance"),
    "lease": ("upgrade",),
}
# Of a playbook of somebody else, by the role or the module of the task.
_OF_TASKS: Mapping[str, tuple[str, ...]] = {
    "gpu_node_labels": ("labels",),
    "node_gpu_label": ("labels",),
    "node_pause": ("mig",),
    "nvidia_mig": ("mig",),
    "nvidia_device_plugin": ("nvidia_device_plugin",),
    "amd_device_plugin": ("amd_device_plugin",),
    "intel_device_plugin": ("intel_device_plugin",),
    "nvidia_dra_driver": ("dra",),
    "gpu_monitoring": ("monitoring",),
    "gpu_verify": ("verify",),
    "gpu_test_pods": ("verify",),
    "gpu_diagnose": ("diagnose",),
    "gpu_cluster_info": ("diagnose",),
    "gpu_acceptance": ("accept",),
    "gpu_upgrade": ("upgrade",),
    "gpu_node_maintenance": ("maintenance",),
}
_PLANNING = ("site", "plan")
_DEPLOYING = (*_PLANNING, "teardown")


class Right(NamedTuple):
    """One verb on one resource; without a namespace in the whole cluster, without a name on any."""

    part: str
    namespace: str
    group: str
    resource: str
    name: str
    verb: str

    def attributes(self) -> dict[str, str]:
        """Return it as the module is given it."""
        return {name: value for name, value in self._asdict().items() if name != "part"}


class Settings(NamedTuple):
    """What decides which parts a run needs.

    :param vendors: of the GPUs of the hosts in the cluster.
    :param options: which of ``monitoring``, ``dra``, ``compute_domains``, ``pull_secret`` and
        ``lease`` a host or the task has.
    """

    playbooks: Collection[str]
    tasks: Collection[str]
    run_tags: Sequence[str]
    skip_tags: Sequence[str]
    vendors: Collection[str]
    options: Collection[str]


def read_rights(namespace: str = NAMESPACE) -> list[Right]:
    """Return the rights of the file, each once, for a namespace of this collection."""
    found: dict[Right, None] = {}
    for item in yaml.safe_load_all(FILE.read_text(encoding="utf-8")):
        meta = item["metadata"]
        where = namespace if meta.get("namespace") else ""
        for rule in item.get("rules") or ():
            found.update(
                dict.fromkeys(
                    Right(meta["labels"][LABEL], where, group, resource, name, verb)
                    for group in rule["apiGroups"]
                    for resource in rule["resources"]
                    for name in rule.get("resourceNames") or [""]
                    for verb in rule["verbs"]
                )
            )
    return list(found)


def needed_parts(settings: Settings) -> list[str]:
    """Return the parts that a run needs, as far as its playbook, tags and variables say it.

    A playbook of somebody else needs those of the role or the module of the task.
    """
    known = [one for one in settings.playbooks if one in _PLANNING or one in NEEDS]
    rows = [row for one in known for row in _rows(one, settings)]
    if not known:
        rows = [row for one in settings.tasks for row in _OF_TASKS.get(one, ())]
        rows += [one for one in ("lease",) if one in settings.options]
    return list(dict.fromkeys(part for row in rows for part in NEEDS[row]))


def _rows(playbook: str, settings: Settings) -> Iterable[str]:
    def has(tag: str) -> bool:
        every = playbook not in _PLANNING
        return every or selected(tag, settings.run_tags, settings.skip_tags)

    yield from [playbook] if playbook in NEEDS else []
    if playbook in _PLANNING:
        yield from [tag for tag in ("labels", "verify") if has(tag)]
        yield from ["mig"] if "nvidia" in settings.vendors and has("mig") else []
    if playbook in _DEPLOYING:
        yield from [
            f"{vendor}_device_plugin" for vendor in settings.vendors if has("device_plugin")
        ]
        secret = "nvidia" in settings.vendors and has("device_plugin")
        yield from ["pull_secret"] if secret and "pull_secret" in settings.options else []
        if "dra" in settings.options and has("dra"):
            yield "dra"
            yield from [one for one in ("compute_domains",) if one in settings.options]
    if playbook in (*_DEPLOYING, "verify") and has("monitoring"):
        yield from [one for one in ("monitoring",) if one in settings.options]


def missing_rights(
    missing: Sequence[Right],
    needed: Sequence[Right],
    user: str,
    server: str,
    namespace: str = NAMESPACE,
) -> KubegpuError:
    """Return the error that names all rights which are missing, and the parts that give them.

    :param missing: at least one.
    :param needed: those that the run needs.
    :param user: who lacks them, as the API server names it.
    :param server: the address of the API server.
    """
    parts = list(dict.fromkeys(one.part for one in missing))
    names = f"the part {parts[0]}" if len(parts) == 1 else f"the parts {', '.join(parts)}"
    return KubegpuError(
        f"The user {user} lacks {len(missing)} of the {len(needed)} rights that this run needs at "
        f"the API server {server}: rights of {names} of rbac.yml",
        evidence="\n".join(_of_part(part, missing, needed) for part in parts),
        next_step=_apply(parts, user, namespace),
    )


def _of_part(part: str, missing: Sequence[Right], needed: Sequence[Right]) -> str:
    """Return what is missing of a part; of a whole part the resources."""
    lacking = [one for one in missing if one.part == part]
    if len(lacking) == 1 or len(lacking) < sum(one.part == part for one in needed):
        return f"part {part}: {_in_words(lacking)}"
    resources = ", ".join(dict.fromkeys(one.resource for one in lacking))
    return f"part {part}: all of its {len(lacking)} rights, on {resources}"


def _in_words(rights: Sequence[Right]) -> str:
    """Return rights as 'get, patch on daemonsets, services in the namespace x; ...'."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for one in rights:
        known = verbs.setdefault((one.namespace, one.resource), [])
        known += [one.verb] if one.verb not in known else []
    same: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (namespace, resource), found in verbs.items():
        same.setdefault((namespace, tuple(found)), []).append(resource)
    return "; ".join(
        f"{', '.join(found)} on {', '.join(resources)} "
        + (f"in the namespace {namespace}" if namespace else "in the whole cluster")
        for (namespace, found), resources in same.items()
    )


def _apply(parts: Sequence[str], user: str, namespace: str) -> str:
    selector = shlex.quote(f"{LABEL} in ({', '.join(parts)})")
    command = f"kubectl apply -f {shlex.quote(str(FILE))} -l {selector}"
    if namespace != NAMESPACE:
        named = f"s/namespace: {NAMESPACE}\\b/namespace: {namespace}/"
        named += f"; s/name: {NAMESPACE}$/name: {namespace}/"
        command = (
            f"sed {shlex.quote(named)} {shlex.quote(str(FILE))} | kubectl apply -f - -l {selector}"
        )
    account = f"system:serviceaccount:{namespace}:{ACCOUNT}"
    other = (
        ""
        if user == account
        else f" It gives them to the account {account}: use a token of this account, or give the "
        "same rights to the user."
    )
    return f"Run this as an administrator of the cluster, then repeat the run: {command}{other}"
