# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One command and one next step for several hosts, of those that name one host each. Pure.

The commands are those of ``module_utils/_root_causes/fixes.py``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from ansible_collections.kubegpu.nodes.plugins.module_utils._root_causes.fixes import POD_NAME

HOST, NODE, POD, GPU = "HOST", "NODE", "POD", "GPU"
_WORDS = re.compile(rf"\b({HOST}|{NODE}|{POD})\b")
_LIMIT = re.compile(rf"(?<=--limit ){HOST}(?!\S)")
# A host may be called like one of these words of a text.
_PLAIN = frozenset({"cluster", "driver", "host", "kernel", "node", "plugin", "runtime", "toolkit"})
_SHORT = 4
# An argument of a command, quoted or not.
_ARGUMENT = r"(?:'[^']*'|[^\s'])+"
_OF_CLUSTER = (
    (re.compile(rf"(?<=kubectl drain ){_ARGUMENT}(?= --ignore-daemonsets)"), NODE),
    (re.compile(rf"(?<=kubectl uncordon ){_ARGUMENT}"), NODE),
    (re.compile(rf"(?<= delete pod ){_ARGUMENT}"), POD),
    (re.compile(rf"(?<= logs --previous ){_ARGUMENT}"), POD),
)


def general_fix(fix: str, host: str) -> str:
    """Return a command without names: words in capitals stand for the host, its node and its pod.

    :param host: empty for a command of no host.
    """
    quoted = shlex.quote(host)
    if quoted in fix:
        own = re.escape(quoted)
        places = rf"(?<=--limit ){own}(?!\S)|(?<=\bansible ){own}(?!\S)"
        fix = re.sub(rf"{places}|(?<= of ){own}(?=[,.;]?(?:\s|$))", HOST, fix)
    for pattern, word in _OF_CLUSTER:
        fix = pattern.sub(word, fix)
    return fix


def fix_of_hosts(fixes: Sequence[tuple[str, str]]) -> str:
    """Return what fixes a cause on several hosts.

    :param fixes: the hosts, each with its command; the commands are equal but for names.
    """
    host, fix = fixes[0]
    if len({one for _host, one in fixes}) == 1:
        return fix
    general = general_fix(fix, host)
    hosts = dict.fromkeys(name for name, _fix in fixes if name)
    if hosts and not _WORDS.search(_LIMIT.sub("", general)):
        limit = shlex.quote(",".join(hosts))
        return _LIMIT.sub(lambda _found: limit, general)
    names = list(dict.fromkeys(_WORDS.findall(general)))
    # What reboots a node or ends a pod is not for all of them at once.
    return f"for each {' and '.join(names)}, one after the other: {general}"


def general_step(step: str, cause: str, names: Mapping[str, str]) -> str:
    """Return a next step without names; those that may be words of it stay.

    :param cause: the text of its cause, which may name a pod.
    :param names: the word for each name, such as that of the host.
    """
    words = dict(names)
    pod = POD_NAME.search(f"{cause} {step}")
    if pod:
        own = pod["name"].rstrip(".")
        words |= {f"{pod['namespace']}/{own}": POD, own: POD}
    words = {
        name: word
        for name, word in words.items()
        if name and name in step and not _may_be_a_word(name)
    }
    if not words:
        return step
    known = "|".join(re.escape(name) for name in sorted(words, key=len, reverse=True))
    pattern = rf"(?<![\w./-])(?:{known})(?![\w-]|\.\w)"
    return re.sub(pattern, lambda found: words[found[0]], step)


def _may_be_a_word(name: str) -> bool:
    return name in _PLAIN or (name.isalpha() and len(name) < _SHORT)
