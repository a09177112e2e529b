# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Select the hosts of a play, by their facts and by the public facts of the roles.

This file imports little, because each process that runs a filter imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from jinja2 import UndefinedError

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    InputError,
    KubegpuError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.switches import SWITCHES
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vendors import (
    DRIVERS,
    IN_KERNEL,
    container_gpus,
    gpu_vendor,
    gpu_vendors,
)

from ._connection import FLEET, fixed, names_cluster
from ._fact_names import refused_facts, variable_names
from ._reading import is_lost, was_read
from ._variables_data import AMD_ROLES, NODE_ROLES

Variables = Mapping[str, Any]
Answer = TypeVar("Answer")

#: The registered result of ``fleet_plan`` for all hosts of a run.
PLANS = "kubegpu_plans"
# By their part in the table of the plan.
_AMD_PARTS = dict(zip(("AMD driver", "AMD toolkit"), AMD_ROLES))
_REPORTS = "kubegpu_report_dir"
_LOCAL = ("", "localhost", "127.0.0.1", "::1")
_DELEGATE = "kubegpu_kube.delegate"
_NAMESPACE = "kubegpu_kube_namespace"
_KEYS = ("kubeconfig", "context", "host", "delegate")
#: What the use of facts of another form raises.
OTHER_FORM = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def connection(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``kubegpu_kube`` of a host, empty if the host has none.

    As it was before any node was read. Only ``fleet_variables`` says what is wrong with it.
    """
    found = variables.get(FLEET)
    if not isinstance(found, Mapping):
        return {}
    before = fixed(FLEET, variables)
    return found if before is None else before


def select_hosts(hosts: Sequence[str], hostvars: Mapping[str, Variables], select: str) -> list[str]:
    """Return the hosts to which ``select`` applies, in their order.

    It applies to no host whose facts have another form. Hosts whose facts are refused are the last
    ones: what runs once for a play has the variables of its first host.

    :param hostvars: Ansible's ``hostvars``; empty for ``ansible-playbook --syntax-check``.
    :param select: a key of the table of this file.
    :raises InputError: ``select`` is unknown.
    """
    if select not in _SELECT:
        raise InputError(f"{select!r} is none of {', '.join(_SELECT)}.")
    applies = _SELECT[select]
    found = [
        host for host in hosts if host in hostvars and _guarded(applies, hostvars[host], False)
    ]
    return sorted(found, key=lambda host: is_refused(hostvars[host]))


def is_refused(variables: Variables) -> bool:
    """Return whether a host has facts with names of variables, or of functions of templates."""
    return bool(variable_names(variables.get("ansible_facts")))


def _guarded(
    function: Callable[[Variables], Answer], variables: Variables, other: Answer
) -> Answer:
    """Return what a function returns for a host, or ``other`` if its facts have another form.

    With facts that are refused, templates of its variables can fail as well.
    """
    try:
        return function(variables)
    except (AnsibleError, *OTHER_FORM):
        # Facts are looked at as a whole only here: that takes as long as a selection.
        if form_error(variables) is None and not is_refused(variables):
            raise
        return other


def host_groups(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> list[dict[str, Any]]:
    """Return the groups of hosts: by their facts, and by what their variables ask for.

    Later plays read these groups, not the variables of all hosts of the inventory.
    """
    nothing: list[str] = []
    groups = {
        host: _guarded(partial(_groups, host), hostvars[host], nothing)
        for host in hosts
        if host in hostvars
    }
    lost = select_hosts(hosts, hostvars, "lost")
    groups.update({host: ["kubegpu_not_read"] for host in lost})
    if lost:
        # Ansible ends the run with a play that loses all of its hosts: the play that takes out the
        # hosts that were not read has one more.
        read = [host for host, found in groups.items() if found and host not in set(lost)]
        groups.update({host: [*groups[host], "kubegpu_first_read"] for host in read[:1]})
    return [{"host": host, "groups": found} for host, found in groups.items() if found]


def _groups(host: str, variables: Variables) -> list[str]:
    """Return the groups of a host, none without facts or with facts of another form.

    One with a wrong value that applies to it has failed, and no play that changes nodes runs on it.
    """
    if _node(variables) is None or not was_read(variables):
        return []
    if is_refused(variables):
        return ["kubegpu_refused", "kubegpu_failed"]
    reported = (
        ["kubegpu_reported"] if _may_be(lambda known: bool(known.get(_REPORTS)), variables) else []
    )
    if wrong_values(host, variables):
        return ["kubegpu_refused", "kubegpu_failed", *reported]
    vendors = _vendors(variables)
    return [
        *(f"kubegpu_{vendor}" for vendor in vendors or ["none"]),
        *(["kubegpu_gpu"] if vendors else []),
        *(["kubegpu_cluster"] if _in_cluster(variables) else []),
        *(["kubegpu_monitored"] if _may_be(_is_monitored, variables) else []),
        *reported,
    ]


def _may_be(applies: Callable[[Variables], bool], variables: Variables) -> bool:
    """Return whether something applies to a host, or depends on a variable that is defined later.

    The plays for such hosts decide again.
    """
    try:
        return applies(variables)
    except UndefinedError:
        return True


def wrong_values(host: str, variables: Variables) -> Sequence[Mapping[str, Any]]:
    """Return why a host is refused.

    That are all wrong values of it, if one of them is of a part that applies to the host, and what
    is wrong with the host itself. A fact with the name of a variable is one, whatever the host has.

    :param variables: the host's variables, with the result of ``fleet_variables`` and of
        ``refusals``.
    """
    refused = refused_facts(host, variables)
    if refused:
        return refused
    checked = variables.get("__kubegpu_variables") or {}
    found: Sequence[Mapping[str, Any]] = (checked.get("wrong") or {}).get(host) or ()
    own: Sequence[Mapping[str, Any]] = (variables.get("__kubegpu_refused") or {}).get(host) or ()
    return [*own, *(found if any(_applies(one, variables) for one in found) else ())]


def _applies(wrong: Mapping[str, Any], variables: Variables) -> bool:
    """Return whether a part that reads the wrong value applies to the host."""
    if wrong["cluster"]:
        return _in_cluster(variables)
    vendors = _vendors(variables)
    if wrong["part"] in _AMD_PARTS:
        return _uses_amd(variables, _AMD_PARTS[wrong["part"]])
    return bool(vendors) if wrong["part"] == "verify" else vendors[:1] == ["nvidia"]


def one_cluster(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> dict[str, str]:
    """Return the cluster's variables, which are equal for all hosts.

    :raises InputError: two hosts differ, or the delegate is not in the inventory.
    """
    first: dict[str, str] = {}
    trusted = [host for host in hosts if not is_refused(hostvars[host])]
    for host in trusted:
        kube = connection(hostvars[host])
        values = {f"kubegpu_kube.{key}": str(kube.get(key) or "") for key in _KEYS}
        values[_NAMESPACE] = str(hostvars[host].get(_NAMESPACE) or "")
        for name, value in values.items() if first else ():
            if first[name] != value:
                raise InputError(
                    f"{trusted[0]} and {host} are not of one cluster: {name} is {first[name]!r} "
                    f"and {value!r}. Next step: set it once for all of them, or run each cluster "
                    "by itself with --limit."
                )
        first = first or values
    delegate = first.get(_DELEGATE, "")
    if delegate not in _LOCAL and delegate not in hostvars:
        raise InputError(
            f"{_DELEGATE} is {delegate!r}, and the inventory of this run has no such "
            "host. In slices of a job each run sees its own part of the hosts. Next step: leave it "
            "out, so that localhost speaks to the cluster, or have that host in every inventory."
        )
    return first


def facts(variables: Variables) -> Mapping[str, Any] | None:
    """Return the fact ``gpu_node`` of a host; None if it was not read or has another form."""
    return _node(variables) if form_error(variables) is None else None


def _node(variables: Variables) -> Mapping[str, Any] | None:
    """Return the fact ``gpu_node`` of a host, unchecked; None if the host was not read.

    A fact without GPUs is not of this collection.
    """
    found = (variables.get("ansible_facts") or {}).get("gpu_node")
    return found if isinstance(found, Mapping) and "gpus" in found else None


def form_error(variables: Variables) -> KubegpuError | None:
    """Return the error about the facts of a host; None if they have the form of this release.

    The action checks the facts of this run. Those of another run are in a cache of facts, and a
    play can set some.
    """
    node = _node(variables)
    if node is None:
        return None
    # Each process that runs a filter imports this file.
    from ._forms import cached_error, facts_fault  # noqa: PLC0415

    wrong = facts_fault(node)
    return cached_error(wrong) if wrong else None


def _vendor(variables: Variables) -> str:
    node = _node(variables)
    return "" if node is None else gpu_vendor(node["gpus"])


def _vendors(variables: Variables) -> list[str]:
    node = _node(variables)
    return [] if node is None else gpu_vendors(node["gpus"])


def _in_cluster(variables: Variables) -> bool:
    return names_cluster(connection(variables))


def _is_enabled(variables: Variables, role: str, *, default: bool = False) -> bool:
    """Return whether the host's own variables enable a role."""
    return boolean(variables.get(f"{role}_enabled", default), strict=False)


def switches(variables: Variables) -> dict[str, bool]:
    """Return the variables with which a role leaves a driver alone; without one that is no boolean.

    A value that depends on a variable that is defined later is left out.
    """
    found = {}
    for name, default in SWITCHES.items():
        try:
            found[name] = boolean(variables.get(name, default), strict=True)
        except (AnsibleError, UndefinedError, TypeError):
            continue
    return found


def _has_failed(variables: Variables) -> bool:
    return bool(variables.get("kubegpu_failure"))


def plans(variables: Variables) -> dict[str, Mapping[str, Any]]:
    """Return the plans of a host by role: those of the whole run, and the newer ones of roles."""
    found = _planned(variables, PLANS)
    for role in (*NODE_ROLES, *AMD_ROLES):
        own = _planned(variables, f"{role}_plan")
        found.update({role: own[role]} if role in own else {})
    return found


def _planned(variables: Variables, name: str) -> dict[str, Mapping[str, Any]]:
    """Return the plans of a host in a registered result of ``fleet_plan``."""
    registered = variables.get(name)
    found = registered.get("plans") if isinstance(registered, Mapping) else None
    return dict((found or {}).get(variables.get("inventory_hostname")) or {})


def planned_parts(variables: Variables) -> list[str]:
    """Return the parts of a host that ``site`` plans, by role."""
    vendors, found = _vendors(variables), []
    if "nvidia" in vendors:
        found = ["nvidia_driver", "nvidia_container_toolkit"]
        if asks_for_mig(variables) or asks_for_cuda(variables):
            found = list(NODE_ROLES)
    return [*found, *(role for role in AMD_ROLES if _uses_amd(variables, role))]


def uses_role(variables: Variables, role: str) -> bool:
    """Return whether ``site`` plans the role on a host, or a run has planned it."""
    return role in planned_parts(variables) or bool(plans(variables).get(role))


def _has_work(variables: Variables, roles: Sequence[str] = NODE_ROLES) -> bool:
    found = plans(variables)
    return any(found.get(role, {}).get("work") is True for role in roles)


def asks_for_mig(variables: Variables) -> bool:
    """Return whether the host's own variables ask for a MIG layout."""
    return bool(variables.get("nvidia_mig_config"))


def asks_for_cuda(variables: Variables) -> bool:
    """Return whether the plan of CUDA toolkits has something to say of the host.

    That is one that is asked for by the host's own variables, or that a run installed.
    """
    return bool(
        variables.get("cuda_toolkit_versions")
        or variables.get("cuda_toolkit_libraries")
        or ((_node(variables) or {}).get("cuda") or {}).get("configuration")
    )


def _partitions(variables: Variables) -> bool:
    """Return whether the node is of a cluster, and the layout of its GPUs would change."""
    plan = plans(variables).get("nvidia_mig") or {}
    return plan.get("partitions") is True and _in_cluster(variables)


def _has_mig_record(variables: Variables) -> bool:
    """Return whether a teardown restores a MIG layout on the node."""
    return ((_node(variables) or {}).get("mig") or {}).get("managed") is True


def _is_kept(variables: Variables) -> bool:
    """Return whether a teardown leaves the whole node as it is."""
    return (variables.get("kubegpu_failure") or {}).get("kept") is True


def _asks_runtimes(variables: Variables) -> bool:
    """Return whether the plan needs a runtime's module, on a machine and not in a tree."""
    plan = plans(variables).get("nvidia_container_toolkit") or {}
    asks = any(plan.get(engine) for engine in ("containerd", "docker", "crio"))
    return asks and variables.get("kubegpu_root", "/") == "/"


def _can_verify(variables: Variables) -> bool:
    """Return whether a run can verify the host: its driver is loaded, and nothing failed."""
    node = _node(variables)
    return (
        node is not None
        and _is_enabled(variables, "gpu_verify", default=True)
        and not _has_failed(variables)
        # A driver that is not managed here may be installed later: nothing to verify yet.
        and (node["driver"]["loaded"] is not None or _has_kernel_driver(node))
    )


def _has_kernel_driver(node: Mapping[str, Any]) -> bool:
    """Return whether a driver of the kernel serves an AMD or Intel GPU."""
    return any(
        gpu["vendor"] in IN_KERNEL and gpu["kernel_driver"] in DRIVERS[gpu["vendor"]]
        for gpu in node["gpus"]
    )


def _offers(variables: Variables, vendor: str) -> bool:
    """Return whether containers can be given GPUs of the vendor."""
    node = _node(variables)
    return node is not None and bool(container_gpus(node, vendor))


def _uses_amd(variables: Variables, *roles: str) -> bool:
    """Return whether one of the roles is requested on a host with AMD GPUs."""
    enabled = any(_is_enabled(variables, role) for role in roles or AMD_ROLES)
    return enabled and _offers(variables, "amd")


def _has_amd(variables: Variables) -> bool:
    """Return whether a part of AMD's driver or container toolkit is on the host, for a teardown."""
    node = _node(variables) or {}
    toolkit = node.get("amd_container_toolkit") or {}
    files = [str(entry.get("file")) for entry in node.get("repositories") or ()]
    return bool(
        (node.get("amd_driver") or {}).get("managed")
        or toolkit.get("version")
        or toolkit.get("cdi_spec")
        or toolkit.get("interrupted")
        or any("/kubegpu-amd-" in name for name in files)
    )


def _is_monitored(variables: Variables) -> bool:
    """Return whether the host gets an exporter of its own, and not by a cluster.

    One whose last GPU is lost keeps it.
    """
    node = _node(variables)
    exporter = (node or {}).get("exporter") or {}
    gpus = node is not None and bool(node["gpus"] or exporter.get("expected_gpus"))
    enabled = _is_enabled(variables, "gpu_monitoring")
    method = variables.get("gpu_monitoring_method", "auto")
    on_host = method != "kubernetes" and (method != "auto" or not _in_cluster(variables))
    return gpus and enabled and on_host


def _needs_cluster_parts(variables: Variables) -> bool:
    """Return whether the cluster gets monitoring or a device plugin of AMD or Intel."""
    return _is_enabled(variables, "gpu_monitoring") or any(
        _offers(variables, vendor) for vendor in IN_KERNEL
    )


def _has_exporter(variables: Variables) -> bool:
    """Return whether this collection has set up an exporter on the host."""
    exporter = (_node(variables) or {}).get("exporter") or {}
    return bool(exporter.get("method") or exporter.get("packages_managed"))


def is_due(variables: Variables) -> bool:
    """Return whether the record of the node has the mark that it has to be verified."""
    marked = (variables.get("kubegpu_due") or {}).get("changed") is True
    return marked or (_node(variables) or {}).get("verification_due") is True


def _begins(variables: Variables) -> bool:
    """Return whether this run changes the node, whose record has no mark yet."""
    able = _is_verified(variables) and not is_due(variables) and not _has_no_driver(variables)
    return able and any(plan.get("steps") for plan in plans(variables).values())


def _has_no_driver(variables: Variables) -> bool:
    """Return whether the node's only driver is removed on request: nothing is to be verified."""
    return variables.get("nvidia_driver_state") == "absent" and _vendors(variables) == ["nvidia"]


def _is_verified(variables: Variables) -> bool:
    """Return whether the table of a verification shows the host."""
    return _is_enabled(variables, "gpu_verify", default=True)


_SELECT: Mapping[str, Callable[[Variables], bool]] = {
    "any": lambda _variables: True,
    "unread": lambda variables: _node(variables) is None or is_refused(variables),
    "facts": lambda variables: _node(variables) is not None,
    "nvidia": lambda variables: _vendor(variables) == "nvidia",
    "amd": lambda variables: _offers(variables, "amd"),
    "intel": lambda variables: _offers(variables, "intel"),
    "lost": is_lost,
    "gpu": lambda variables: bool(_vendors(variables)),
    "none": lambda variables: _vendor(variables) == "none",
    "work": lambda variables: (
        _node(variables) is not None and _has_work(variables) and not _has_failed(variables)
    ),
    "runtimes": _asks_runtimes,
    "amd_enabled": lambda variables: _uses_amd(variables) and not _has_failed(variables),
    "amd_work": lambda variables: _has_work(variables, AMD_ROLES) and not _has_failed(variables),
    "amd_teardown": _has_amd,
    "partitions": _partitions,
    "mig_teardown": _has_mig_record,
    "waiting": lambda variables: variables.get("kubegpu_begun") is not True,
    "failed": _has_failed,
    "not_failed": lambda variables: not _has_failed(variables),
    "not_kept": lambda variables: not _is_kept(variables),
    "driver": _can_verify,
    "verified": _is_verified,
    "due": is_due,
    "begins": _begins,
    "not_due": lambda variables: (
        is_due(variables) and _has_no_driver(variables) and not _has_failed(variables)
    ),
    "monitored": lambda variables: _is_monitored(variables) and not _has_failed(variables),
    "monitoring_work": lambda variables: (
        (variables.get("gpu_monitoring_host_plan") or {}).get("work") is True
    ),
    # One that was not planned, or whose plan is a refusal, keeps the target that Prometheus has.
    "scraped": lambda variables: (
        _is_monitored(variables)
        and not _has_failed(variables)
        and (variables.get("gpu_monitoring_host_plan") or {}).get("action") in ("none", "change")
    ),
    "exporter": _has_exporter,
    "dra_enabled": lambda variables: _is_enabled(variables, "nvidia_dra_driver"),
    "cluster_parts": _needs_cluster_parts,
}
