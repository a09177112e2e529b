# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables with a prefix of this collection: unknown names and wrong values. Pure."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.checks import wrong_value
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    InputError,
    KubegpuError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import parts
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.names import most_similar
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.options import (
    REPOSITORY_KEYS,
    expected,
    wrong_argument,
)

from ._connection import FLEET, incomplete
from ._foreign_names import foreign
from ._rollout import percentage_error, serial_error
from ._variables_data import (
    KEPT_FACTS,
    MAX_FAIL_PERCENTAGE,
    PLAYBOOK_VARIABLES,
    PREFIX,
    ROLES,
    SERIAL,
    with_keys,
)

# Similarity of two names, from 0 to 1, below which none is suggested.
_MIN_SIMILARITY = 0.6
_REPOSITORY = {key: option for option, key in REPOSITORY_KEYS.items()}
# Roles that do nothing without a cluster. That of monitoring also sets up hosts.
_OF_CLUSTERS = (
    "gpu_node_labels_", "nvidia_device_plugin_", "amd_device_plugin_", "intel_device_plugin_",
    "nvidia_dra_driver_",
)  # fmt: skip
_MODULE_UTILS = "ansible_collections.kubegpu.nodes.plugins.module_utils"
# The readers of the roles' options: file and function. One is imported when a fleet has a variable
# of its role, because Ansible compiles the code of collections in each process.
READERS: Mapping[str, tuple[str, str]] = {
    "nvidia_driver": ("_driver.options", "read_options"),
    "nvidia_mig": ("_mig.options", "read_options"),
    "cuda_toolkit": ("_cuda.options", "read_options"),
    "nvidia_container_toolkit": ("_toolkit.options", "read_request"),
    "amd_driver": ("_driver.amd_types", "read_amd_driver_request"),
    "amd_container_toolkit": ("_toolkit.amd_types", "read_amd_request"),
    "gpu_monitoring": ("_exporter.options", "read_options"),
    "gpu_upgrade": ("_upgrade.options", "read_request"),
    "gpu_acceptance": ("_acceptance.options", "read_request"),
}


@dataclass(frozen=True)
class Unknown:
    """A variable that no role and no playbook reads, and the hosts that have it."""

    name: str
    hosts: tuple[str, ...]
    nearest: str | None = None

    def __str__(self) -> str:
        meant = f" Did you mean {self.nearest}?" if self.nearest else ""
        meant = f" {foreign(self.name)}" if foreign(self.name) else meant
        return (
            f"{self.name} is not a variable of this collection, and is set for "
            f"{_where(self.hosts)}.{meant}"
        )


def _where(hosts: Sequence[str]) -> str:
    """Return the hosts that have a variable, of which the first is named."""
    more = len(hosts) - 1
    rest = f" and {more} more host{'s' if more > 1 else ''}" if more > 0 else ""
    return f"{hosts[0] if hosts else 'the play'}{rest}"


@dataclass(frozen=True)
class Wrong:
    """A value that is refused.

    :param part: the part of the plan that refuses it.
    :param error: what is wrong, and the next step.
    :param cluster: whether it applies to nodes of a cluster only.
    :param why: what is wrong, after the variable's name; empty is a wrong value.
    """

    variable: str
    part: str
    error: KubegpuError
    cluster: bool = False
    why: str = ""

    @property
    def message(self) -> str:
        return str(self.error)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the module's result ``wrong``."""
        return {
            **parts(self.error),
            "variable": self.variable,
            "part": self.part,
            "message": self.message,
            "cluster": self.cluster,
            **({"why": self.why} if self.why else {}),
        }


