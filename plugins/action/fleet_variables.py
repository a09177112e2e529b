# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look at the variables of all hosts of a play at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables import (
    known_names,
    prefixed,
    unknown,
    wrong,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import (
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
        specifications = role_options(list(ROLES))
        fleet = _Fleet(self, specifications, variables)
        names: dict[str, list[str]] = {"": prefixed(fleet.play)}
        by_host: dict[str, list[dict[str, Any]]] = {}
        serials: dict[str, Any] = {}
        every: dict[str, list[Any]] = {MAX_FAIL_PERCENTAGE: [], UNKNOWN: []}
        for host in options["hosts"]:
            names[host], values = fleet.read(host)
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
        options = {name: option for one in specifications.values() for name, option in one.items()}
        # What is secret is never looked at: any text is right for it.
        self._looked_at = {
            name
            for name, option in {**options, **PLAYBOOK_VARIABLES}.items()
            if not option.get("no_log")
        }
        # Variables of the play count for each host, and hostvars has none of them.
        self._hostvars = variables["hostvars"]
        own = self._hostvars.raw_get(variables["inventory_hostname"])
        self._of_play = {
            name: value
            for name, value in variables.items()
            if name not in own or own[name] != value
        }
        self.play = prefixed(self._of_play)

    def read(self, host: str) -> tuple[list[str], dict[str, Any]]:
        """Return the names that are set for a host, and the values of those that are known.

        A value can be made of others, of the host's or of the play's: each host has its own.
        """
        there = self._hostvars.raw_get(host)
        every = {**there, **self._of_play}
        templar = self._action._templar.copy_with_new_env(available_variables=every)
        names = prefixed(there)
        found = {}
        for name in {*names, *self.play} & self._looked_at:
            try:
                value = templar.template(every[name])
            except AnsibleError:
                # It is made of what is known only later.
                continue
            # None is what a role takes for "not set".
            if value is not None:
                found[name] = value
        return names, found

    def wrong(self, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the wrong ones; hosts of one group mostly have the same values."""
        key = repr(sorted(values.items()))
        if key not in self._seen:
            self._seen[key] = [one.to_json() for one in wrong(values, self._specifications, fits)]
        return self._seen[key]


def _playbook_texts(by_host: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    """Return what is wrong with the playbooks' own variables, each text once."""
    texts = [
        one["words"] for found in by_host.values() for one in found if one["part"] == "playbook"
    ]
    return list(dict.fromkeys(texts))
