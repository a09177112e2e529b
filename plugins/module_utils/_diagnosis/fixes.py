# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command or the variables that fix a root cause. Pure."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .._core.commands import REBOOT as _REBOOT
from .._core.finding import WORDS, Subject
from .data import CAUSES, REBOOT, SWITCH_AND, SWITCH_THEN

#: The words that stand for names in a command for several hosts.
_WORDS = {**WORDS, "limit": WORDS["host"], "cordoned": WORDS["node"]}
#: What stands for a name that is not known; without another one there is no fix.
_UNKNOWN = {**_WORDS, "namespace": "NAMESPACE"}
# Names that several hosts have in common, or that can be joined.
_SHARED = frozenset({"limit", "vendor", "module", "run"})
# The variable that has to change first, as the name ``switch``; empty without one.
_SWITCHES = {SWITCH_THEN.strip("{}"): "{}: true, then: ", SWITCH_AND.strip("{}"): "{}: true, "}
# A drain that fails, as for a disruption budget, has to stop the reboot.
_DRAINED = f"kubectl drain {{node}} --ignore-daemonsets && {_REBOOT} && kubectl uncordon {{node}}"


@dataclass(frozen=True)
class Fix:
    """A command with names in braces, and the names of one host or pod.

    The name ``switch`` is a variable that has to be true for it.
    """

    template: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> list[str]:
        """The names in the command, in their order."""
        found = (name for _text, name, _spec, _conv in string.Formatter().parse(self.template))
        return list(dict.fromkeys(name for name in found if name and name not in _SWITCHES))

    def __str__(self) -> str:
        # Names come from nodes and clusters, and the command is copied to a shell.
        return self._filled(_UNKNOWN)

    @property
    def general(self) -> str:
        """The same in which words in capitals stand for the host, its node and the pod."""
        return Fix(
            self.template, {name: one for name, one in self.names.items() if name not in _WORDS}
        )._filled(_UNKNOWN)

    def _filled(self, words: Mapping[str, str]) -> str:
        quoted = {name: shlex.quote(one) for name, one in self.names.items() if one}
        switch = self.names.get("switch", "")
        first = {name: text.format(switch) if switch else "" for name, text in _SWITCHES.items()}
        return self.template.format_map({**words, **quoted, **first})


def find_fix(code: str, subject: Subject, names: Mapping[str, str], node: str = "") -> Fix:
    """Return what fixes a root cause; without a template if nothing does.

    :param names: the names in the texts of the finding.
    :param node: the name of the host's node in the cluster; empty without one.
    """
    row = CAUSES.get(code)
    if row is None:
        return Fix()
    if row.code == "toolkit_missing" and names.get("package"):
        # It is installed, so that nothing would install it.
        row = CAUSES["toolkit_broken"]
    template = row.fix if row.pod_fix is None or not subject.pod else row.pod_fix
    known = {**names, "host": subject.host, "limit": subject.host, "node": node}
    if subject.pod:
        known["namespace"], _slash, known["name"] = subject.pod.partition("/")
    found = Fix(template.replace(REBOOT, _DRAINED if node else _REBOOT), known)
    needed = (name for name in found.fields if name == "cordoned" or name not in _UNKNOWN)
    return found if all(known.get(name) for name in needed) else Fix()


def fix_of_hosts(fixes: Sequence[Fix]) -> str:
    """Return what fixes a cause on several hosts, of fixes with one template."""
    if len({str(one) for one in fixes}) == 1:
        return str(fixes[0])
    first = fixes[0]
    hosts = dict.fromkeys(one.names["limit"] for one in fixes if one.names.get("limit"))
    if hosts and _SHARED.issuperset(first.fields):
        return str(Fix(first.template, {**first.names, "limit": ",".join(hosts)}))
    words = dict.fromkeys(_WORDS[name] for name in first.fields if name in _WORDS)
    # What reboots a node or ends a pod is not for all of them at once.
    return f"for each {' and '.join(words)}, one after the other: {first.general}"