def known_names(specifications: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the names of all variables of the roles and the playbooks.

    The keys of a mapping are among them, as in ``kubegpu_kube.host``.

    :param specifications: the options of roles, by the role's name.
    """
    every = (*specifications.values(), PLAYBOOK_VARIABLES)
    return {name for options in every for name in with_keys(options)} | set(KEPT_FACTS)


def prefixed(names: Iterable[str]) -> list[str]:
    """Return the names that have the prefix of a role or of the playbooks."""
    prefixes = (PREFIX, *(f"{role}_" for role in ROLES))
    return [name for name in names if isinstance(name, str) and name.startswith(prefixes)]


def roles_of(names: Iterable[str]) -> set[str]:
    """Return the roles of which a name has the prefix."""
    return {role for name in names for role in ROLES if name.startswith(f"{role}_")}


def unknown(names: Mapping[str, Iterable[str]], known: Iterable[str]) -> list[Unknown]:
    """Return the variables that are not of this collection, each once.

    :param names: the prefixed names that are set, by host; those of the play have the key "".
    :param known: the names of all variables of these roles and of the playbooks.
    """
    known_set = set(known)
    found: dict[str, list[str]] = {}
    for host, given in names.items():
        for name in given:
            # Only messages write the key of a mapping so.
            if name not in known_set or "." in name:
                found.setdefault(name, []).extend([host] if host else [])
    return [
        Unknown(name, tuple(hosts), nearest(name, known_set))
        for name, hosts in sorted(found.items())
    ]


def without_cluster(names: Mapping[str, Iterable[str]]) -> str:
    """Return that variables of a cluster are set and no host has one; empty if none is set.

    :param names: as for :func:`unknown`.
    """
    found: dict[str, list[str]] = {}
    for host, given in names.items():
        for name in given:
            # A closed site sets the addresses of its images for all of its hosts.
            if name.startswith(_OF_CLUSTERS) and not name.endswith("_image"):
                found.setdefault(name, []).extend([host] if host else [])
    if not found:
        return ""
    name = min(found)
    others = f" ({len(found) - 1} more of its kind)" if len(found) > 1 else ""
    return (
        f"{name} is set for {_where(found[name])}{others}, and kubegpu_kube for no host: no "
        "cluster is asked, and labels, device plugins and the DRA driver are neither planned nor "
        "applied. "
        "Next step: set kubegpu_kube (such as kubeconfig and context) for the nodes of a cluster; "
        "without one, leave these variables out."
    )


def mistaken_for_no_cluster(found: Iterable[Unknown], without: Iterable[str]) -> list[Unknown]:
    """Return the unknown names that were meant as the connection to a cluster.

    Their hosts would get what hosts without Kubernetes get, such as packages of an exporter.

    :param without: the hosts that have no connection.
    """
    lacking = set(without)
    return [
        one
        for one in found
        if (lacking.intersection(one.hosts) if one.hosts else lacking)
        # One of another name can be of the inventory itself, such as one for a token.
        and (
            one.nearest == FLEET
            or (one.name.startswith(FLEET) and str(one.nearest).startswith(f"{FLEET}."))
        )
    ]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name with the same prefix; None if none is similar.

    A name that means the opposite is none, and for one of another role there is :func:`foreign`.
    A key of a mapping is found by itself too: ``nvidia_driver_key_url`` is near to
    ``nvidia_driver_repository.key_url``. If only the name of the mapping is similar, it is the
    mapping, not one of its keys.
    """
    if foreign(name):
        return None
    if name.endswith("_kube"):
        # Some roles had a connection of their own.
        return "kubegpu_kube"
    prefix = _prefix(name)
    near = [one for one in sorted(known) if one.startswith(prefix)]
    ends = {one.rpartition(".")[2]: one for one in near if "." in one}
    ends.update({one[len(prefix) :]: one for one in near})
    close = most_similar(name[len(prefix) :], ends, _MIN_SIMILARITY)
    if close is None:
        return None
    mapping, dot, key = ends[close].partition(".")
    if dot and name.startswith(mapping):
        rest = name[len(mapping) :].lstrip("_")
        return ends[close] if most_similar(rest, [key], _MIN_SIMILARITY) else mapping
    return ends[close]


def _prefix(name: str) -> str:
    prefixes = [f"{role}_" for role in ROLES if name.startswith(f"{role}_")]
    return max(prefixes, key=len, default=PREFIX)


def wrong(
    values: Mapping[str, Any],
    specifications: Mapping[str, Mapping[str, Any]],
    fits: Callable[[str, Mapping[str, Any], Any], bool],
) -> list[Wrong]:
    """Return the values that are refused.

    :param values: what is set for one host, by the variables' names.
    :param specifications: the options of the roles of these variables, by the role's name.
    :param fits: whether Ansible accepts a value for its specification.
    """
    given, wrong_mappings = _by_key(values, PLAYBOOK_VARIABLES)
    found = [Wrong(name, "playbook", error) for name, error in wrong_mappings.items()]
    for name, specification in with_keys(PLAYBOOK_VARIABLES).items():
        if name in given:
            expectation = _playbook_error(name, specification, given[name], fits)
            if expectation:
                error = wrong_value(name, expectation, given[name])
                found.append(Wrong(name, "playbook", error))
    keys = incomplete(values.get(FLEET))
    if keys:
        found.append(Wrong(FLEET, "playbook", _without_address(keys)))
    for role, (part, cluster) in ROLES.items():
        given, wrong_mappings = _by_key(values, specifications.get(role, {}))
        options = with_keys(specifications.get(role, {}))
        found += [Wrong(name, part, one, cluster) for name, one in wrong_mappings.items()]
        bad = [name for name, value in given.items() if not fits(name, options[name], value)]
        found += [
            Wrong(name, part, wrong_argument(name, options[name], given.pop(name)), cluster)
            for name in bad
        ]
        found += [
            Wrong(name, part, one, cluster)
            for name, one in _refused(role, _joined(role, given)).items()
        ]
    return found


def _by_key(
    values: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Any], dict[str, KubegpuError]]:
    """Return the values of the options and their keys, and the errors of wrong mappings.

    A key that is None is not set, as an option is.
    """
    given: dict[str, Any] = {}
    errors: dict[str, KubegpuError] = {}
    for name, option in options.items():
        keys = option.get("options", {})
        if name not in values:
            continue
        if not keys or values[name] is None:
            given[name] = values[name]
            continue
        if not isinstance(values[name], Mapping):
            # Ansible takes a text such as JSON as well, but the roles merge mappings.
            errors[name] = wrong_argument(name, option, values[name])
            continue
        for key, value in values[name].items():
            if key in keys:
                given.update({} if value is None else {f"{name}.{key}": value})
            else:
                errors[f"{name}.{key}"] = _unknown_key(name, str(key), list(keys))
    return given, errors


