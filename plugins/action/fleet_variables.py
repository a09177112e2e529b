# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look at the variables of all hosts of a play at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.module_utils._variables import (
    known_names,
    prefixed,
    unknown,
    wrong,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._variables_data import (
    MAX_FAIL_PERCENTAGE,
    PLAYBOOK_VARIABLES,
    ROLES,
    SERIAL,
    UNKNOWN,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._specifications import (
    fits,
    role_options,
)

_NEXT_STEP = f"Next step: correct the name; {UNKNOWN} (warn, fail, ignore) says what follows."
_STRICTNESS = "ignore warn fail"


class ActionModule(ActionBase):
    """Runs on the controller only: no connection to a node is made."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec={"hosts": {"type": "list", "elements": "str", "required": True}}
        )
        variables = task_vars or {}
        hostvars = variables.get("hostvars", {})
        specifications = role_options(list(ROLES))
        fleet = _Fleet(self, specifications, variables)
        names: dict[str, list[str]] = {"": prefixed(fleet.play)}
        by_host: dict[str, list[dict[str, Any]]] = {}
        serials: dict[str, Any] = {}
        every: dict[str, list[Any]] = {MAX_FAIL_PERCENTAGE: [], UNKNOWN: []}
        for host in options["hosts"]:
            there = hostvars[host]
            names[host] = prefixed(there)
            values = fleet.values(there, names[host])
            for name in every.keys() & values.keys():
                every[name].append(values[name])
            if SERIAL in values:
                serials[host] = values[SERIAL]
            found = fleet.wrong(values)
            if found:
                by_host[host] = found
        nothing_reads = unknown(names, known_names(specifications))
        result.update(
            changed=False,
            unknown=[{"name": one.name, "nearest": one.nearest} for one in nothing_reads],
            wrong=by_host,
        )
        texts = _playbook_texts(by_host)
        strictest = max(map(str, every[UNKNOWN]), key=_STRICTNESS.find, default="warn")
        if nothing_reads and strictest == "fail":
            texts += [*map(str, nothing_reads), _NEXT_STEP]
        elif nothing_reads and strictest == "warn":
            *most, last = map(str, nothing_reads)
            result["warnings"] = [*most, f"{last} {_NEXT_STEP}"]
        if texts:
            result.update(failed=True, msg="\n".join(["No node was touched.", *texts]))
            return result
        result.update(
            serials=serials,
            max_fail_percentage=min(map(float, every[MAX_FAIL_PERCENTAGE]), default=0.0),
        )
        return result


class _Fleet:
    """What is the same for all hosts, and what was found out once."""

    def __init__(
        self,
        action: ActionModule,
        specifications: Mapping[str, Mapping[str, Any]],
        variables: Mapping[str, Any],
    ) -> None:
        self._action = action
        self._specifications = specifications
        self._seen: dict[str, list[dict[str, Any]]] = {}
        hostvars = variables.get("hostvars", {})
        own = hostvars.get(variables.get("inventory_hostname", ""), {})
        options = {name: option for one in specifications.values() for name, option in one.items()}
        # What is secret is never looked at: any text is right for it.
        self._looked_at = {
            name
            for name, option in {**options, **PLAYBOOK_VARIABLES}.items()
            if not option.get("no_log")
        }
        # Variables of the play count for each host, and hostvars has none of them.
        self.play = {
            name: self._value(variables, name)
            for name in prefixed(variables)
            if name not in own
            or (name in self._looked_at and self._value(variables, name) != self._value(own, name))
        }

    def values(self, there: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
        """Return what is set for a host of the variables that are known."""
        found = {}
        for name in {*names, *self.play} & self._looked_at:
            value = self.play[name] if name in self.play else self._value(there, name)
            # None is what a role takes for "not set".
            if value is not None:
                found[name] = value
        return found

    def wrong(self, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the wrong ones; hosts of one group mostly have the same values."""
        key = repr(sorted(values.items()))
        if key not in self._seen:
            self._seen[key] = [one.to_json() for one in wrong(values, self._specifications, fits)]
        return self._seen[key]

    def _value(self, variables: Mapping[str, Any], name: str) -> Any:
        """Return a value, None where it is made of what is known only later."""
        try:
            value = variables[name]
            # Those of a host are worked out as they are read, those of a task are not.
            return self._action._templar.template(value) if isinstance(variables, dict) else value
        except AnsibleError:
            return None


def _playbook_texts(by_host: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    """Return what is wrong with the playbooks' own variables, each text once."""
    texts = [
        one["words"] for found in by_host.values() for one in found if one["part"] == "playbook"
    ]
    return list(dict.fromkeys(texts))
