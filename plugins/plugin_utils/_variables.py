# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables that begin as ours do: which ones nothing reads, and which have a wrong value. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    InputError,
    KubegpuError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import redact
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.options import (
    read_options as read_cuda,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import (
    read_options as read_driver,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.options import (
    read_request as read_toolkit,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.types import (
    Request as ToolkitRequest,
)

from ._rollout import percentage_wrong, serial_wrong
from ._variables_data import (
    KEPT_FACTS,
    MAX_FAIL_PERCENTAGE,
    PLAYBOOK_VARIABLES,
    PREFIX,
    ROLES,
    SERIAL,
)

# Names that are less alike than that are so by chance.
_ALIKE = 0.6
# Characters of a value that are shown.
_SHOWN = 120
_TYPES = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "list": "a list",
    "dict": "a mapping",
    "str": "a text",
    "path": "a path",
}
# Options that have another name in the plans.
_OTHER_NAMES = {
    "nvidia_driver_key_url": "repository_key_url",
    "cuda_toolkit_key_url": "repository_key_url",
}


@dataclass(frozen=True)
class Unknown:
    """A name that no role and no playbook reads, and the hosts for which it is set."""

    name: str
    hosts: tuple[str, ...]
    nearest: str | None = None

    def __str__(self) -> str:
        where = self.hosts[0] if self.hosts else "the play"
        more = len(self.hosts) - 1
        if more > 0:
            where += f" and {more} more host{'s' if more > 1 else ''}"
        meant = f" Did you mean {self.nearest}?" if self.nearest else ""
        return f"Nothing reads the variable {self.name}, which is set for {where}.{meant}"


@dataclass(frozen=True)
class Wrong:
    """A value that is refused: whose it is, and what is to be said."""

    variable: str
    part: str
    words: str
    cluster: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "variable": self.variable,
            "part": self.part,
            "words": self.words,
            "cluster": self.cluster,
        }


def known_names(specifications: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the names of all variables: the roles' options, and those of the playbooks.

    :param specifications: the options of each role, by the role's name.
    """
    roles = {name for options in specifications.values() for name in options}
    return {*roles, *PLAYBOOK_VARIABLES, *KEPT_FACTS}


def prefixed(names: Iterable[str]) -> list[str]:
    """Return those names that begin as a variable of a role, or of the playbooks, does."""
    prefixes = (PREFIX, *(f"{role}_" for role in ROLES))
    return [name for name in names if isinstance(name, str) and name.startswith(prefixes)]


def unknown(names: Mapping[str, Iterable[str]], known: Iterable[str]) -> list[Unknown]:
    """Return the variables that nothing reads, each once.

    :param names: the prefixed names that are set, by host; those of the play stand under "".
    :param known: the names that there are.
    """
    there = set(known)
    found: dict[str, list[str]] = {}
    for host, given in names.items():
        for name in given:
            if name not in there:
                found.setdefault(name, []).extend([host] if host else [])
    return [
        Unknown(name, tuple(hosts), nearest(name, there)) for name, hosts in sorted(found.items())
    ]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name of the same role that is most like this one, None where none is."""
    prefix = _prefix(name)
    ends = {one[len(prefix) :]: one for one in sorted(known) if one.startswith(prefix)}
    close = difflib.get_close_matches(name[len(prefix) :], ends, 1, _ALIKE)
    return ends[close[0]] if close else None


def _prefix(name: str) -> str:
    prefixes = [f"{role}_" for role in ROLES if name.startswith(f"{role}_")]
    return max(prefixes, key=len, default=PREFIX)


def type_words(specification: Mapping[str, Any]) -> str:
    """Return what a value has to be, by its specification."""
    kind = str(specification.get("type", "str"))
    if "choices" in specification:
        choices = ", ".join(str(choice) for choice in specification["choices"])
        return f"made of {choices}" if kind == "list" else f"one of {choices}"
    words = _TYPES.get(kind, kind)
    inner = specification.get("elements")
    names = {"str": "texts", "dict": "mappings", "int": "whole numbers"}
    return f"{words} of {names[inner]}" if inner in names else words


def wrong(
    values: Mapping[str, Any],
    specifications: Mapping[str, Mapping[str, Any]],
    fits: Callable[[str, Mapping[str, Any], Any], bool],
) -> list[Wrong]:
    """Return the values that are refused.

    :param values: what is set for one host, by the variables' names.
    :param specifications: the options of each role, by the role's name.
    :param fits: whether a value is one of its specification, as Ansible sees it.
    """
    found = []
    for name, specification in PLAYBOOK_VARIABLES.items():
        if name in values:
            words = _playbook_words(name, specification, values[name], fits)
            if words:
                found.append(Wrong(name, "playbook", _said(name, words, values[name])))
    for role, (part, cluster) in ROLES.items():
        options = specifications.get(role, {})
        given = {name: values[name] for name in options if name in values}
        bad = [name for name, value in given.items() if not fits(name, options[name], value)]
        found += [
            Wrong(name, part, _said(name, type_words(options[name]), given.pop(name)), cluster)
            for name in bad
        ]
        found += [
            Wrong(name, part, words, cluster) for name, words in _refused(role, given).items()
        ]
    return found


def _playbook_words(
    name: str,
    specification: Mapping[str, Any],
    value: Any,
    fits: Callable[[str, Mapping[str, Any], Any], bool],
) -> str:
    if name == SERIAL:
        return serial_wrong(value)
    if name == MAX_FAIL_PERCENTAGE:
        return percentage_wrong(value)
    return "" if fits(name, specification, value) else type_words(specification)


def _said(name: str, words: str, value: Any) -> str:
    # What lies deeper can be a secret under any name (name and value of an environment).
    if isinstance(value, Mapping):
        shown = "a mapping"
    elif isinstance(value, (list, tuple)) and not all(
        isinstance(item, (str, int, float)) for item in value
    ):
        shown = "a list of more than plain values"
    else:
        shown = redact(repr(value))
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}..."
    return str(InputError(f"{name} has to be {words}.", evidence=f"{name}: {shown}"))


def _refused(role: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Return what the role's own reader of options says against them, by the variable's name."""
    together = _read(role, given)
    if not together:
        return {}
    # Some are wrong only beside others.
    alone = {name: _read(role, {name: value}) for name, value in given.items()}
    found = {name: words for name, words in alone.items() if words}
    if not found:
        found = {next((name for name in given if name in together), f"{role}_*"): together}
    return {name: words if name in words else f"{name}: {words}" for name, words in found.items()}


def _read(role: str, given: Mapping[str, Any]) -> str:
    options = {
        _OTHER_NAMES.get(name, name[len(role) + 1 :]): value for name, value in given.items()
    }
    try:
        if role == "nvidia_driver":
            read_driver(options)
        elif role == "cuda_toolkit":
            read_cuda(options)
        elif role == "nvidia_container_toolkit":
            fields = ToolkitRequest.__dataclass_fields__
            read_toolkit({name: value for name, value in options.items() if name in fields})
    except KubegpuError as error:
        return str(error)
    return ""