def _without_address(keys: Sequence[str]) -> InputError:
    """Return the error for a connection that would count as no cluster, without a word."""
    return InputError(
        f"{FLEET} has {', '.join(keys)}, but neither kubeconfig nor host, so that it names no "
        "cluster: a default kubeconfig is never used.",
        next_step=f"Set {FLEET}.kubeconfig to a file on the host that sends the requests, or "
        f"{FLEET}.host; for hosts without a cluster, leave {FLEET} out.",
    )


def _joined(role: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with each mapping as a whole, as the role's reader takes it.

    The keys of a repository are separate options of the reader.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        option, _dot, key = name.partition(".")
        if key and name[len(role) + 1 :] not in _REPOSITORY:
            found.setdefault(option, {})[key] = value
        else:
            found[name] = value
    return found


def _unknown_key(name: str, key: str, keys: list[str]) -> InputError:
    close = most_similar(key, keys, _MIN_SIMILARITY)
    meant = f" Did you mean {name}.{close}?" if close else ""
    step = f"Correct the key; {name} has {', '.join(keys)}."
    return InputError(f"{name}.{key} is not a variable of this collection.{meant}", next_step=step)


def _playbook_error(
    name: str,
    specification: Mapping[str, Any],
    value: Any,
    fits: Callable[[str, Mapping[str, Any], Any], bool],
) -> str:
    if name == SERIAL:
        return serial_error(value)
    if name == MAX_FAIL_PERCENTAGE:
        return percentage_error(value)
    return "" if fits(name, specification, value) else expected(specification)


def _refused(role: str, given: Mapping[str, Any]) -> dict[str, KubegpuError]:
    """Return the errors of the role's own reader of options, by the variable's name."""
    together = _read(role, given) if given else None
    if together is None:
        return {}
    # Some values are wrong only in combination with others.
    alone = {name: _read(role, {name: value}) for name, value in given.items()}
    right = {name: value for name, value in given.items() if not alone[name]}
    # A name is right only next to the mapping that has it (nvidia_mig_config).
    beside = {name: _read(role, {**right, name: given[name]}) for name in given if alone[name]}
    found = {name: error for name, error in beside.items() if error is not None}
    if not found:
        found = {_variable(role, together, given): together}
    return found


def _variable(role: str, error: KubegpuError, given: Mapping[str, Any]) -> str:
    """Return the name of the variable that an error is about; ``role_*`` if it names none."""
    named = error.names.get("variable", "")
    return next((name for name in given if named in (name, name.partition(".")[0])), f"{role}_*")


def _read(role: str, given: Mapping[str, Any]) -> KubegpuError | None:
    if role not in READERS:
        return None
    ends = {name[len(role) + 1 :]: value for name, value in given.items()}
    options = {_REPOSITORY.get(end, end): value for end, value in ends.items()}
    if role == "gpu_monitoring":
        # The specification has the methods of both, and the exporter reads a file's text.
        options = {**options, "method": None, "counters": None}
    file, function = READERS[role]
    read = getattr(importlib.import_module(f"{_MODULE_UTILS}.{file}"), function)
    try:
        read(options)
    except KubegpuError as error:
        return error
    return None
